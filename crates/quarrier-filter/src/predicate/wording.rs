//! Descriptions of tests, for the explanation of a scan.

use std::fmt::Write as _;

use quarrier_messages::{Kind, Table, Value};

use super::{Graph, Node, NodeId, Outcome, Set, gaps};
use crate::expr::{Arithmetic, Comparison, Matcher, Pattern};
use crate::naive;
use crate::{Expr, Keys};

/// Maximum number of values of a set to list; larger sets show only their number.
const NAMED_MAX: usize = 6;
/// Maximum number of characters of a string to show.
const TEXT_MAX: usize = 40;
/// Maximum number of bytes of an expression to show.
const EXPRESSION_MAX: usize = 300;

/// Describes a node that is not AND, OR or NOT, in SQL.
pub(crate) fn test(graph: &Graph, node: NodeId, table: &Table) -> String {
    match &graph.nodes[node] {
        Node::None => "FALSE".into(),
        Node::All => "TRUE".into(),
        Node::Set { column, set } => Column { table, column: *column }.set(set),
        Node::Among { column, keys } => among(*column, keys, table),
        Node::Calculated(at) => graph.calculations[*at].expr.clone(),
        Node::Row { test, outcome } | Node::Mixed { test, outcome, .. } => {
            let shown = expression(&graph.rows[*test].expr, table);
            match outcome {
                Outcome::True => shown,
                Outcome::False => format!("({shown}) IS FALSE"),
                Outcome::Fault => format!("({shown}) has no value"),
            }
        }
        Node::And(_) => "AND".into(),
        Node::Or(_) => "OR".into(),
        Node::Not(_) => "NOT".into(),
    }
}

/// Formats an expression; cuts the end of a long one.
pub(crate) fn expression(expr: &Expr, table: &Table) -> String {
    let mut out = String::new();
    write_expression(expr, table, &mut out);
    if out.len() > EXPRESSION_MAX {
        out.truncate(out.floor_char_boundary(EXPRESSION_MAX));
        out.push('…');
    }
    out
}

/// Formats `left op right`.
pub(crate) fn comparison(op: Comparison, left: &Expr, right: &Expr, table: &Table) -> String {
    format!("{}{}{}", expression(left, table), sign(op), expression(right, table))
}

/// A column, to format sets of its keys as values.
struct Column<'t> {
    table: &'t Table,
    column: usize,
}

