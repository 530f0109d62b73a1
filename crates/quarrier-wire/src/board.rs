//! The board of connections and statements, for the status page, `/metrics` and system tables.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quarrier_core::sync::lock;

use crate::answers::{Asker, Stop};
use crate::failure::{Failure, state};

/// Counters and lists of a server. The engine shares them, so that statements can query them.
#[derive(Debug, Default)]
pub struct Board {
    /// Counters.
    pub counts: Counts,
    /// Counts of the last seconds, oldest first.
    past: Mutex<VecDeque<(Instant, [u64; COUNTERS])>>,
    clients: Mutex<BTreeMap<u32, Client>>,
    running: Mutex<BTreeMap<u64, Arc<Running>>>,
    next_client: AtomicU64,
    next_statement: AtomicU64,
}

/// Counters, which only increase.
#[derive(Debug, Default)]
pub struct Counts {
    /// Accepted connections.
    pub connections: AtomicU64,
    /// Refused connections.
    pub refused: AtomicU64,
    /// Wrong passwords.
    pub wrong_passwords: AtomicU64,
    /// HTTP requests.
    pub requests: AtomicU64,
    /// Started statements.
    pub statements: AtomicU64,
    /// Failed statements.
    pub failures: AtomicU64,
    /// Statements that were cancelled or timed out.
    pub cancelled: AtomicU64,
    /// Rows sent.
    pub rows: AtomicU64,
    /// Bytes sent.
    pub bytes_sent: AtomicU64,
    /// Bytes received.
    pub bytes_received: AtomicU64,
    /// Messages stored.
    pub messages: AtomicU64,
    /// Messages rejected.
    pub rejected: AtomicU64,
}

/// Number of counters.
const COUNTERS: usize = 12;
/// Number of seconds over which rates are averaged.
const RATE_SECONDS: usize = 10;

/// A counter for display.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The name, without the prefix `quarrier_` that `/metrics` adds.
    pub name: &'static str,
    /// The meaning.
    pub help: &'static str,
    /// The total since the start.
    pub total: u64,
}

impl Counts {
    /// Returns all counters with their current totals.
    pub fn all(&self) -> [Counter; COUNTERS] {
        [
            ("connections_total", "Accepted connections.", &self.connections),
            ("connections_refused_total", "Refused connections.", &self.refused),
            ("wrong_passwords_total", "Wrong passwords.", &self.wrong_passwords),
            ("http_requests_total", "HTTP requests.", &self.requests),
            ("statements_total", "Started statements.", &self.statements),
            ("statements_failed_total", "Failed statements.", &self.failures),
            ("statements_cancelled_total", "Statements cancelled or timed out.", &self.cancelled),
            ("rows_sent_total", "Rows sent.", &self.rows),
            ("sent_bytes_total", "Bytes sent.", &self.bytes_sent),
            ("received_bytes_total", "Bytes received.", &self.bytes_received),
            ("messages_total", "Messages stored.", &self.messages),
            ("messages_rejected_total", "Messages rejected.", &self.rejected),
        ]
        .map(|(name, help, count)| Counter {
            name,
            help,
            total: count.load(Ordering::Relaxed),
        })
    }
}

/// Adds to a counter.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// A connected client.
#[derive(Debug, Clone)]
pub struct Client {
    /// The client's identity.
    pub asker: Asker,
    /// The time of the connection.
    pub since: Instant,
    secret: [u8; 4],
}

/// A running statement.
#[derive(Debug)]
pub struct Running {
    /// The number of the statement.
    pub number: u64,
    /// The client.
    pub asker: Asker,
    /// The statement's text, or its first characters.
    pub text: String,
    /// The time of the start.
    pub since: Instant,
    /// Number of rows sent.
    pub rows: AtomicU64,
    stop: Stop,
    ending: AtomicU8,
    /// Whether the statement has no end.
    is_live: AtomicBool,
}

/// The reason for ending a statement early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ending {
    Cancelled = 1,
    TooLong = 2,
    Shutdown = 3,
    Left = 4,
}

impl Running {
    pub(crate) fn end(&self, why: Ending) {
        // The first reason takes precedence.
        let _ = self.ending.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
        self.stop.set();
    }

    /// Marks the statement as endless: a shutdown does not wait for it.
    pub(crate) fn mark_endless(&self) {
        self.is_live.store(true, Ordering::Release);
    }

    /// Returns the error that reports the end.
    pub(crate) fn ended(&self) -> Failure {
        const CANCELLING: &str = "canceling statement due to";
        match self.ending.load(Ordering::Acquire) {
            2 => Failure::new(state::CANCELLED, format!("{CANCELLING} statement timeout")),
            3 => Failure::fatal(
                state::SHUTDOWN,
                "terminating connection: the server is shutting down",
            ),
            4 => Failure::fatal(state::IDLE, "the client disconnected"),
            _ => Failure::new(state::CANCELLED, format!("{CANCELLING} user request")),
        }
    }
}

