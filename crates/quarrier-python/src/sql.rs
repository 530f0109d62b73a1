//! Full SQL, in modules that include an engine for it.
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
    /// Whether a query of one table in packed columns should be left to its scan, which gives the
    /// same answer faster.
    fn leaves_to_scan(&self, query: &Query, schema: &Schema) -> bool;

    /// Answers all statements, in order; those over the same table share one pass. Called without
    /// the interpreter's lock. Ends soon after `stop` becomes true.
    ///
    /// # Errors
    /// The error of the first statement that fails.
    fn answer(&self, asked: StatementBatch, stop: &Arc<AtomicBool>) -> Result<Answers, Refused>;
}

static ENGINE: OnceLock<&'static dyn Engine> = OnceLock::new();

/// Sets the engine of this module, once.
pub fn provide(engine: &'static dyn Engine) {
    let _ = ENGINE.set(engine);
}

/// Returns the engine of this module, if it has one.
pub(crate) fn engine() -> Option<&'static dyn Engine> {
    ENGINE.get().copied()
}

/// Statements, and the tables and machine to run them with.
#[derive(Debug)]
pub struct StatementBatch {
    /// Tables by name; statements may name files, too.
    pub tables: Vec<(String, InputTable)>,
    /// One statement in each.
    pub statements: Vec<String>,
    /// The number of threads, at least 1.
    pub workers: usize,
    /// Proxies and credentials for remote sources.
    pub environment: Environment,
    /// The machine that searches are planned for.
    pub machine: Machine,
}

/// A table as the caller passed it.
#[derive(Debug, Clone)]
pub enum InputTable {
    /// Rows in memory.
    Rows(Rows),
    /// A file, glob or URL.
    File(String),
}

/// Rows in memory. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Rows {
    /// Packed columns.
    Packed(Arc<Table>),
    /// Arrow data of types that packed columns lack: lists, bytes, times of day.
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
    /// The first rejected messages of files, up to the limit.
    pub rejects: Vec<Reject>,
    /// The number of all rejected messages.
    pub rejected: u64,
    /// One line for each range of a source that could not be read.
    pub notes: Vec<String>,
    /// Notices of sources that were read in full, a line each.
    pub notices: Vec<String>,
}

/// Why a statement has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The caller stopped it.
    Stopped,
    /// A statement is invalid or unsupported.
    Statement {
        /// Why it was refused, and what to try.
        reason: String,
        /// Line and column, from 1, if known.
        place: Option<(u64, u64)>,
    },
    /// A statement names a column that does not exist.
    UnknownColumn {
        /// Which column, and what to try.
        reason: String,
    },
    /// A table cannot be opened.
    Table {
        /// The table's name, usually that of a file.
        name: String,
        /// Why.
        reason: String,
    },
    /// An expression that the answer depends on has no value for a row.
    Value {
        /// Why.
        reason: String,
    },
    /// There is not enough memory.
    Memory {
        /// What needed it, and what to try.
        reason: String,
    },
    /// The engine cannot work.
    Engine {
        /// Why.
        reason: String,
    },
}