impl Column<'_> {
    fn name(&self) -> &str {
        &self.table.schema().fields[self.column].name
    }

    fn set(&self, set: &Set) -> String {
        let (first, last) = self.ends();
        let name = self.name();
        if set.ranges().is_empty() {
            return format!("{name} IS NULL");
        }
        let within = set.within(first, last);
        let without = gaps(&within, first, last);
        let values = match (within.as_slice(), without.as_slice()) {
            (_, []) => format!("{name} IS NOT NULL"),
            ([], _) => "FALSE".into(),
            ([one], _) => self.range(*one, (first, last)),
            (_, [(a, b)]) if a == b => format!("{name} <> {}", self.key(*a)),
            (_, [(a, b)]) => format!("{name} NOT BETWEEN {} AND {}", self.key(*a), self.key(*b)),
            (some, others) => self.list(some, others, (first, last)),
        };
        if set.nulls { format!("({values} OR {name} IS NULL)") } else { values }
    }

    /// Returns the range of its keys.
    fn ends(&self) -> (i128, i128) {
        match self.table.columns()[self.column].dictionary() {
            Some(dictionary) => (0, (dictionary.len() as i128 - 1).max(0)),
            None if self.kind() == Kind::Boolean => (0, 1),
            None if matches!(self.kind(), Kind::Decimal { .. }) => (i128::MIN, i128::MAX),
            None => (i64::MIN.into(), i64::MAX.into()),
        }
    }

    fn range(&self, (a, b): (i128, i128), (first, last): (i128, i128)) -> String {
        let name = self.name();
        match (a, b) {
            _ if a == b => format!("{name} = {}", self.key(a)),
            _ if a == first => format!("{name} <= {}", self.key(b)),
            _ if b == last => format!("{name} >= {}", self.key(a)),
            _ => format!("{name} BETWEEN {} AND {}", self.key(a), self.key(b)),
        }
    }

    fn list(&self, some: &[(i128, i128)], others: &[(i128, i128)], ends: (i128, i128)) -> String {
        let name = self.name();
        let single = |ranges: &[(i128, i128)]| {
            ranges.len() <= NAMED_MAX && ranges.iter().all(|(a, b)| a == b)
        };
        let keys = |ranges: &[(i128, i128)]| {
            ranges.iter().map(|&(key, _)| self.key(key)).collect::<Vec<_>>().join(", ")
        };
        if single(some) {
            return format!("{name} IN ({})", keys(some));
        }
        if single(others) {
            return format!("{name} NOT IN ({})", keys(others));
        }
        if some.len() <= NAMED_MAX {
            let ranges: Vec<_> = some.iter().map(|&range| self.range(range, ends)).collect();
            return format!("({})", ranges.join(" OR "));
        }
        match self.table.columns()[self.column].dictionary() {
            Some(dictionary) => {
                let strings: i128 = some.iter().map(|(a, b)| b - a + 1).sum();
                format!("{name} IN ({strings} of {} strings)", dictionary.len())
            }
            None => format!("{name} IN ({} ranges)", some.len()),
        }
    }

    fn kind(&self) -> Kind {
        self.table.schema().fields[self.column].kind
    }

    /// Formats the value of a key.
    fn key(&self, key: i128) -> String {
        if let Kind::Decimal { scale } = self.kind() {
            return literal(&Value::Decimal { mantissa: key, scale });
        }
        let key = key as i64;
        literal(&match self.kind() {
            Kind::Boolean => Value::Boolean(key != 0),
            Kind::Float => {
                Value::Float(f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64))
            }
            Kind::Date => Value::Date(key as i32),
            Kind::Timestamp => Value::Timestamp(key),
            Kind::Text => match self.table.columns()[self.column].dictionary() {
                Some(dictionary) => Value::Text(dictionary.get(key as usize).into()),
                None => Value::Integer(key),
            },
            Kind::Integer | Kind::Decimal { .. } | Kind::Null => Value::Integer(key),
        })
    }
}

/// Formats a value as in a condition.
fn literal(value: &Value) -> String {
    let shown = naive::shown(value.into());
    match value {
        Value::Null => "NULL".into(),
        Value::Boolean(_) | Value::Integer(_) | Value::Decimal { .. } | Value::Float(_) => {
            shown.into_owned()
        }
        Value::Date(_) => format!("DATE '{shown}'"),
        Value::Time(_) => format!("TIME '{shown}'"),
        Value::Timestamp(_) => format!("TIMESTAMP '{shown}'"),
        Value::Interval { .. } => format!("INTERVAL '{shown}'"),
        Value::Text(text) => quoted(text),
    }
}

fn quoted(text: &str) -> String {
    let more = text.chars().nth(TEXT_MAX).is_some();
    let cut: String = text.chars().take(TEXT_MAX).collect();
    format!("'{}{}'", cut.replace('\'', "''"), if more { "…" } else { "" })
}

fn write_expression(expr: &Expr, table: &Table, out: &mut String) {
    if out.len() > EXPRESSION_MAX {
        return;
    }
    let inner = |expr: &Expr, out: &mut String| write_operand(expr, table, out);
    match expr {
        Expr::Literal(value) => out.push_str(&literal(value)),
        Expr::Column(column) => out.push_str(&table.schema().fields[*column].name),
        Expr::Not(operand) => {
            out.push_str("NOT ");
            inner(operand, out);
        }
        Expr::And(operands) => joined(operands, " AND ", inner, out),
        Expr::Or(operands) => joined(operands, " OR ", inner, out),
        Expr::Compare { op, left, right } => {
            inner(left, out);
            out.push_str(sign(*op));
            inner(right, out);
        }
        Expr::In { operand, list } => {
            inner(operand, out);
            out.push_str(" IN (");
            joined(list, ", ", inner, out);
            out.push(')');
        }
        Expr::Among { column, keys } => out.push_str(&among(*column, keys, table)),
        Expr::Match { operand, pattern } => {
            inner(operand, out);
            write_pattern(pattern, table, out);
        }
        Expr::IsNull(operand) => {
            inner(operand, out);
            out.push_str(" IS NULL");
        }
        Expr::Is { operand, truth } => {
            inner(operand, out);
            out.push_str(match truth {
                Some(true) => " IS TRUE",
                Some(false) => " IS FALSE",
                None => " IS UNKNOWN",
            });
        }
        Expr::Arithmetic { op, left, right } => {
            inner(left, out);
            out.push_str(arithmetic(*op));
            inner(right, out);
        }
        Expr::Negate(operand) => {
            out.push('-');
            inner(operand, out);
        }
        Expr::Case { .. } | Expr::Cast { .. } | Expr::Call { .. } => write_call(expr, table, out),
    }
}

