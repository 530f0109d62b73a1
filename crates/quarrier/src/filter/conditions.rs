//! Conditions as written, bound to the types in the sample, and bound again for messages with other
//! types.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use quarrier_core::name;
use quarrier_core::sync::lock;
use quarrier_core::threads;
use quarrier_filter::sql::{self, Lists};
use quarrier_filter::{Expr, Sieve};
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
    place: Place,
}

/// Where a condition is written, for error messages.
#[derive(Debug, Clone)]
enum Place {
    Argument,
    Line { file: Arc<str>, line: usize },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Argument => f.write_str("condition"),
            Place::Line { file, line } => write!(f, "{file}:{line}"),
        }
    }
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
        let written = Written { text: text.into(), place: Place::Argument };
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
            Error::Request(format!(
                "{}: cannot read the conditions: not UTF-8",
                name::of_path(path)
            ))
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

    /// Whether the conditions are valid for columns with these names and some types.
    pub(super) fn are_right_somewhere(&self, schema: &Schema) -> bool {
        let unknown = |field: &Field| Field { name: field.name.clone(), kind: Kind::Null };
        let mut schema = Schema { fields: schema.fields.iter().map(unknown).collect() };
        self.bind(&mut schema, Lists::default()).is_ok()
    }

    /// Binds all conditions to the columns of a table.
    ///
    /// # Errors
    /// [`Error::Condition`] for the first invalid condition, [`Error::NoColumn`] for the first column
    /// that the table lacks.
    pub fn bound(&self, schema: &Schema) -> Result<Vec<Expr>> {
        let bind = |written: &Written| {
            let bound = sql::condition(&written.text, schema);
            bound.map_err(|error| match error {
                quarrier_filter::Error::Column { name, error } => {
                    let reason = format!("{}: {error}", written.place);
                    Error::NoColumn { name: name.to_string(), reason }
                }
                error => Error::Condition { place: written.place.to_string(), error },
            })
        };
        in_parallel(&self.written, bind).into_iter().collect()
    }

    /// Binds all conditions. Columns that `schema` lacks are added to it with [`Kind::Null`], and
    /// returned with the error to report if no message has such a column. Lists that conditions name
    /// are added to `lists` in the same way, with columns for their elements.
    ///
    /// # Errors
    /// [`Error::Condition`] for the first invalid condition.
    pub(super) fn bind(&self, schema: &mut Schema, lists: Lists) -> Result<Bound> {
        // Conditions on known columns do not depend on each other.
        let bind =
            |written: &Written| sql::condition_of_messages(&written.text, schema, &lists).ok();
        let known = in_parallel(&self.written, bind);
        sql::together(|| self.bind_rest(known, schema, lists))
    }

    fn bind_rest(
        &self,
        known: Vec<Option<Expr>>,
        schema: &mut Schema,
        lists: Lists,
    ) -> Result<Bound> {
        let mut bound =
            Bound { exprs: Vec::with_capacity(known.len()), unknown: Vec::new(), lists };
        for (written, known) in self.written.iter().zip(known) {
            if let Some(expr) = known {
                bound.exprs.push(expr);
                continue;
            }
            let unknown = |name: &str, error: &quarrier_filter::Error| Unknown {
                name: name.to_string(),
                reason: format!("{}: {error}", written.place),
            };
            let expr = loop {
                match sql::condition_of_messages(&written.text, schema, &bound.lists) {
                    Ok(expr) => break expr,
                    Err(quarrier_filter::Error::Column { name, error }) => {
                        bound.unknown.push(unknown(&name, &error));
                        schema.fields.push(Field { name, kind: Kind::Null });
                    }
                    Err(quarrier_filter::Error::List { path, error }) => {
                        if !bound.lists.add(&path, schema) {
                            bound.unknown.push(unknown(&path, &error));
                        }
                    }
                    Err(error) => {
                        return Err(Error::Condition { place: written.place.to_string(), error });
                    }
                }
            };
            bound.exprs.push(expr);
        }
        Ok(bound)
    }
}

/// Number of conditions to bind on one thread at a time.
const CONDITIONS_AT_ONCE: usize = 1_000;

/// Binds conditions that do not depend on each other, with one thread per CPU if they are many.
pub(crate) fn in_parallel<C: Sync, T: Send>(all: &[C], bind: impl Fn(&C) -> T + Sync) -> Vec<T> {
    let pieces: Vec<&[C]> = all.chunks(CONDITIONS_AT_ONCE).collect();
    let threads =
        std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(pieces.len()));
    let (next, bind) = (AtomicUsize::new(0), &bind);
    let mut done: Vec<(usize, Vec<T>)> = threads::team(0..threads, |_| {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(number) else { return done };
            done.push((number, sql::together(|| piece.iter().map(bind).collect())));
        }
    })
    .into_iter()
    .flatten()
    .collect();
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, piece)| piece).collect()
}

