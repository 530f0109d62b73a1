//! Questions: a statement over the table `t`, and the answer evaluated row by row.

use std::collections::{BTreeMap, BTreeSet};

use crate::condition::{Condition, Fault, condition, matching, matching_whatever, may_fault};
use crate::draw::Draw;
use crate::table::{Kind, Table};
use crate::value::{Value, exact, trimmed, whole};

/// The expected answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Rows with `|` between their values; sorted, unless the statement orders them.
    Rows(Vec<String>),
    /// An error: a number does not fit.
    Error,
}

/// A statement and its answer.
#[derive(Debug, Clone)]
pub struct Question {
    /// The statement.
    pub statement: String,
    /// Its condition alone, if the statement only counts or lists the matching rows.
    pub condition: Option<String>,
    /// Whether it defines the order of its rows.
    pub is_ordered: bool,
    /// The expected answer.
    pub answer: Answer,
    /// Whether a calculation that does not decide has no value: `FALSE AND` it is FALSE to `filter`, but
    /// `query` may evaluate it first, and report the error (docs/query.md).
    pub may_fault: bool,
    /// The answer of an engine that never evaluates the number that does not fit, since no row depends on it:
    /// `NULL AND (NULL OR x)` is NULL to `query`, whatever `x` is. None if rows depend on it.
    pub answer_whatever: Option<Answer>,
    /// Whether a join may drop rows without a partner before the condition is evaluated.
    pub is_joined: bool,
}

/// Draws a question over a table.
pub fn question(draw: &mut Draw, table: &Table) -> Question {
    let depth = draw.below(3);
    let condition = condition(draw, table, depth);
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let written = condition.written(&names);
    let rows = matching(&condition, table);
    let whatever = rows.is_err().then(|| matching_whatever(&condition, table)).flatten();
    let asked = DrawnCondition { table, written, rows, whatever };
    let mut question = match draw.below(12) {
        0..=3 => asked.count(),
        4 | 5 => asked.list(),
        6 | 7 => asked.top(draw),
        8 => asked.groups(draw),
        9 => asked.totals(draw),
        10 => asked.join(draw, &condition),
        _ => asked.membership(draw, &condition),
    };
    question.is_joined = question.statement.contains(" FROM t AS a ");
    question.may_fault = may_fault(&condition, table);
    let answers = [Some(&mut question.answer), question.answer_whatever.as_mut()];
    for answer in answers.into_iter().flatten() {
        if let (Answer::Rows(rows), false) = (answer, question.is_ordered) {
            rows.sort_unstable();
        }
    }
    question
}

/// A condition over a table, with the rows that satisfy it.
struct DrawnCondition<'t> {
    table: &'t Table,
    written: String,
    rows: Result<Vec<usize>, Fault>,
    /// The rows that satisfy it whatever the value of a number that does not fit.
    whatever: Option<Vec<usize>>,
}

