//! Conditions as written, bound to the types in the sample, and bound again for messages with other
//! types.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quarrier_core::sync::lock;
use quarrier_filter::{Expr, Sieve, sql};
use quarrier_messages::{Field, Kind, Schema, Value};

use crate::{Error, Result, read_instructions};

/// SQL-92 search conditions as written, like those after WHERE.
#[derive(Debug, Clone)]
#[must_use]
pub struct Conditions {
    written: Vec<Written>,
}

#[derive(Debug, Clone)]
struct Written {
    text: String,
    /// The location, for error messages: `condition`, or a file and a line.
    place: String,
}

/// Maximum number of conditions in one file.
const CONDITIONS_MAX: usize = 100_000;

impl Conditions {
    /// Creates an empty set.
    pub(super) fn none() -> Self {
        Conditions { written: Vec::new() }
    }

    /// Creates a set of one condition.
    pub fn one(text: impl Into<String>) -> Self {
        let written = Written { text: text.into(), place: "condition".to_string() };
        Conditions { written: vec![written] }
    }

    /// Reads the conditions in a file, one a line; lines that begin with `--` are comments.
    ///
    /// # Errors
    /// [`Error::Request`] if the file cannot be read, has no conditions, more than 100,000, or more
    /// than [`INSTRUCTION_BYTES_MAX`](crate::INSTRUCTION_BYTES_MAX) bytes; [`Error::Stopped`] soon
    /// after `stop` becomes true.
    pub fn of_file(path: &Path, stop: &AtomicBool) -> Result<Self> {
        let text = String::from_utf8(read_instructions(path, "conditions", stop)?);
        let text = text.map_err(|_| {
            Error::Request(format!("{}: cannot read the conditions: not UTF-8", path.display()))
        })?;
        Ok(Conditions { written: of_text(path, &text).map_err(Error::Request)? })
    }

    /// The number of conditions.
    pub fn len(&self) -> usize {
        self.written.len()
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// The conditions as written, in order.
    pub fn strings(&self) -> impl Iterator<Item = &str> {
        self.written.iter().map(|written| &*written.text)
    }

    /// Whether a condition names a list. All columns must then be known, since any may be an element of
    /// the list.
    pub(super) fn name_lists(&self) -> bool {
        self.strings().any(sql::is_list)
    }

    /// Whether the conditions are valid for columns with these names and some types.
    pub(super) fn are_right_somewhere(&self, schema: &Schema) -> bool {
        let unknown = |field: &Field| Field { name: field.name.clone(), kind: Kind::Null };
        let mut schema = Schema { fields: schema.fields.iter().map(unknown).collect() };
        self.bind(&mut schema).is_ok()
    }

    /// Binds all conditions to the columns of a table.
    ///
    /// # Errors
    /// [`Error::Condition`] for the first invalid condition, [`Error::NoColumn`] for the first column
    /// that the table lacks.
    pub fn bound(&self, schema: &Schema) -> Result<Vec<Expr>> {
        let Bound { exprs, unknown } = self.bind(&mut schema.clone())?;
        match unknown.into_iter().next() {
            Some(Unknown { name, reason, .. }) => Err(Error::NoColumn { name, reason }),
            None => Ok(exprs),
        }
    }

    /// Binds all conditions. Columns that `schema` lacks are added to it with [`Kind::Null`], and
    /// returned with the error to report if no message has such a column.
    ///
    /// # Errors
    /// [`Error::Condition`] for the first invalid condition.
    pub(super) fn bind(&self, schema: &mut Schema) -> Result<Bound> {
        sql::together(|| self.bind_each(schema))
    }

    fn bind_each(&self, schema: &mut Schema) -> Result<Bound> {
        let mut bound = Bound { exprs: Vec::new(), unknown: Vec::new() };
        for written in &self.written {
            let expr = loop {
                match sql::condition(&written.text, schema) {
                    Ok(expr) => break expr,
                    Err(quarrier_filter::Error::Column { name, error }) => {
                        bound.unknown.push(Unknown {
                            name: name.to_string(),
                            reason: format!("{}: {error}", written.place),
                        });
                        schema.fields.push(Field { name, kind: Kind::Null });
                    }
                    Err(error) => {
                        return Err(Error::Condition { place: written.place.clone(), error });
                    }
                }
            };
            bound.exprs.push(expr);
        }
        Ok(bound)
    }
}

/// Bound conditions.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) exprs: Vec<Expr>,
    pub(super) unknown: Vec<Unknown>,
}

