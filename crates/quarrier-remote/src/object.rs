//! One object: the bytes held, the requests in flight, and the readers that wait.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use quarrier_core::sync::lock;
use quarrier_sparse::{CostModel, Merge, ReadAhead, SharedFile, Span};
use tokio::task::AbortHandle;

use crate::answer::{Answer, RangeRequest, Refusal, Version};
use crate::attempts::{Attempts, log_retry};
use crate::cache::Entry;
use crate::error::{Error, Result};
use crate::flight::{Flight, overlap, split, without};
use crate::link::{Fault, Link, Started, again};
use crate::opening::final_error;
use crate::shared::{LOOK, Shared};
use crate::streams::Streams;

/// Bytes gathered before they are handed to those who wait.
const PART_BYTES: usize = 256 << 10;

/// Fetches ahead are cut into pieces no smaller than this, since each costs a request.
const WORTH_BYTES: u64 = 1 << 20;

/// State shared by all clones of a source and its requests.
pub(crate) struct Object {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Link,
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) file: SharedFile,
    pub(crate) disk: Option<Entry>,
    traffic: Mutex<Traffic>,
    /// Told whenever bytes have come or a flight has ended.
    moved: Condvar,
    /// The last clone of the source is gone.
    dropped: AtomicBool,
    /// Ranges in a row that were given up.
    failed_ranges: AtomicU32,
}

/// The requests in flight.
struct Traffic {
    flights: Vec<(Arc<Flight>, Option<AbortHandle>)>,
    streams: Streams,
    read_ahead: ReadAhead,
    /// How often something moved.
    moves: u64,
    /// Set when the object changed: the bytes held are of an old version.
    lost: Option<Error>,
}

/// A reader's wait.
#[derive(Default)]
pub(crate) struct Waiting<'s> {
    flights: Vec<Arc<Flight>>,
    /// A flight that went further than the reader failed: now no more than is needed is
    /// asked for.
    is_exact: bool,
    /// The reader gives up when this becomes true.
    stop: Option<&'s AtomicBool>,
}

