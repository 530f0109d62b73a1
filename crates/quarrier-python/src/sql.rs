//! Full SQL, in modules that have an engine for it.
//!
//! ```text
//!  Table.query, quarrier.query ─→ queries beyond one table ─→ StatementBatch ─→ Engine ─→ Answers
//!                                                                           quarrier-python-sql
//! ```

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use quarrier::{Environment, Machine};
use quarrier_filter::Query;
use quarrier_messages::{Reject, Schema, Table};

/// Answers statements of any kind.
pub trait Engine: Send + Sync {
    /// Whether a query about one table in packed columns is left to its scan, which has the same
    /// answer sooner.
    fn leaves_to_scan(&self, query: &Query, schema: &Schema) -> bool;

    /// Answers all statements, in their order; those that search the same table share one pass. Called
    /// without the interpreter's lock. Ends soon after `stop` has become true.
    ///
    /// # Errors
    /// The error of the first statement without an answer.
    fn answer(&self, asked: StatementBatch, stop: &Arc<AtomicBool>) -> Result<Answers, Refused>;
}

static ENGINE: OnceLock<&'static dyn Engine> = OnceLock::new();

/// Gives this module an engine, once.
pub fn provide(engine: &'static dyn Engine) {
    let _ = ENGINE.set(engine);
}

/// The engine of this module.
pub(crate) fn engine() -> Option<&'static dyn Engine> {
    ENGINE.get().copied()
}

/// Statements, and the tables and machine to run them with.
#[derive(Debug)]
pub struct StatementBatch {
    /// Tables by their names; statements may name files, too.
    pub tables: Vec<(String, Given)>,
    /// One statement each.
    pub statements: Vec<String>,
    /// Threads, at least 1.
    pub workers: usize,
    /// Proxies and credentials for remote sources.
    pub environment: Environment,
    /// The machine by which searches are planned.
    pub machine: Machine,
}

/// A table as the caller gave it.
#[derive(Debug, Clone)]
pub enum Given {
    /// In memory.
    Rows(Rows),
    /// A file, glob or URL.
    File(String),
}

/// Rows in memory. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Rows {
    /// In packed columns.
    Packed(Arc<Table>),
    /// As Arrow has them, where packed columns have no place for them: lists, bytes, times of day.
    Arrow(Arc<Batches>),
}

/// Record batches of one schema.
#[derive(Debug)]
pub struct Batches {
    /// The columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

/// The results of statements.
#[derive(Debug, Default)]
pub struct Answers {
    /// The rows of each statement.
    pub rows: Vec<Rows>,
    /// Rejected messages of files, up to the limit.
    pub rejects: Vec<Reject>,
    /// How many do not.
    pub rejected: u64,
    /// Ranges of sources that could not be read, a line each.
    pub notes: Vec<String>,
    /// Notices of sources that were read in full, a line each.
    pub notices: Vec<String>,
}

/// Why statements have no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// It was stopped.
    Stopped,
    /// A statement is wrong, or nothing that is answered.
    Statement {
        /// Why it was refused, and what to try.
        reason: String,
        /// Line and column, from 1, where they are known.
        place: Option<(u64, u64)>,
    },
    /// A statement names a column that is not there.
    UnknownColumn {
        /// Which, and what to try.
        reason: String,
    },
    /// A table cannot be opened.
    Table {
        /// Its name, mostly that of a file.
        name: String,
        /// Why.
        reason: String,
    },
    /// A row has no value, and the answer depends on it.
    Value {
        /// Why.
        reason: String,
    },
    /// There is not enough memory.
    Memory {
        /// For what, and what to try.
        reason: String,
    },
    /// The engine cannot work.
    Engine {
        /// Why.
        reason: String,
    },
}
