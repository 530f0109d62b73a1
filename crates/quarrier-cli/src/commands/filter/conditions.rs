//! Conditions: as written, bound to what was seen of the messages, and bound again for those
//! that are otherwise.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use quarrier_filter::{Error, Expr, Sieve, sql};
use quarrier_messages::{Field, Kind, Schema, Value};

use crate::args::Asked;

/// Conditions as written.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Conditions {
    pub(in crate::commands) texts: Vec<Written>,
}

#[derive(Debug, Clone)]
pub(in crate::commands) struct Written {
    pub(in crate::commands) text: String,
    /// Where it stands, for messages: `condition`, or a file and the line in it.
    place: String,
}

/// The most conditions of one file.
const CONDITIONS_MAX: usize = 100_000;

impl Conditions {
    /// None.
    pub(super) fn none() -> Self {
        Conditions { texts: Vec::new() }
    }

    /// Whether they are right for columns of some kinds, with these names.
    pub(super) fn are_right_somewhere(&self, schema: &Schema) -> bool {
        let unknown = |field: &Field| Field { name: field.name.clone(), kind: Kind::Null };
        let mut schema = Schema { fields: schema.fields.iter().map(unknown).collect() };
        self.bind(&mut schema).is_ok()
    }

    /// # Errors
    /// What is wrong, in words.
    pub(in crate::commands) fn read(asked: &Asked) -> Result<Self, String> {
        let texts = match asked {
            Asked::One(text) => {
                vec![Written { text: text.clone(), place: "condition".to_string() }]
            }
            Asked::Many(path) => of_file(path)?,
        };
        Ok(Conditions { texts })
    }

    /// Binds all of them. Columns that `schema` does not have are added to it, of
    /// [`Kind::Null`], and returned with what is to be said if there is no such column.
    ///
    /// # Errors
    /// The first that is wrong, in words.
    pub(in crate::commands) fn bind(&self, schema: &mut Schema) -> Result<Bound, String> {
        let mut bound = Bound { exprs: Vec::new(), unknown: Vec::new() };
        for written in &self.texts {
            let expr = loop {
                match sql::condition(&written.text, schema) {
                    Ok(expr) => break expr,
                    Err(Error::Column { ref name, ref error }) => {
                        bound.unknown.push((schema.fields.len(), written.error(error)));
                        schema.fields.push(Field { name: name.clone(), kind: Kind::Null });
                    }
                    Err(error) => return Err(written.error(&error)),
                }
            };
            bound.exprs.push(expr);
        }
        Ok(bound)
    }
}

/// Conditions that are bound.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Bound {
    pub(in crate::commands) exprs: Vec<Expr>,
    /// Columns of the schema that no message had yet, and what is to be said if none has.
    pub(in crate::commands) unknown: Vec<(usize, String)>,
}

impl Written {
    fn error(&self, error: &Error) -> String {
        format!("{}: {error}", self.place)
    }
}

fn of_file(path: &Path) -> Result<Vec<Written>, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{name}: cannot read the conditions: {error}"))?;
    let mut texts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches(';').trim_end();
        if line.is_empty() || line.starts_with("--") {
            continue;
        }
        texts.push(Written { text: line.to_string(), place: format!("{name}:{}", number + 1) });
    }
    match texts.len() {
        0 => Err(format!("{name}: has no conditions; write one a line")),
        1..=CONDITIONS_MAX => Ok(texts),
        _ => Err(format!("{name}: more than {CONDITIONS_MAX} conditions; ask in several runs")),
    }
}

/// Sieves for messages whose values are of other kinds than those before.
#[derive(Debug)]
pub(super) struct Rebinding {
    conditions: Arc<Conditions>,
    schema: Schema,
    known: Mutex<HashMap<Misfits, Arc<Rebound>>>,
}

/// Columns of the schema with other kinds, in order.
pub(super) type Misfits = Vec<(usize, Kind)>;

/// Conditions bound to other kinds.
#[derive(Debug)]
pub(super) struct Rebound {
    /// Those that cannot be bound are FALSE in it.
    pub(super) sieve: Sieve,
    /// Whether there is one that cannot be bound.
    pub(super) is_wrong: bool,
}

/// Kinds of misfits that are remembered, before all are forgotten.
const KNOWN_MAX: usize = 256;

impl Rebinding {
    pub(super) fn new(conditions: Arc<Conditions>, schema: Schema) -> Self {
        Rebinding { conditions, schema, known: Mutex::default() }
    }

    /// What the conditions are bound to at first.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The conditions bound to the kinds that a message asks for. What they are does not depend
    /// on other messages than that one and those of the sample.
    pub(super) fn rebound(&self, misfits: &Misfits) -> Arc<Rebound> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
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
        let bound = self.conditions.texts.iter().map(|written| {
            let bound = sql::condition(&written.text, &schema);
            is_wrong |= bound.is_err();
            bound.unwrap_or(Expr::Literal(Value::Boolean(false)))
        });
        let exprs: Vec<Expr> = bound.collect();
        // What no message of the sample had is still found by its name without case.
        let fields = self.schema.fields.iter().enumerate();
        let open = fields.filter(|(_, field)| field.kind == Kind::Null).map(|(column, _)| column);
        Rebound { sieve: Sieve::new(&schema, &exprs).open(open), is_wrong }
    }
}

/// The kind in words.
pub(super) fn named_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "NULL",
        Kind::Boolean => "TRUE or FALSE",
        Kind::Integer => "a whole number",
        Kind::Decimal { .. } => "an exact number",
        Kind::Float => "a floating number",
        Kind::Date => "a date",
        Kind::Timestamp => "a point in time",
        Kind::Text => "text",
    }
}