impl<'s> Waiting<'s> {
    /// For a reader that gives up when `stop` becomes true.
    pub(crate) fn unless(stop: &'s AtomicBool) -> Self {
        Waiting { stop: Some(stop), ..Waiting::default() }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// The next step of a reader.
pub(crate) enum Step {
    /// All of it is held, or was a moment ago.
    Read,
    /// It waited and something moved.
    Look,
    /// These of its bytes could not be had.
    Failed(Error),
}

impl Object {
    pub(crate) fn new(
        shared: Arc<Shared>,
        link: Link,
        name: String,
        version: Version,
        file: SharedFile,
        disk: Option<Entry>,
    ) -> Self {
        let options = &shared.options;
        // Bytes fetched ahead must still be there when they are read.
        let ahead_bytes = match options.read_ahead {
            true => options.ahead_bytes_max.min(options.memory_bytes_max / 4),
            false => 0,
        };
        let read_ahead = options.cost.clone().map_or_else(ReadAhead::learning, ReadAhead::new);
        let traffic = Traffic {
            flights: Vec::new(),
            streams: Streams::new(version.length, ahead_bytes),
            read_ahead,
            moves: 0,
            lost: None,
        };
        Object {
            shared,
            link,
            name,
            version,
            file,
            disk,
            traffic: Mutex::new(traffic),
            moved: Condvar::new(),
            dropped: AtomicBool::new(false),
            failed_ranges: AtomicU32::new(0),
        }
    }

    /// The bytes of `span` that are not held; the span lies within the length.
    pub(crate) fn missing(&self, span: Span) -> Vec<Span> {
        // Nothing overflows within the length.
        self.file.need(span.offset, span.length).unwrap_or_else(|_| vec![span])
    }

    pub(crate) fn announce(&self, span: Span) {
        self.traffic().streams.announce(span);
    }

    /// The spans to fetch for a read, and the span to fetch ahead of it. Does not wait.
    pub(crate) fn advise(&self, asked: Span) -> (Vec<Span>, Span) {
        let missing = self.missing(asked);
        let mut traffic = self.traffic();
        let ahead = traffic.streams.read(asked);
        let under_way = traffic.flights.iter().map(|(flight, _)| flight.span);
        let is_miss = !without(missing, under_way).is_empty();
        if !is_miss || !self.shared.options.read_ahead || traffic.streams.is_announced(asked) {
            return (vec![asked], ahead);
        }
        let read_ahead = &mut traffic.read_ahead;
        // Nothing overflows within the length.
        let planned = self.file.with(|file| read_ahead.plan(file, asked)).unwrap_or_default();
        (planned.into_iter().chain([asked]).collect(), ahead)
    }

    /// Why nothing of the object can be had any more, if so.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.traffic().lost.clone()
    }

    /// The cost of requests, as far as it is known.
    fn cost(&self) -> CostModel {
        let request_bytes_max = self.request_bytes_max();
        CostModel { request_bytes_max, ..self.traffic().read_ahead.model().clone() }
    }

    /// Starts to fetch bytes that will be read soon, in as many pieces as are worth a request.
    pub(crate) fn fetch_ahead(self: &Arc<Self>, ahead: Span) {
        if ahead.length == 0 || self.shared.options.offline {
            return;
        }
        let mut missing = self.missing(ahead);
        if let Some(disk) = &self.disk {
            // Read when it is asked for: that is quick, and memory is scarce.
            missing = without(missing, disk.claimed(ahead).into_iter());
        }
        let options = &self.shared.options;
        let streams = (options.requests() as u64).min(4);
        let piece = (ahead.length / streams).max(WORTH_BYTES).min(self.request_bytes_max());
        self.start(|| missing, piece, None);
    }

    fn request_bytes_max(&self) -> u64 {
        self.shared.options.request_bytes_max.max(1)
    }

    /// Brings a reader of `asked` one step further, which may be a wait. `fetch` is what may be
    /// fetched along with it.
    pub(crate) fn step(
        self: &Arc<Self>,
        asked: &[Span],
        fetch: &[Span],
        waiting: &mut Waiting<'_>,
    ) -> Step {
        let moves = self.traffic().moves;
        let missing: Vec<Span> = asked.iter().flat_map(|&span| self.missing(span)).collect();
        if missing.is_empty() {
            return Step::Read;
        }
        if let Some(error) = self.end_of(&missing, waiting) {
            return Step::Failed(error);
        }
        let fetch = if waiting.is_exact { asked } else { fetch };
        self.want(&missing, fetch, waiting);
        let mut traffic = self.traffic();
        for (flight, _) in &traffic.flights {
            let is_new = !waiting.flights.iter().any(|known| Arc::ptr_eq(known, flight));
            if is_new && missing.iter().any(|&span| overlap(span, flight.span)) {
                waiting.flights.push(Arc::clone(flight));
            }
        }
        while traffic.moves == moves && !self.is_closed() && !waiting.is_stopped() {
            let woken = self.moved.wait_timeout(traffic, LOOK);
            traffic = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Step::Look
    }

    /// Starts to fetch `fetch` where some of `missing` is not under way.
    pub(crate) fn want(
        self: &Arc<Self>,
        missing: &[Span],
        fetch: &[Span],
        waiting: &mut Waiting<'_>,
    ) {
        if missing.is_empty() {
            return;
        }
        // By cost, one request may reach from a missing part to the next, over bytes that are held.
        let merge = if waiting.is_exact { Merge::Exact } else { Merge::Cost(self.cost()) };
        let wanted = || self.file.need_many(fetch, &merge).unwrap_or_else(|_| missing.to_vec());
        // They may end before the reader looks at the flights.
        waiting.flights.extend(self.start(wanted, self.request_bytes_max(), Some(missing)));
    }

    /// Why a reader that misses `missing` should give up, if it should.
    fn end_of(&self, missing: &[Span], waiting: &mut Waiting<'_>) -> Option<Error> {
        if let Some(error) = self.lost() {
            return Some(error);
        }
        if self.is_closed() || waiting.is_stopped() {
            return Some(self.closed());
        }
        let mut end = None;
        let Waiting { flights, is_exact: was_too_much, .. } = waiting;
        flights.retain(|flight| {
            let Some(error) = flight.failure() else { return true };
            // A flight that covered more than the missing bytes may have failed in the rest; then the
            // missing bytes are requested alone.
            let is_exact = missing
                .iter()
                .any(|span| flight.span.offset >= span.offset && flight.span.end() <= span.end());
            if is_exact || !error.is_of_a_range() {
                end = Some(error);
            } else {
                *was_too_much = true;
            }
            false
        });
        end
    }

    /// Starts flights for the parts of `wanted` that are not in flight: all of it, or, if `only` is
    /// given, only if some of that is not in flight. Returns them. `wanted` is computed after the
    /// flights are known, since a flight that lands in between would be repeated.
    fn start(
        self: &Arc<Self>,
        wanted: impl FnOnce() -> Vec<Span>,
        bytes_max: u64,
        only: Option<&[Span]>,
    ) -> Vec<Arc<Flight>> {
        let mut traffic = self.traffic();
        let under_way = || traffic.flights.iter().map(|(flight, _)| flight.span);
        if only.is_some_and(|only| without(only.to_vec(), under_way()).is_empty()) {
            return Vec::new();
        }
        let left = without(wanted(), under_way());
        let new: Vec<_> = split(&left, bytes_max).into_iter().map(Flight::new).collect();
        traffic.flights.extend(new.iter().map(|flight| (Arc::clone(flight), None)));
        drop(traffic);
        for flight in &new {
            // Not under the lock: where the client is closed, the task is dropped here and now.
            let landing = Landing { object: Arc::clone(self), flight: Arc::clone(flight) };
            let abort = self.shared.spawn(landing.fly());
            let mut traffic = self.traffic();
            let known = traffic.flights.iter_mut().find(|(known, _)| Arc::ptr_eq(known, flight));
            if let Some((_, handle)) = known {
                *handle = Some(abort);
            }
        }
        new
    }

    /// Takes bytes that came from the server, or from disk.
    pub(crate) fn keep(&self, offset: u64, bytes: &[u8], is_from_disk: bool) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.file.write(offset, bytes).is_err() {
            // The store knows the length, and refuses bytes that differ from those it holds.
            let what = format!("the bytes at {offset} are others than before");
            return Err(Fault::Refused(Refusal::Changed(what)));
        }
        if let (Some(disk), false) = (&self.disk, is_from_disk) {
            disk.store(offset, bytes);
        }
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        self.traffic().moves += 1;
        self.moved.notify_all();
    }

    fn land(&self, flight: &Arc<Flight>, result: Result<()>) {
        let mut traffic = self.traffic();
        if let Err(error @ (Error::Changed { .. } | Error::NotFound { .. })) = &result {
            traffic.lost.get_or_insert_with(|| error.clone());
        }
        flight.finish(result);
        traffic.flights.retain(|(known, _)| !Arc::ptr_eq(known, flight));
        traffic.moves += 1;
        drop(traffic);
        self.moved.notify_all();
    }

    /// Ends all requests: nobody can ask for their bytes any more.
    pub(crate) fn abandon(&self) {
        self.dropped.store(true, Ordering::Release);
        // Not under the lock: an aborted task lands.
        let aborted: Vec<_> =
            self.traffic().flights.iter().filter_map(|(_, abort)| abort.clone()).collect();
        aborted.iter().for_each(AbortHandle::abort);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed() || self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn closed(&self) -> Error {
        Error::Closed { source_name: self.name.clone() }
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        lock(&self.traffic)
    }
}

/// A flight with its task. However the task ends, it wakes those who wait.
struct Landing {
    object: Arc<Object>,
    flight: Arc<Flight>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let closed = Err(self.object.closed());
        self.object.land(&self.flight, closed);
    }
}

impl Landing {
    async fn fly(self) {
        let object = &self.object;
        let result = match object.shared.permits.acquire().await {
            Ok(_permit) => fetch(object, self.flight.span).await,
            Err(_) => Err(object.closed()),
        };
        object.land(&self.flight, result);
    }
}

/// Fetches a span, as often as the options allow.
async fn fetch(object: &Object, span: Span) -> Result<()> {
    if object.shared.options.offline {
        let (source_name, offset) = (object.name.clone(), Some(span.offset));
        return Err(Error::NotCached { source_name, offset });
    }
    let retry = &object.shared.options.retry;
    // While ranges fail, each is tried once, so that a server that is gone is soon known.
    let is_suspect = object.failed_ranges.load(Ordering::Relaxed) > 0;
    let mut attempts = Attempts::new(retry, if is_suspect { 1 } else { retry.attempts_max });
    let mut left = span;
    loop {
        let before = left.length;
        let fault = match attempt(object, &mut left, attempts.made > 0).await {
            Ok(()) if left.length == 0 => {
                object.failed_ranges.store(0, Ordering::Relaxed);
                return Ok(());
            }
            // The server sent a part of the range, which it may. The rest is another request.
            Ok(()) => continue,
            Err(fault) => fault,
        };
        let is_further = left.length < before;
        let (reason, after, is_connection) = match fault {
            Fault::Refused(Refusal::Again { reason, after }) => (reason, after, false),
            Fault::Connect { reason, is_final: false } => (reason, None, true),
            other => return Err(final_error(&object.name, other)),
        };
        match attempts.failed(is_further, after) {
            Some(wait) => {
                log_retry(&object.name, left.offset, attempts.made, (wait, &reason));
                tokio::time::sleep(wait).await;
            }
            None => return Err(given_up(object, left, attempts.made, reason, is_connection)),
        }
    }
}

fn given_up(
    object: &Object,
    left: Span,
    attempts: u32,
    reason: String,
    is_connection: bool,
) -> Error {
    let source_name = object.name.clone();
    let failed = object.failed_ranges.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    if is_connection {
        Error::Unreachable { source_name, reason }
    } else if failed >= object.shared.options.retry.failed_ranges_max {
        Error::Gone { source_name, reason }
    } else {
        Error::Failed { source_name, offset: left.offset, attempts, reason }
    }
}

/// Makes one request for `left`, which shrinks by the bytes received.
async fn attempt(object: &Object, left: &mut Span, is_retry: bool) -> Result<(), Fault> {
    let sent = object.link.send(RangeRequest::Span(*left), Some(&object.version), is_retry).await?;
    let Started { answer: Answer::Range { span, is_counted, .. }, mut body } = sent else {
        return Err(again("the server sends something else than a part"));
    };
    let mut gathered: Vec<u8> = Vec::new();
    let mut to_come = span.length;
    let mut hand_on = |gathered: &mut Vec<u8>| {
        object.keep(left.offset, gathered, false)?;
        left.offset += gathered.len() as u64;
        left.length -= gathered.len() as u64;
        gathered.clear();
        Ok::<(), Fault>(())
    };
    let end = loop {
        match body.next().await {
            Ok(None) => break None,
            Err(fault) => break Some(fault),
            Ok(Some(part)) => {
                object.link.counting.fetched(part.len());
                let Some(rest) = to_come.checked_sub(part.len() as u64) else {
                    return Err(again("the body is longer than it is said to be"));
                };
                to_come = rest;
                gathered.extend_from_slice(&part);
                // A body without a length is believed when it has ended where it should.
                if is_counted && gathered.len() >= PART_BYTES {
                    hand_on(&mut gathered)?;
                }
            }
        }
    };
    if is_counted || (end.is_none() && to_come == 0) {
        hand_on(&mut gathered)?;
    }
    if end.is_none() {
        let (first_byte, all) = (body.first_byte, body.sent.elapsed());
        object.traffic().read_ahead.observe(span.length - to_come, first_byte, all);
    }
    match end {
        Some(fault) => Err(fault),
        None if to_come > 0 => Err(again("the body is shorter than it is said to be")),
        None => Ok(()),
    }
}
