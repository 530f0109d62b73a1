//! Standing conditions of a subscription: the rows of a table, as they were when each message arrived.
//!
//! ```text
//!  table of conditions ─ learn(up to a mark) ─→ pending ─ advance(before a mark) ─→ Standing ─→ find(row)
//! ```
//!
//! Both tables share one log, so marks order their changes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_filter::{Expr, MatchedRow, Standing, sql};
use quarrier_messages::kept::Changes;
use quarrier_messages::{Kind, Schema, Table, Value};

use super::DataFolder;
use crate::filter::in_parallel;
use crate::{Error, Result};

/// The table of conditions, and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionTable {
    /// The name of the table.
    pub table: String,
    /// The column that identifies a condition: strings or integers.
    pub id: String,
    /// The column with the conditions, as written after `WHERE`.
    pub condition: String,
}

/// A condition that concerns a row of a subscription.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Matched {
    /// The id of the condition.
    pub id: Value,
    /// Why it has no value for the row; `None` if it is TRUE.
    pub fault: Option<String>,
}

/// The id of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Id {
    Null,
    Integer(i64),
    Text(Box<str>),
}

impl From<&Id> for Value {
    fn from(id: &Id) -> Value {
        match id {
            Id::Null => Value::Null,
            Id::Integer(number) => Value::Integer(*number),
            Id::Text(text) => Value::Text(text.clone()),
        }
    }
}

/// A row of the table of conditions: the id and the text of the condition.
type Line = Arc<(Id, Option<Box<str>>)>;

/// A condition, or why there is none.
type Bound = std::result::Result<Expr, String>;

#[derive(Debug)]
struct PendingLine {
    mark: u64,
    is_gone: bool,
    line: Line,
}

/// The conditions as of a mark, and their later changes.
#[derive(Debug)]
pub(super) struct Conditions {
    names: ConditionTable,
    id_kind: Kind,
    schema: Schema,
    /// The indexes of the columns in `schema`.
    columns: (usize, usize),
    pending: VecDeque<PendingLine>,
    /// All changes up to this mark are applied or pending.
    known_mark: u64,
    /// The schema of the rows.
    rows: Schema,
    standing: Standing,
    lines: HashMap<u64, Line>,
    keys: HashMap<Line, Vec<u64>>,
    next_key: u64,
    /// Lines that are no conditions, and why, until a row reports them.
    refused: Vec<(u64, String)>,
    found: MatchedRow,
}

impl Conditions {
    /// Reads the conditions as of a mark, for rows of this schema.
    pub(super) fn start(
        kept: &DataFolder,
        names: &ConditionTable,
        mark: u64,
        rows: &Schema,
        (workers, stop): (usize, &AtomicBool),
    ) -> Result<Conditions> {
        let table = kept.named(&names.table)?;
        let names = ConditionTable { table, ..names.clone() };
        let store = kept.store();
        let then = match store.whole_at(&names.table, mark, (workers, stop))? {
            Some(then) => then,
            None => store.whole(&names.table, workers, stop)?,
        };
        let schema = then.table().schema().clone();
        let columns = columns_of(&names, &schema)?;
        let id_kind = match schema.fields[columns.0].kind {
            Kind::Integer => Kind::Integer,
            _ => Kind::Text,
        };
        let mut conditions = Conditions {
            names,
            id_kind,
            schema,
            columns,
            pending: VecDeque::new(),
            known_mark: 0,
            rows: rows.clone(),
            standing: Standing::new(rows),
            lines: HashMap::new(),
            keys: HashMap::new(),
            next_key: 0,
            refused: Vec::new(),
            found: MatchedRow::default(),
        };
        conditions.push(&then, mark)?;
        conditions.known_mark = mark;
        conditions.advance(mark.saturating_add(1));
        Ok(conditions)
    }

    /// Returns the type of the ids.
    pub(super) fn id_kind(&self) -> Kind {
        self.id_kind
    }

    /// Reads the changes up to a mark that is durable.
    pub(super) fn learn(&mut self, kept: &DataFolder, to: u64, stop: &AtomicBool) -> Result<()> {
        while self.known_mark < to {
            let range = (self.known_mark, to);
            let changes = kept.store().changes(&self.names.table, range, &self.schema, stop)?;
            if self.schema != *changes.table().schema() {
                self.schema = changes.table().schema().clone();
                self.columns = columns_of(&self.names, &self.schema)?;
            }
            self.push(&changes, to)?;
            if changes.mark() <= self.known_mark {
                break;
            }
            self.known_mark = changes.mark().min(to);
        }
        Ok(())
    }

    /// Appends the changes after the known mark, up to another, to the pending ones.
    fn push(&mut self, changes: &Changes, to: u64) -> Result<()> {
        let table = changes.table();
        for row in 0..table.rows() {
            let mark = changes.mark_of(row);
            if mark > self.known_mark && mark <= to {
                let line = self.line(table, row)?;
                self.pending.push_back(PendingLine { mark, is_gone: changes.is_gone(row), line });
            }
        }
        Ok(())
    }

