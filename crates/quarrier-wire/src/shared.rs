//! State shared by all connections, and its limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::answers::{Answers, Stop};
use crate::auth::{Tls, Users, WrongPasswords};
use crate::board::Board;

/// Limits of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of clients at the same time.
    pub connections_max: usize,
    /// Maximum time for a client to authenticate.
    pub login_time: Duration,
    /// Maximum time of a statement, including the time to send its rows.
    pub statement_time: Option<Duration>,
    /// Maximum time for the rest of a message to arrive.
    pub message_time: Duration,
    /// Maximum time for which a client may read nothing of its pending output.
    pub send_time: Duration,
    /// Time for which statements continue during a shutdown.
    pub grace_time: Duration,
    /// Maximum bytes of a message.
    pub message_bytes_max: usize,
    /// Maximum bytes of all large messages together.
    pub messages_bytes_max: usize,
    /// Maximum number of prepared statements and portals of a connection.
    pub statements_max: usize,
    /// Maximum bytes of the SQL of a connection's prepared statements.
    pub statement_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections_max: 1_000,
            login_time: Duration::from_secs(10),
            statement_time: None,
            message_time: Duration::from_secs(120),
            send_time: Duration::from_secs(60),
            grace_time: Duration::from_secs(10),
            message_bytes_max: 64 << 20,
            messages_bytes_max: 256 << 20,
            statements_max: 1_000,
            statement_bytes_max: 16 << 20,
        }
    }
}

/// State shared by all connections.
pub(crate) struct Shared {
    pub(crate) answers: Arc<dyn Answers>,
    pub(crate) users: Option<Users>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
    pub(crate) board: Arc<Board>,
    pub(crate) log: Arc<dyn Fn(&str) + Send + Sync>,
    /// Whether the server is shutting down.
    pub(crate) closing: Stop,
    /// Whether HTTP is served only to this machine.
    pub(crate) is_local: bool,
    pub(crate) since: Instant,
    /// The folder of pages for browsers.
    pub(crate) pages: Option<PathBuf>,
    pub(crate) wrong_passwords: WrongPasswords,
    /// Bytes of large messages in memory.
    pub(crate) held: AtomicUsize,
    /// Number of connections that are open or about to be.
    pub(crate) open: AtomicUsize,
}

impl Shared {
    /// Reserves memory for a large message; `None` if there is too little.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let held = self.held.fetch_add(bytes, Ordering::AcqRel);
        let room = Held { shared: Arc::clone(self), bytes };
        (held + bytes <= self.limits.messages_bytes_max).then_some(room)
    }

    /// Reserves a place for a connection; `None` if none is free.
    pub(crate) fn place(self: &Arc<Self>) -> Option<Place> {
        let open = self.open.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(self));
        (open < self.limits.connections_max).then_some(place)
    }
}

/// Reserved memory for a large message; dropping it frees it.
pub(crate) struct Held {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The place of a connection; dropping it frees it.
pub(crate) struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}
