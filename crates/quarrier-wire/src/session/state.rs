//! The state of a session: its transaction, prepared statements and portals.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use tokio::time::Instant;

use crate::answers::{Asker, Durable, Prepared, Reply, Stop};
use crate::board::{Begun, Present};
use crate::failure::{Failure, Result, state};
use crate::kind;
use crate::rows::Batch;
use crate::shared::Shared;
use crate::sql::Utility;
use crate::value::Value;

use super::greet::secret;
use super::settings::Settings;
use super::wire::Wire;

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Idle,
    Open,
    Failed,
}

impl Status {
    pub(super) fn letter(self) -> u8 {
        match self {
            Status::Idle => b'I',
            Status::Open => b'T',
            Status::Failed => b'E',
        }
    }
}

/// A parsed query string.
#[derive(Debug, Clone)]
pub(super) enum TextMeaning {
    /// No statement.
    Empty,
    /// A statement about the connection.
    Utility(Utility),
    /// A statement for the engine.
    Query(Prepared),
}

/// A prepared statement.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) meaning: TextMeaning,
}

impl Statement {
    pub(super) fn parameters(&self) -> &[u32] {
        match &self.meaning {
            TextMeaning::Query(prepared) => &prepared.parameters,
            _ => &[],
        }
    }
}

/// Names and types of columns.
pub(super) type Columns = Arc<[(String, u32)]>;

/// Rows of a running statement.
pub(super) struct Cursor {
    pub(super) columns: Columns,
    pub(super) batches: BoxStream<'static, Result<Batch>>,
    /// The rest of the last batch.
    pub(super) batch: Option<Batch>,
    pub(super) stop: Stop,
    pub(super) is_over: bool,
    /// Whether the rows have no end.
    pub(super) is_live: bool,
    /// For live rows: how long to wait for the first one, if only the current rows are requested.
    pub(super) patience: Option<Duration>,
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // Stop tasks that still work for it.
        self.stop.set();
    }
}

/// A statement with its values, and its progress.
pub(super) struct Portal {
    pub(super) statement: Arc<Statement>,
    pub(super) values: Vec<Value>,
    /// Whether columns are in binary: no entry, one for all, or one each.
    pub(super) formats: Vec<bool>,
    pub(super) progress: Progress,
    /// Whether it outlives its transaction.
    pub(super) is_held: bool,
    /// Whether DECLARE created it.
    pub(super) is_cursor: bool,
}

/// The progress of a portal.
pub(super) enum Progress {
    New,
    Rows(Cursor),
    Done,
}

/// An authenticated connection.
pub(super) struct Session {
    pub(super) wire: Wire,
    pub(super) shared: Arc<Shared>,
    pub(super) asker: Asker,
    pub(super) settings: Settings,
    pub(super) status: Status,
    /// Whether messages are skipped until the next Sync.
    pub(super) is_skipping: bool,
    /// Whether a change was made since BEGIN; changes are durable at once.
    pub(super) has_changed: bool,
    /// Changes that are not on the disk yet, in order.
    pub(super) on_their_way: VecDeque<Durable>,
    pub(super) statements: HashMap<String, Arc<Statement>>,
    pub(super) portals: HashMap<String, Portal>,
    _present: Present,
}

impl Session {
    pub(super) fn new(
        mut wire: Wire,
        shared: Arc<Shared>,
        asker: Asker,
        settings: Settings,
    ) -> Self {
        let secret = secret();
        let present = shared.board.arrive(&asker, secret);
        settings.reported().for_each(|(name, value)| wire.out.parameter(name, value));
        wire.out.key_data(asker.connection, &secret);
        wire.out.ready(b'I');
        Session {
            wire,
            shared,
            asker,
            settings,
            status: Status::Idle,
            is_skipping: false,
            has_changed: false,
            on_their_way: VecDeque::new(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            _present: present,
        }
    }

    /// Begins a statement, which can be seen and cancelled from now on.
    pub(super) fn begin(&self, text: &str, stop: Stop) -> Activity {
        let limits = [self.shared.limits.statement_time, self.settings.statement_time()];
        let time = limits.into_iter().flatten().min();
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let begun = self.shared.board.begin(&self.asker, text, stop);
        Activity { begun, deadline, send_time: self.shared.limits.send_time }
    }

    /// Refuses statements in a failed transaction unless they end it.
    pub(super) fn check_transaction(&self, is_end: bool) -> Result<()> {
        if self.status == Status::Failed && !is_end {
            let said = "current transaction is aborted, commands ignored until end of transaction \
                        block";
            return Err(Failure::new(state::FAILED_TRANSACTION, said));
        }
        Ok(())
    }

    /// Closes the portals that do not outlive a transaction.
    pub(super) fn end_portals(&mut self) {
        self.portals.retain(|_, portal| portal.is_held);
    }

    /// Stores a portal under a name.
    pub(super) fn keep(&mut self, name: &str, portal: Portal) -> Result<()> {
        if self.portals.len() >= self.shared.limits.statements_max && !name.is_empty() {
            return Err(Failure::new(state::LIMIT, "too many cursors; close some"));
        }
        self.portals.insert(name.to_string(), portal);
        Ok(())
    }
}

/// A running statement.
pub(super) struct Activity {
    pub(super) begun: Begun,
    pub(super) deadline: Option<Instant>,
    pub(super) send_time: Duration,
}

impl Activity {
    /// Removes the deadline if the rows have no end.
    pub(super) fn drop_deadline_if_live(&mut self, cursor: &Cursor) {
        if cursor.is_live {
            self.begun.running.mark_endless();
            self.deadline = None;
        }
    }
}

/// Returns the names and types of the columns of a schema.
pub(super) fn columns_of(schema: &arrow_schema::Schema) -> Columns {
    let fields = schema.fields().iter();
    fields.map(|field| (field.name().clone(), kind::of(field.data_type()))).collect()
}

/// Rows, or the number of changed rows.
pub(super) enum Begins {
    Rows(Cursor),
    Done(Option<u64>),
    Sent(Option<u64>, Durable),
}

impl Begins {
    pub(super) fn of(reply: Reply, stop: &Stop) -> Self {
        match reply {
            Reply::Done(rows) => Begins::Done(rows),
            Reply::Sent(rows, durable) => Begins::Sent(rows, durable),
            Reply::Rows(rows) => Begins::Rows(Cursor {
                columns: columns_of(&rows.schema),
                batches: rows.batches,
                batch: None,
                stop: stop.clone(),
                is_over: false,
                is_live: rows.is_live,
                patience: None,
            }),
        }
    }
}