fn among(column: usize, keys: &Keys, table: &Table) -> String {
    format!("{} IN ({} keys)", table.schema().fields[column].name, keys.len())
}

/// Formats an expression that has its own brackets.
fn write_call(expr: &Expr, table: &Table, out: &mut String) {
    let inner = |expr: &Expr, out: &mut String| write_expression(expr, table, out);
    match expr {
        Expr::Case { branches, otherwise } => {
            out.push_str("CASE");
            for (condition, result) in branches {
                out.push_str(" WHEN ");
                inner(condition, out);
                out.push_str(" THEN ");
                inner(result, out);
            }
            if let Some(otherwise) = otherwise {
                out.push_str(" ELSE ");
                inner(otherwise, out);
            }
            out.push_str(" END");
        }
        Expr::Cast { operand, to } => {
            out.push_str("CAST(");
            inner(operand, out);
            // Writing to a string does not fail.
            let _ = write!(out, " AS {to:?})");
        }
        Expr::Call { function, arguments } => {
            for (at, letter) in format!("{function:?}").char_indices() {
                if at > 0 && letter.is_ascii_uppercase() {
                    out.push('_');
                }
                out.push(letter.to_ascii_uppercase());
            }
            out.push('(');
            joined(arguments, ", ", inner, out);
            out.push(')');
        }
        _ => {}
    }
}

/// Formats an operand, in brackets if it has operands itself.
fn write_operand(expr: &Expr, table: &Table, out: &mut String) {
    let closed = matches!(
        expr,
        Expr::Literal(_)
            | Expr::Column(_)
            | Expr::Call { .. }
            | Expr::Cast { .. }
            | Expr::Case { .. }
            | Expr::Negate(_)
    );
    if closed {
        return write_expression(expr, table, out);
    }
    out.push('(');
    write_expression(expr, table, out);
    out.push(')');
}

fn joined(
    operands: &[Expr],
    between: &str,
    mut write: impl FnMut(&Expr, &mut String),
    out: &mut String,
) {
    for (at, operand) in operands.iter().enumerate() {
        if out.len() > EXPRESSION_MAX {
            return;
        }
        if at > 0 {
            out.push_str(between);
        }
        write(operand, out);
    }
}

fn write_pattern(pattern: &Pattern, table: &Table, out: &mut String) {
    let by = match pattern {
        Pattern::Fixed(pattern) => pattern.by(),
        Pattern::Computed { by, .. } => *by,
    };
    out.push_str(match by {
        Matcher::Like => " LIKE ",
        Matcher::Similar => " SIMILAR TO ",
        Matcher::Regex => " LIKE_REGEX ",
    });
    match pattern {
        Pattern::Fixed(pattern) => out.push_str(&quoted(pattern.source())),
        Pattern::Computed { text, .. } => write_operand(text, table, out),
    }
}

fn sign(op: Comparison) -> &'static str {
    match op {
        Comparison::Equal => " = ",
        Comparison::NotEqual => " <> ",
        Comparison::Less => " < ",
        Comparison::LessOrEqual => " <= ",
        Comparison::Greater => " > ",
        Comparison::GreaterOrEqual => " >= ",
    }
}

fn arithmetic(op: Arithmetic) -> &'static str {
    match op {
        Arithmetic::Add => " + ",
        Arithmetic::Subtract => " - ",
        Arithmetic::Multiply => " * ",
        Arithmetic::Divide => " / ",
        Arithmetic::Remainder => " % ",
        Arithmetic::Concatenate => " || ",
    }
}