    fn line(&self, table: &Table, row: u64) -> Result<Line> {
        let id = match (table.value(row, self.columns.0), self.id_kind) {
            (Value::Null, _) => Id::Null,
            (Value::Integer(number), Kind::Integer) => Id::Integer(number),
            (Value::Integer(number), _) => Id::Text(number.to_string().into()),
            (Value::Text(text), Kind::Text) => Id::Text(text),
            _ => {
                return Err(Error::Request(format!(
                    "a message changed the type of column {} of {}; subscribe again after mark {}",
                    self.names.id, self.names.table, self.known_mark
                )));
            }
        };
        let condition = match table.value(row, self.columns.1) {
            Value::Text(text) => Some(text),
            _ => None,
        };
        Ok(Arc::new((id, condition)))
    }

    /// Applies the pending changes before a mark.
    pub(super) fn advance(&mut self, before: u64) {
        let count = self.pending.partition_point(|line| line.mark < before);
        if count == 0 {
            return;
        }
        let due: Vec<PendingLine> = self.pending.drain(..count).collect();
        let rows = &self.rows;
        let bind = |it: &PendingLine| (!it.is_gone).then(|| bound(&it.line, rows));
        let conditions = match &due[..] {
            [one] => vec![bind(one)],
            many => in_parallel(many, bind),
        };
        for (PendingLine { line, .. }, condition) in due.into_iter().zip(conditions) {
            match condition {
                Some(condition) => self.insert(line, condition),
                None => self.remove(&line),
            }
        }
    }

    fn insert(&mut self, line: Line, condition: Bound) {
        self.next_key += 1;
        let key = self.next_key;
        self.put(key, condition);
        self.keys.entry(Arc::clone(&line)).or_default().push(key);
        self.lines.insert(key, line);
    }

    fn put(&mut self, key: u64, condition: Bound) {
        match condition {
            Ok(condition) => self.standing.insert(key, condition),
            Err(reason) => self.refused.push((key, reason)),
        }
    }

    fn remove(&mut self, line: &Line) {
        // Equal lines have equal effects.
        let Some(keys) = self.keys.get_mut(line) else { return };
        let Some(key) = keys.pop() else { return };
        if keys.is_empty() {
            self.keys.remove(line);
        }
        self.lines.remove(&key);
        self.standing.remove(key);
        self.refused.retain(|(refused, _)| *refused != key);
    }

    /// Binds the conditions to rows of another schema.
    pub(super) fn rebind(&mut self, rows: &Schema) {
        if *rows == self.rows {
            return;
        }
        self.rows = rows.clone();
        self.standing = Standing::new(rows);
        // Those that are still refused are reported again, since the reason may be another.
        self.refused.clear();
        let mut lines: Vec<(u64, Line)> = self.lines.drain().collect();
        lines.sort_unstable_by_key(|(key, _)| *key);
        let conditions = in_parallel(&lines, |(_, line)| bound(line, rows));
        for ((key, _), condition) in lines.iter().zip(conditions) {
            self.put(*key, condition);
        }
        self.lines = lines.into_iter().collect();
    }

    /// Appends the conditions that are TRUE for a row, and, unless it is gone, those that have no value for
    /// it, and those that are no conditions, unless another row reported them.
    pub(super) fn find(&mut self, table: &Table, row: u64, is_gone: bool, into: &mut Vec<Matched>) {
        self.standing.find(table, row, &mut self.found);
        let id_of = |key: &u64| self.lines.get(key).map_or(Value::Null, |line| (&line.0).into());
        into.extend(self.found.matching.iter().map(|key| Matched { id: id_of(key), fault: None }));
        if is_gone {
            return;
        }
        let faults = self.found.faults.iter();
        into.extend(
            faults.map(|(key, fault)| Matched { id: id_of(key), fault: Some(fault.to_string()) }),
        );
        let refused = std::mem::take(&mut self.refused);
        into.extend(
            refused
                .into_iter()
                .map(|(key, reason)| Matched { id: id_of(&key), fault: Some(reason) }),
        );
    }
}

/// Binds the condition of a line to rows of a schema.
fn bound((_, text): &(Id, Option<Box<str>>), rows: &Schema) -> Bound {
    match text {
        Some(text) => sql::condition(text, rows).map_err(|error| error.to_string()),
        None => Err("the condition is NULL".to_string()),
    }
}

/// Finds the columns of the ids and of the conditions.
fn columns_of(names: &ConditionTable, schema: &Schema) -> Result<(usize, usize)> {
    let known = || schema.fields.iter().map(|field| &*field.name);
    let find = |name: &str| {
        let mut alike = known().enumerate().filter(|(_, it)| it.eq_ignore_ascii_case(name));
        let exact = known().position(|it| it == name);
        let only = alike.next().filter(|_| alike.next().is_none()).map(|(at, _)| at);
        exact.or(only).ok_or_else(|| {
            let reason = sql::unknown_column(name, known());
            Error::Request(format!("MATCHING {}: {reason}", names.table))
        })
    };
    let (id, condition) = (find(&names.id)?, find(&names.condition)?);
    let refuse = |name: &str, needed: &str| {
        Error::Request(format!("MATCHING {}: column {name} must have {needed}", names.table))
    };
    if !matches!(schema.fields[id].kind, Kind::Integer | Kind::Text | Kind::Null) {
        return Err(refuse(&names.id, "strings or integers"));
    }
    if !matches!(schema.fields[condition].kind, Kind::Text | Kind::Null) {
        return Err(refuse(&names.condition, "conditions as strings"));
    }
    Ok((id, condition))
}