/// Maximum number of characters of a statement to keep.
const TEXT_CHARS_MAX: usize = 400;

impl Board {
    /// Records the counters; called once a second.
    pub(crate) fn tick(&self) {
        let now = (Instant::now(), self.counts.all().map(|counter| counter.total));
        let mut past = lock(&self.past);
        past.push_back(now);
        if past.len() > RATE_SECONDS + 1 {
            past.pop_front();
        }
    }

    /// Returns all counters, each with its increase per second over the last ten seconds; 0 in the
    /// first second.
    pub fn rates(&self) -> Vec<(Counter, f64)> {
        let (now, all) = (Instant::now(), self.counts.all());
        let oldest = lock(&self.past).front().copied();
        let rate = |place: usize, total: u64| match oldest {
            Some((then, totals)) if now - then > Duration::ZERO => {
                total.saturating_sub(totals[place]) as f64 / (now - then).as_secs_f64()
            }
            _ => 0.0,
        };
        let rates = all.iter().enumerate();
        rates.map(|(place, counter)| (*counter, rate(place, counter.total))).collect()
    }

    /// Returns the connected clients.
    pub fn clients(&self) -> Vec<Client> {
        lock(&self.clients).values().cloned().collect()
    }

    /// Returns the running statements.
    pub fn running(&self) -> Vec<Arc<Running>> {
        lock(&self.running).values().cloned().collect()
    }

    pub(crate) fn client_count(&self) -> usize {
        lock(&self.clients).len()
    }

    /// Returns an unused number for a connection.
    pub(crate) fn number(&self) -> u32 {
        // The numbers repeat after 2^31; by then the old connection has ended.
        (self.next_client.fetch_add(1, Ordering::Relaxed) as u32 & 0x7fff_ffff) + 1
    }

    pub(crate) fn arrive(self: &Arc<Self>, asker: &Asker, secret: [u8; 4]) -> Present {
        let client = Client { asker: asker.clone(), since: Instant::now(), secret };
        lock(&self.clients).insert(asker.connection, client);
        Present { board: Arc::clone(self), connection: asker.connection }
    }

    pub(crate) fn begin(self: &Arc<Self>, asker: &Asker, text: &str, stop: Stop) -> Begun {
        add(&self.counts.statements, 1);
        let number = self.next_statement.fetch_add(1, Ordering::Relaxed);
        let running = Arc::new(Running {
            number,
            asker: asker.clone(),
            text: text.chars().take(TEXT_CHARS_MAX).collect(),
            since: Instant::now(),
            rows: AtomicU64::new(0),
            stop,
            ending: AtomicU8::new(0),
            is_live: AtomicBool::new(false),
        });
        lock(&self.running).insert(number, Arc::clone(&running));
        Begun { board: Arc::clone(self), running }
    }

    /// Cancels the statement of a connection, if the secret matches.
    pub(crate) fn cancel(&self, connection: u32, secret: &[u8]) {
        let is_own = lock(&self.clients).get(&connection).is_some_and(|it| it.secret == *secret);
        if is_own {
            let running = self.running();
            let own = running.iter().filter(|running| running.asker.connection == connection);
            own.for_each(|running| running.end(Ending::Cancelled));
        }
    }

    /// Returns the endless statements.
    pub(crate) fn live(&self) -> Vec<Arc<Running>> {
        let mut running = self.running();
        running.retain(|running| running.is_live.load(Ordering::Acquire));
        running
    }

    pub(crate) fn end_all(&self) {
        self.running().iter().for_each(|running| running.end(Ending::Shutdown));
    }
}

/// A registered client; dropping it removes the client from the board.
pub(crate) struct Present {
    board: Arc<Board>,
    connection: u32,
}

impl Drop for Present {
    fn drop(&mut self) {
        lock(&self.board.clients).remove(&self.connection);
    }
}

/// A registered statement; dropping it removes the statement from the board.
pub(crate) struct Begun {
    board: Arc<Board>,
    pub(crate) running: Arc<Running>,
}

impl Begun {
    pub(crate) fn stop(&self) -> &Stop {
        &self.running.stop
    }

    /// Counts rows sent.
    pub(crate) fn sent(&self, rows: u64) {
        add(&self.running.rows, rows);
        add(&self.board.counts.rows, rows);
    }

    /// Counts a failed statement by its error.
    pub(crate) fn failed(&self, failure: &Failure) {
        let counts = &self.board.counts;
        let is_cancelled = failure.state == state::CANCELLED;
        add(if is_cancelled { &counts.cancelled } else { &counts.failures }, 1);
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        lock(&self.board.running).remove(&self.running.number);
    }
}