/// A requested column that no message has had yet.
#[derive(Debug, Clone)]
pub(super) struct Unknown {
    pub(super) name: String,
    /// The error if no message has the column.
    pub(super) reason: String,
}

fn of_text(path: &Path, text: &str) -> std::result::Result<Vec<Written>, String> {
    let name = path.display();
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches(';').trim_end();
        if line.is_empty() || line.starts_with("--") {
            continue;
        }
        all.push(Written { text: line.to_string(), place: format!("{name}:{}", number + 1) });
    }
    match all.len() {
        0 => Err(format!("{name}: has no conditions; write one a line")),
        1..=CONDITIONS_MAX => Ok(all),
        _ => Err(format!(
            "{name}: more than {CONDITIONS_MAX} conditions; split them into several runs"
        )),
    }
}

/// Sieves for messages with values of types not seen before.
#[derive(Debug)]
pub(super) struct Rebinding {
    conditions: Arc<Conditions>,
    schema: Schema,
    known: Mutex<HashMap<Misfits, Arc<Rebound>>>,
}

/// Columns of the schema with other types, in order.
pub(super) type Misfits = Vec<(usize, Kind)>;

/// Conditions bound to other types.
#[derive(Debug)]
pub(super) struct Rebound {
    /// Conditions that cannot be bound are FALSE in it.
    pub(super) sieve: Sieve,
    /// Whether any condition cannot be bound.
    pub(super) is_wrong: bool,
}

/// Maximum number of misfit sets that are remembered; the cache is cleared when full.
const KNOWN_MAX: usize = 256;

impl Rebinding {
    pub(super) fn new(conditions: Arc<Conditions>, schema: Schema) -> Self {
        Rebinding { conditions, schema, known: Mutex::default() }
    }

    /// The schema that the conditions are first bound to.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The conditions bound to the types that a message needs. The result depends only on that message
    /// and the sample, not on other messages.
    pub(super) fn rebound(&self, misfits: &Misfits) -> Arc<Rebound> {
        let known = || lock(&self.known);
        if let Some(rebound) = known().get(misfits) {
            return Arc::clone(rebound);
        }
        let rebound = Arc::new(self.bind(misfits));
        let mut known = known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(misfits.clone(), Arc::clone(&rebound));
        rebound
    }

    fn bind(&self, misfits: &Misfits) -> Rebound {
        let mut schema = self.schema.clone();
        for &(column, kind) in misfits {
            schema.fields[column].kind = kind;
        }
        let mut is_wrong = false;
        let bound = self.conditions.written.iter().map(|written| {
            let bound = sql::condition(&written.text, &schema);
            is_wrong |= bound.is_err();
            bound.unwrap_or(Expr::Literal(Value::Boolean(false)))
        });
        let exprs: Vec<Expr> = bound.collect();
        // Fields missing from the sample are still matched by name, ignoring case.
        let fields = self.schema.fields.iter().enumerate();
        let open = fields.filter(|(_, field)| field.kind == Kind::Null).map(|(column, _)| column);
        Rebound { sieve: Sieve::new(&schema, &exprs).open(open), is_wrong }
    }
}

/// The name of a type.
pub(super) fn named_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "NULL",
        Kind::Boolean => "a boolean",
        Kind::Integer => "an integer",
        Kind::Decimal { .. } => "an exact number",
        Kind::Float => "a floating-point number",
        Kind::Date => "a date",
        Kind::Timestamp => "a timestamp",
        Kind::Text => "text",
    }
}
