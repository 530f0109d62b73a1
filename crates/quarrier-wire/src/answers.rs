//! The interface between the protocols and the engine that answers statements.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::Notify;

use crate::failure::{Failure, Result, state};
use crate::rows::Batch;
use crate::value::Value;

/// Answers statements. Every call runs in its own task; the caller may drop the returned future at
/// any await point, once nobody needs the result.
pub trait Answers: Send + Sync + 'static {
    /// Parses one statement, and returns its parameters and columns. `declared` has the parameter
    /// types that the client declared, 0 for undeclared ones. If `describes` is set, the columns are
    /// required; otherwise they may be missing until the rows arrive.
    fn prepare<'a>(
        &'a self,
        asker: &'a Asker,
        text: &'a str,
        declared: &'a [u32],
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

    /// Begins to receive messages for a table.
    fn ingest<'a>(
        &'a self,
        asker: &'a Asker,
        target: IngestTarget,
    ) -> BoxFuture<'a, Result<Box<dyn Ingest>>>;

    /// Returns the current state of the table with this name, or of the only one whose name differs
    /// only in case.
    fn table<'a>(&'a self, _asker: &'a Asker, name: &'a str) -> BoxFuture<'a, Result<TableInfo>> {
        let found = self.tables().into_iter().find(|info| info.name == name);
        let missing = || {
            let said = format!("relation \"{name}\" does not exist");
            Failure::new(state::NO_TABLE, said)
        };
        Box::pin(std::future::ready(found.ok_or_else(missing)))
    }

    /// Returns the tables in the order of their names, as of the last refresh.
    fn tables(&self) -> Vec<TableInfo>;

    /// Returns additional samples for `/metrics`; their names lack `quarrier_`.
    fn samples(&self) -> Vec<Sample> {
        Vec::new()
    }
}

/// The client that sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The user's name.
    pub user: String,
    /// The client's application name, or an empty string.
    pub application: String,
    /// The client's address.
    pub peer: String,
    /// The connection's number.
    pub connection: u32,
}

/// A parsed statement.
#[derive(Clone)]
pub struct Prepared {
    /// The types of its parameters, as PostgreSQL's OIDs (see [`crate::kind`]).
    pub parameters: Vec<u32>,
    /// The columns of its rows; `None` if it has none.
    pub columns: Option<SchemaRef>,
    /// The first words of the completion tag: `SELECT`, `INSERT 0`, `CREATE TABLE`. The number of
    /// rows, if any, is appended to them.
    pub tag: String,
    /// Whether the statement changes anything.
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

/// The result of a statement.
pub enum Reply {
    /// Rows, in batches as they arrive.
    Rows(Rows),
    /// Completion without rows; with the number of changed rows if the statement changes rows.
    Done(Option<u64>),
    /// Like `Done`, for changes on their way to the disk: they count once the future completes, and
    /// until then no reader sees them. Such futures complete in the order in which the changes were
    /// made.
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

/// Rows that arrive over time.
pub struct Rows {
    /// The columns of the rows.
    pub schema: SchemaRef,
    /// The rows, in batches.
    pub batches: BoxStream<'static, Result<Batch>>,
    /// Whether the rows arrive live, without an end, so that no caller may wait for the last one.
    pub is_live: bool,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The target of messages, and their format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestTarget {
    /// The table's name.
    pub table: String,
    /// `json`, `csv`, `fix`, `nvfix` or `xml`; `None` to detect it.
    pub format: Option<String>,
    /// The publisher of the messages.
    pub publisher: Option<String>,
    /// The publisher's sequence number; messages whose number does not exceed its last one are
    /// dropped.
    pub sequence: Option<u64>,
    /// Whether one invalid message rejects all of them; otherwise only the invalid ones are
    /// rejected.
    pub is_whole: bool,
}

/// Messages on their way into a table. Dropping it before it finishes stores nothing.
pub trait Ingest: Send {
    /// Pushes bytes, which may end within a message. Waits while too many are in flight.
    fn push(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;

    /// Finishes after all bytes were pushed. Returns once the messages are durable.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<Marks>>;
}

/// The marks of the first and last stored message, and the number of rejected ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The mark of the first stored message.
    pub first: u64,
    /// The mark of the last stored message.
    pub last: u64,
    /// Number of stored messages.
    pub messages: u64,
    /// Number of invalid messages, all of them rejected.
    pub rejected: u64,
    /// The error of the first rejected message, with its position.
    pub reason: Option<String>,
    /// Whether the publisher had sent the messages before; then none was stored.
    pub is_duplicate: bool,
    /// Whether the messages survive a crash.
    pub durable: bool,
}

/// A table in the list of tables.
#[derive(Debug, Clone)]
pub struct TableInfo {
    /// The name.
    pub name: String,
    /// The columns.
    pub columns: SchemaRef,
    /// The number of rows, if known.
    pub rows: Option<u64>,
    /// Bytes of memory that the table takes, if known.
    pub bytes: Option<u64>,
    /// Whether messages may be appended.
    pub grows: bool,
    /// Whether the columns were declared, including their digits and whether they are required.
    pub is_declared: bool,
}

/// A sample for `/metrics`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The name without `quarrier_`; names of counters end with `_total`.
    pub name: &'static str,
    /// The meaning, for display.
    pub help: &'static str,
    /// A label and its value, if any.
    pub label: Option<(&'static str, String)>,
    /// The number.
    pub value: f64,
}

/// Cancels a statement.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    changed: Arc<Notify>,
}

impl Stop {
    /// Cancels the statement.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns whether the statement is cancelled.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Returns the flag for loops on other threads, which poll it.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// Waits until the statement is cancelled.
    pub async fn wait(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on, the waiter misses no call of `set`.
            changed.as_mut().enable();
            if self.is_set() {
                return;
            }
            changed.await;
        }
    }
}