impl DrawnCondition<'_> {
    /// Makes a question whose answer is computed from the rows; an error if a number does not fit.
    fn question(
        &self,
        statement: String,
        answer: impl Fn(&[usize]) -> Option<Vec<String>>,
    ) -> Question {
        let answer_of = |rows: &Vec<usize>| answer(rows).map_or(Answer::Error, Answer::Rows);
        let answer = self.rows.as_ref().map_or(Answer::Error, answer_of);
        let answer_whatever = self.whatever.as_ref().map(answer_of);
        Question {
            statement,
            condition: None,
            is_ordered: false,
            answer,
            answer_whatever,
            may_fault: false,
            is_joined: false,
        }
    }

    fn count(&self) -> Question {
        let statement = format!("SELECT COUNT(*) AS n FROM t WHERE {}", self.written);
        let condition = Some(self.written.clone());
        let question = self.question(statement, |rows| Some(vec![rows.len().to_string()]));
        Question { condition, ..question }
    }

    fn list(&self) -> Question {
        let statement = format!("SELECT id FROM t WHERE {}", self.written);
        let condition = Some(self.written.clone());
        let question =
            self.question(statement, |rows| Some(rows.iter().map(usize::to_string).collect()));
        Question { condition, ..question }
    }

    fn top(&self, draw: &mut Draw) -> Question {
        let column = draw.of(&self.table.columns);
        let (is_descending, nulls) = (draw.chance(50), draw.below(3));
        let (limit, offset) =
            (draw.magnitude(1, 300), if draw.chance(30) { draw.below(9) } else { 0 });
        let way = if is_descending { " DESC" } else { "" };
        let place = ["", " NULLS FIRST", " NULLS LAST"][nulls];
        let skipped = if offset > 0 { format!(" OFFSET {offset}") } else { String::new() };
        let statement = format!(
            "SELECT id, {0} FROM t WHERE {1} ORDER BY {0}{way}{place}, id LIMIT {limit}{skipped}",
            column.name, self.written
        );
        // NULL sorts as the greatest value, unless the statement places it.
        let nulls_first = if nulls == 0 { is_descending } else { nulls == 1 };
        let question = self.question(statement, |rows| {
            let mut rows = rows.to_vec();
            let is_late = |value: &Value| value.is_null() != nulls_first;
            rows.sort_by(|&a, &b| {
                let (x, y) = (&column.values[a], &column.values[b]);
                let by_value = if is_descending { y.order(x) } else { x.order(y) };
                is_late(x).cmp(&is_late(y)).then(by_value).then(a.cmp(&b))
            });
            let shown = rows.iter().skip(offset).take(limit);
            Some(shown.map(|&row| format!("{row}|{}", column.values[row].shown())).collect())
        });
        Question { is_ordered: true, ..question }
    }

    fn groups(&self, draw: &mut Draw) -> Question {
        let key = draw.of(&self.table.columns);
        let of = draw.of(&self.table.columns);
        let (k, c) = (&key.name, &of.name);
        let statement = format!(
            "SELECT {k} AS k, COUNT(*) AS n, COUNT({c}) AS m, MIN({c}) AS low, MAX({c}) AS high FROM t WHERE {} GROUP BY {k}",
            self.written
        );
        self.question(statement, |rows| {
            let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
            for &row in rows {
                groups.entry(key.values[row].shown()).or_default().push(&of.values[row]);
            }
            let line = |(key, values): (String, Vec<&Value>)| {
                let there: Vec<_> =
                    values.iter().copied().filter(|value| !value.is_null()).collect();
                let low =
                    there.iter().min_by(|a, b| a.order(b)).map_or("NULL".into(), |v| v.shown());
                let high =
                    there.iter().max_by(|a, b| a.order(b)).map_or("NULL".into(), |v| v.shown());
                format!("{key}|{}|{}|{low}|{high}", values.len(), there.len())
            };
            Some(groups.into_iter().map(line).collect())
        })
    }

    /// Asks for sums and distinct counts, exact.
    fn totals(&self, draw: &mut Draw) -> Question {
        let is_summed = |kind| matches!(kind, Kind::Whole | Kind::Wide | Kind::Exact);
        let numbers: Vec<_> = self.table.columns.iter().filter(|c| is_summed(c.kind)).collect();
        let number = *draw.of(&numbers);
        let other = draw.of(&self.table.columns);
        let statement = format!(
            "SELECT SUM({}) AS s, COUNT(DISTINCT {}) AS d FROM t WHERE {}",
            number.name, other.name, self.written
        );
        self.question(statement, |rows| {
            let distinct: BTreeSet<String> = rows
                .iter()
                .map(|&row| &other.values[row])
                .filter(|v| !v.is_null())
                .map(Value::shown)
                .collect();
            let sum = sum(rows.iter().map(|&row| &number.values[row]), number.kind)?;
            Some(vec![format!("{sum}|{}", distinct.len())])
        })
    }

    /// Asks how many pairs of rows have the same value, where one side is one of the first rows.
    fn join(&self, draw: &mut Draw, condition: &Condition) -> Question {
        let column = draw.of(&self.table.columns);
        let few = 1 + draw.below(60);
        let names: Vec<String> =
            self.table.columns.iter().map(|column| format!("a.{}", column.name)).collect();
        let statement = format!(
            "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.{0} = b.{0} WHERE b.id < {few} AND {1}",
            column.name,
            condition.written(&names)
        );
        self.question(statement, |rows| {
            let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
            for value in column.values.iter().take(few).filter(|value| !value.is_null()) {
                *wanted.entry(value.shown()).or_default() += 1;
            }
            let pairs = rows.iter().filter_map(|&row| wanted.get(&column.values[row].shown()));
            Some(vec![pairs.sum::<usize>().to_string()])
        })
    }

    /// Asks for the rows whose value occurs, or does not occur, in the first rows.
    fn membership(&self, draw: &mut Draw, condition: &Condition) -> Question {
        let column = draw.of(&self.table.columns);
        let few = 1 + draw.below(30);
        let is_negated = draw.chance(40);
        let names: Vec<String> =
            self.table.columns.iter().map(|column| format!("a.{}", column.name)).collect();
        let not = if is_negated { "NOT " } else { "" };
        let statement = format!(
            "SELECT a.id FROM t AS a WHERE a.{0} {not}IN (SELECT b.{0} FROM t AS b WHERE b.id < {few}) AND {1}",
            column.name,
            condition.written(&names)
        );
        self.question(statement, |rows| {
            let list = &column.values[..few.min(column.values.len())];
            let has_null = list.iter().any(Value::is_null);
            let listed: BTreeSet<String> =
                list.iter().filter(|value| !value.is_null()).map(Value::shown).collect();
            let is_wanted = |value: &Value| {
                let is_listed = listed.contains(&value.shown());
                !value.is_null() && if is_negated { !is_listed && !has_null } else { is_listed }
            };
            let wanted = rows.iter().filter(|&&row| is_wanted(&column.values[row]));
            Some(wanted.map(usize::to_string).collect())
        })
    }
}

/// Returns the exact sum; None if it does not fit: 64 bits for integers, 38 digits for others.
fn sum<'v>(values: impl Iterator<Item = &'v Value>, kind: Kind) -> Option<String> {
    let exacts: Vec<(i128, u8)> = values
        .filter_map(|value| match value {
            Value::Exact { mantissa, scale } => Some((*mantissa, *scale)),
            _ => None,
        })
        .collect();
    let Some(scale) = exacts.iter().map(|(_, scale)| *scale).max() else {
        return Some("NULL".into());
    };
    let mut total = 0_i128;
    for (mantissa, own) in exacts {
        total = total.checked_add(mantissa.checked_mul(10_i128.pow(u32::from(scale - own)))?)?;
    }
    let fits = match kind {
        Kind::Whole => i64::try_from(total).is_ok(),
        _ => total.unsigned_abs() < 10_u128.pow(38),
    };
    fits.then(|| if scale == 0 { whole(total).shown() } else { trimmed(&exact(total, scale)) })
}
