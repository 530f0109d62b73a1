//! The interface between the wires and the engine that answers.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::Notify;

use crate::failure::{Failure, Result, state};

/// Answers statements. Every call runs in a task of its own; the returned future is dropped, at any
/// point where it waits, once nobody wants the result.
pub trait Answers: Send + Sync + 'static {
    /// Parses one statement, and returns its parameters and columns. `told` are the parameter types
    /// that the client named, 0 for those it did not. If it `describes`, the columns are required;
    /// otherwise they may be missing until the rows come.
    fn prepare<'a>(
        &'a self,
        asker: &'a Asker,
        text: &'a str,
        told: &'a [u32],
        describes: bool,
    ) -> BoxFuture<'a, Result<Prepared>>;

    /// Starts a prepared statement with values for all of its parameters.
    fn run<'a>(
        &'a self,
        asker: &'a Asker,
        prepared: &'a Prepared,
        values: Vec<Value>,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Reply>>;

    /// Begins to take messages for a table.
    fn ingest<'a>(
        &'a self,
        asker: &'a Asker,
        target: IngestTarget,
    ) -> BoxFuture<'a, Result<Box<dyn Ingest>>>;

    /// The table of this name, or of the only one that differs in case, as it is now.
    fn table<'a>(&'a self, _asker: &'a Asker, name: &'a str) -> BoxFuture<'a, Result<TableInfo>> {
        let found = self.tables().into_iter().find(|info| info.name == name);
        let missing = || {
            let said = format!("relation \"{name}\" does not exist");
            Failure::new(state::NO_TABLE, said)
        };
        Box::pin(std::future::ready(found.ok_or_else(missing)))
    }

    /// The tables, in the order of their names, as of the last look.
    fn tables(&self) -> Vec<TableInfo>;

    /// Samples for `/metrics` beside those of the wires: names without `quarrier_`.
    fn samples(&self) -> Vec<Sample> {
        Vec::new()
    }
}

/// The client that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The user's name.
    pub user: String,
    /// The client's application name, or an empty string.
    pub application: String,
    /// Where the client is.
    pub peer: String,
    /// The connection's number.
    pub connection: u32,
}

/// A statement that was understood.
#[derive(Clone)]
pub struct Prepared {
    /// Kinds of its parameters, as PostgreSQL numbers them (see [`crate::kind`]).
    pub parameters: Vec<u32>,
    /// The columns of its rows; `None` if it has none.
    pub columns: Option<SchemaRef>,
    /// The first words of the completion tag: `SELECT`, `INSERT 0`, `CREATE TABLE`. The wires append
    /// the number of rows, if there are rows.
    pub tag: String,
    /// Whether it changes anything.
    pub changes: bool,
    /// State for [`Answers::run`].
    pub inner: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Prepared");
        shown.field("parameters", &self.parameters).field("columns", &self.columns);
        shown.field("tag", &self.tag).field("changes", &self.changes).finish_non_exhaustive()
    }
}

/// A value for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// None.
    Null,
    /// True or false.
    Bool(bool),
    /// an integer.
    Int(i64),
    /// A floating number.
    Float(f64),
    /// An exact number in decimal notation: sign, digits, a point.
    Decimal(String),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A date: `2024-02-29`.
    Date(String),
    /// A time of day: `12:34:56.5`.
    Time(String),
    /// A timestamp: `2024-02-29 12:34:56.5`, in UTC.
    Timestamp(String),
    /// Several values of one kind.
    List(Vec<Value>),
}

/// The result of a statement.
pub enum Reply {
    /// Rows, some at a time.
    Rows(Rows),
    /// Nothing but how many rows it changed, where it changes rows.
    Done(Option<u64>),
    /// The same, for changes on their way to disk, in the order in which they were made: they count
    /// once the future beside the number completes. Until then nobody sees them.
    Sent(Option<u64>, Durable),
}

/// Waits until changes are on the disk.
pub type Durable = BoxFuture<'static, Result<()>>;

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Rows(rows) => f.debug_tuple("Rows").field(&rows.schema).finish(),
            Reply::Done(rows) => f.debug_tuple("Done").field(rows).finish(),
            Reply::Sent(rows, _) => f.debug_tuple("Sent").field(rows).finish_non_exhaustive(),
        }
    }
}

/// Rows, as they come.
pub struct Rows {
    /// Their columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
    /// Whether the rows arrive live, without an end, so that nobody must wait for the last one.
    pub is_live: bool,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The table that messages go into, and their format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestTarget {
    /// The table's name.
    pub table: String,
    /// `json`, `csv`, `fix`, `nvfix` or `xml`; `None` to detect it.
    pub format: Option<String>,
    /// The publisher of the messages.
    pub publisher: Option<String>,
    /// The publisher's sequence number; messages with a number seen before are dropped.
    pub sequence: Option<u64>,
    /// Whether one invalid message rejects all of them; if not, it alone is rejected.
    pub is_whole: bool,
}

/// Messages on their way into a table. If dropped before it finishes, it stores nothing.
pub trait Ingest: Send {
    /// Takes bytes, which may end within a message. Waits while too many are in flight.
    fn push(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;

    /// All of them are there. Returns when they are durable.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Marks>>;
}

/// The marks of the first and last stored message, and the number of rejected ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The mark of the first one.
    pub first: u64,
    /// The mark of the last one.
    pub last: u64,
    /// How many were taken.
    pub messages: u64,
    /// How many made no sense, and were left out.
    pub rejected: u64,
    /// The error of the first rejected message, and its place.
    pub reason: Option<String>,
    /// Whether their publisher had sent them before, so that none was stored.
    pub is_duplicate: bool,
    /// Whether they outlive a crash.
    pub durable: bool,
}

/// A table in the list of tables.
#[derive(Debug, Clone)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: SchemaRef,
    /// How many rows it has, if that is known.
    pub rows: Option<u64>,
    /// Bytes that it takes in memory, if that is known.
    pub bytes: Option<u64>,
    /// Whether messages may be added.
    pub grows: bool,
    /// Whether its columns were declared, with their digits and with which of them need a value.
    pub is_declared: bool,
}

/// A number for `/metrics`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its name without `quarrier_`; the name of what only grows ends with `_total`.
    pub name: &'static str,
    /// Its meaning, for people.
    pub help: &'static str,
    /// A label and its value, where it has one.
    pub label: Option<(&'static str, String)>,
    /// The number.
    pub value: f64,
}

/// Ends a statement before it is done.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    told: Arc<Notify>,
}

impl Stop {
    /// Ends it.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    /// Whether it is to end.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// For loops on other threads, which look at it from time to time.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Waits until it is to end.
    pub async fn wait(&self) {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            // From here on no call of `set` is missed.
            told.as_mut().enable();
            if self.is_set() {
                return;
            }
            told.await;
        }
    }
}