/// Bound conditions.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) exprs: Vec<Expr>,
    pub(super) unknown: Vec<Unknown>,
    pub(super) lists: Lists,
}

/// A requested column that no message has had yet.
#[derive(Debug, Clone)]
pub(super) struct Unknown {
    pub(super) name: String,
    /// The error if no message has the column.
    pub(super) reason: String,
}

fn of_text(path: &Path, text: &str) -> std::result::Result<Vec<Written>, String> {
    let name = name::of_path(path);
    let file: Arc<str> = name.to_string().into();
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches(';').trim_end();
        if line.is_empty() || line.starts_with("--") {
            continue;
        }
        let place = Place::Line { file: Arc::clone(&file), line: number + 1 };
        all.push(Written { text: line.to_string(), place });
    }
    match all.len() {
        0 => Err(format!("{name}: has no conditions; write one a line")),
        1..=CONDITIONS_MAX => Ok(all),
        _ => Err(format!(
            "{name}: more than {CONDITIONS_MAX} conditions; split them into several runs"
        )),
    }
}

/// Sieves for messages with values of types not seen before, and with longer lists.
#[derive(Debug)]
pub(super) struct Rebinding {
    conditions: Arc<Conditions>,
    stage: Mutex<Arc<Stage>>,
    known: Mutex<HashMap<(usize, Misfits), Arc<Rebound>>>,
}

/// The conditions bound to the columns of some messages. Later stages append columns for more
/// elements of lists; earlier columns keep their indexes.
#[derive(Debug)]
pub(super) struct Stage {
    /// The number of earlier stages.
    pub(super) number: usize,
    pub(super) schema: Schema,
    pub(super) lists: Lists,
    pub(super) sieve: Sieve,
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
    /// Starts with the conditions bound to a schema with these lists.
    pub(super) fn new(
        conditions: Arc<Conditions>,
        (schema, lists): (Schema, Lists),
        sieve: &Sieve,
    ) -> Self {
        let stage = Stage { number: 0, schema, lists, sieve: sieve.clone() };
        Rebinding { conditions, stage: Mutex::new(Arc::new(stage)), known: Mutex::default() }
    }

    /// The latest stage.
    pub(super) fn stage(&self) -> Arc<Stage> {
        Arc::clone(&lock(&self.stage))
    }

    /// Returns a stage with columns for these elements: pairs of a list's number and an index.
    ///
    /// # Errors
    /// A condition becomes too large.
    pub(super) fn with_elements(
        &self,
        elements: &[(usize, u64)],
    ) -> quarrier_filter::Result<Arc<Stage>> {
        let mut last = lock(&self.stage);
        if elements.iter().all(|&(list, index)| last.lists.has(list, index)) {
            return Ok(Arc::clone(&last));
        }
        let (mut schema, mut lists) = (last.schema.clone(), last.lists.clone());
        for &(list, index) in elements {
            lists.grow(list, index, &mut schema);
        }
        let bind = |written: &Written| sql::condition_of_messages(&written.text, &schema, &lists);
        let bound: quarrier_filter::Result<Vec<Expr>> =
            sql::together(|| self.conditions.written.iter().map(bind).collect());
        let exprs = bound?;
        let sieve = Sieve::of(&schema, exprs.into()).with_lists(&lists);
        *last = Arc::new(Stage { number: last.number + 1, schema, lists, sieve });
        Ok(Arc::clone(&last))
    }

    /// The conditions of a stage bound to the types that a message needs. The result depends only on
    /// that message and the sample, not on other messages.
    pub(super) fn rebound(&self, stage: &Stage, misfits: &Misfits) -> Arc<Rebound> {
        let known = || lock(&self.known);
        let key = (stage.number, misfits.clone());
        if let Some(rebound) = known().get(&key) {
            return Arc::clone(rebound);
        }
        let rebound = Arc::new(self.bind(stage, misfits));
        let mut known = known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, Arc::clone(&rebound));
        rebound
    }

    fn bind(&self, stage: &Stage, misfits: &Misfits) -> Rebound {
        let Stage { schema: all, lists, .. } = stage;
        let mut schema = all.clone();
        for &(column, kind) in misfits {
            schema.fields[column].kind = kind;
        }
        let mut is_wrong = false;
        let bound = self.conditions.written.iter().map(|written| {
            let bound = sql::condition_of_messages(&written.text, &schema, lists);
            is_wrong |= bound.is_err();
            bound.unwrap_or(Expr::Literal(Value::Boolean(false)))
        });
        let exprs: Vec<Expr> = bound.collect();
        // Fields missing from the sample are still matched by name, ignoring case.
        let fields = all.fields.iter().enumerate();
        let open = fields.filter(|(_, field)| field.kind == Kind::Null).map(|(column, _)| column);
        let sieve = Sieve::of(&schema, exprs.into()).open(open).with_lists(lists);
        Rebound { sieve, is_wrong }
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
