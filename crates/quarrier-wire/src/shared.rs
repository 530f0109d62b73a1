//! State shared by all connections, and its limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::answers::{Answers, Stop};
use crate::auth::{Tls, Users};
use crate::board::Board;

/// How much there may be of everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Clients at once.
    pub connections_max: usize,
    /// The longest until a client is in.
    pub login_time: Duration,
    /// The longest that a statement may take, sending its rows included.
    pub statement_time: Option<Duration>,
    /// The longest until a message that has begun is there.
    pub message_time: Duration,
    /// The longest that a client may read nothing while something is sent.
    pub send_time: Duration,
    /// How long statements go on when the server ends.
    pub grace_time: Duration,
    /// The most bytes of a message.
    pub message_bytes_max: usize,
    /// The most bytes of all large messages together.
    pub messages_bytes_max: usize,
    /// Prepared statements and portals of a connection.
    pub statements_max: usize,
    /// The maximum size of the texts of a connection's prepared statements, in bytes.
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
    /// The server ends.
    pub(crate) closing: Stop,
    /// Whether HTTP is spoken on this machine alone.
    pub(crate) is_local: bool,
    pub(crate) since: Instant,
    /// The folder of the pages that are shown to browsers.
    pub(crate) pages: Option<PathBuf>,
    /// Bytes of large messages that are held.
    pub(crate) held: AtomicUsize,
    /// Connections that are here or about to come in.
    pub(crate) open: AtomicUsize,
}

impl Shared {
    /// Reserves memory for a large message; `None` if there is too little.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let held = self.held.fetch_add(bytes, Ordering::AcqRel);
        let room = Held { shared: Arc::clone(self), bytes };
        (held + bytes <= self.limits.messages_bytes_max).then_some(room)
    }

    /// A place for a connection; `None` if all are taken.
    pub(crate) fn place(self: &Arc<Self>) -> Option<Place> {
        let open = self.open.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(self));
        (open < self.limits.connections_max).then_some(place)
    }
}

/// Room for a large message, until it is dropped.
pub(crate) struct Held {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A connection's place, until it is dropped.
pub(crate) struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}
