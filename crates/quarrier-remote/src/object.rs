//! One object: the bytes held, the requests in flight, and the waiting readers.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use quarrier_core::sync::lock;
use quarrier_sparse::{CostModel, Merge, ReadAhead, SharedFile, Span};
use tokio::task::AbortHandle;

use crate::answer::{Answer, RangeRequest, Refusal, Version};
use crate::attempts::{Attempts, log_retry};
use crate::cache::Entry;
use crate::error::{Error, Result};
use crate::fault::{Fault, again};
use crate::flight::{Flight, overlap, split, without};
use crate::link::{Link, PendingResponse};
use crate::opening::final_error;
use crate::shared::{LOOK, Shared};
use crate::streams::Streams;

/// Bytes to collect before passing them on to waiting readers.
const PART_BYTES: usize = 256 << 10;

/// Minimum size of a piece when fetching ahead is split, since each piece costs a request.
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
    /// Notified whenever bytes have arrived or a flight has ended.
    moved: Condvar,
    /// Whether the last clone of the source was dropped.
    dropped: AtomicBool,
    /// The number of consecutive ranges given up.
    failed_ranges: AtomicU32,
}

/// The requests in flight.
struct Traffic {
    flights: Vec<(Arc<Flight>, Option<AbortHandle>)>,
    streams: Streams,
    read_ahead: ReadAhead,
    /// Incremented whenever bytes arrive or a flight ends.
    moves: u64,
    /// Set if nothing can be fetched any more, for example because the object changed and the bytes
    /// held are of an old version.
    lost: Option<Error>,
}

/// The state of a waiting reader.
#[derive(Default)]
pub(crate) struct Waiting<'s> {
    flights: Vec<Arc<Flight>>,
    /// Whether to request only the missing bytes, after a flight that covered more has failed.
    is_exact: bool,
    /// The longest hole between missing bytes that may be fetched with them; `None` if only its cost
    /// decides.
    hole_bytes_max: Option<u64>,
    /// The reader gives up when this becomes true.
    stop: Option<&'s AtomicBool>,
}

impl<'s> Waiting<'s> {
    /// Creates the state for a reader that gives up when `stop` becomes true.
    pub(crate) fn unless(stop: &'s AtomicBool) -> Self {
        Waiting { stop: Some(stop), ..Waiting::default() }
    }

    /// Limits the holes that may be fetched.
    pub(crate) fn holes_up_to(self, bytes: u64) -> Self {
        Waiting { hole_bytes_max: Some(bytes), ..self }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// The next step of a reader.
pub(crate) enum Step {
    /// All bytes are held, or were a moment ago.
    Read,
    /// Look again: bytes arrived or a flight ended.
    Look,
    /// Some of the bytes could not be fetched.
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
        // Bytes fetched ahead must still be in memory when they are read.
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

    /// The bytes of `span` that are not held; the span must be within the length.
    pub(crate) fn missing(&self, span: Span) -> Vec<Span> {
        // Spans within the length do not overflow.
        self.file.need(span.offset, span.length).unwrap_or_else(|_| vec![span])
    }

    pub(crate) fn announce(&self, span: Span) {
        self.traffic().streams.announce(span);
    }

    /// The spans to fetch for a read, and the span to fetch ahead of it. Does not block.
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
        // Spans within the length do not overflow.
        let planned = self.file.with(|file| read_ahead.plan(file, asked)).unwrap_or_default();
        (planned.into_iter().chain([asked]).collect(), ahead)
    }

    /// The error if nothing of the object can be fetched any more.
    pub(crate) fn lost(&self) -> Option<Error> {
        self.traffic().lost.clone()
    }

    /// The current estimate of request costs, by which requests fetch holes of at most `hole_bytes_max`.
    fn cost(&self, hole_bytes_max: Option<u64>) -> CostModel {
        let request_bytes_max = self.request_bytes_max();
        let model = CostModel { request_bytes_max, ..self.traffic().read_ahead.model().clone() };
        match hole_bytes_max {
            Some(bytes) => model.with_holes_up_to(bytes),
            None => model,
        }
    }

    /// Starts to fetch bytes that will be read soon, split into as many pieces as are worth a
    /// request.
    pub(crate) fn fetch_ahead(self: &Arc<Self>, ahead: Span) {
        if ahead.length == 0 || self.shared.options.offline {
            return;
        }
        let mut missing = self.missing(ahead);
        if let Some(disk) = &self.disk {
            // Cached bytes are read on demand: that is fast, and memory is limited.
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

    /// Advances a reader of `asked` by one step, which may block. `fetch` is the range that may be
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

    /// Starts to fetch `fetch` if some of `missing` is not in flight.
    pub(crate) fn want(
        self: &Arc<Self>,
        missing: &[Span],
        fetch: &[Span],
        waiting: &mut Waiting<'_>,
    ) {
        if missing.is_empty() {
            return;
        }
        // Merged by cost, one request may span two missing parts and the held bytes between them.
        let merge = match waiting.is_exact {
            true => Merge::Exact,
            false => Merge::Cost(self.cost(waiting.hole_bytes_max)),
        };
        let wanted = || self.file.need_many(fetch, &merge).unwrap_or_else(|_| missing.to_vec());
        // Remember the flights, since they may end before the reader looks at them.
        waiting.flights.extend(self.start(wanted, self.request_bytes_max(), Some(missing)));
    }

    /// The error with which a reader of `missing` should give up, if any.
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
            // A flight that covered more than the missing bytes may have failed in the rest; then
            // the missing bytes are requested alone.
            let is_exact = missing
                .iter()
                .any(|span| flight.span.offset >= span.offset && flight.span.end() <= span.end());
            if is_exact || !error.concerns_range() {
                end = Some(error);
            } else {
                *was_too_much = true;
            }
            false
        });
        end
    }

    /// Starts flights for the parts of `wanted` that are not in flight, and returns them. If `only`
    /// is given, starts none unless some of `only` is not in flight. `wanted` is computed after
    /// looking at the flights, since a flight that lands in between would be repeated.
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
            // Not under the lock: if the client is closed, the task is dropped immediately.
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

    /// Stores bytes from the server or from disk.
    pub(crate) fn keep(&self, offset: u64, bytes: &[u8], is_from_disk: bool) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.file.write(offset, bytes).is_err() {
            // The store knows the length, and rejects bytes that differ from those held.
            let what = format!("the bytes at {offset} differ from those received before");
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

    /// Aborts all requests, since no reader is left.
    pub(crate) fn abandon(&self) {
        self.dropped.store(true, Ordering::Release);
        // Not under the lock: aborting a task runs its `Landing`.
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

/// A flight with its task. However the task ends, it wakes waiting readers.
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

/// Fetches a span, with the retries that the options allow.
async fn fetch(object: &Object, span: Span) -> Result<()> {
    if object.shared.options.offline {
        let (source_name, offset) = (object.name.clone(), Some(span.offset));
        return Err(Error::NotCached { source_name, offset });
    }
    let retry = &object.shared.options.retry;
    // While ranges fail, each is tried only once, so that a server that is gone is detected soon.
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
            // The server may send a part of the range. The rest needs another request.
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
    let PendingResponse { answer: Answer::Range { span, is_counted, .. }, mut body } = sent else {
        return Err(again("the server does not send a part"));
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
                    return Err(again("the body is longer than announced"));
                };
                to_come = rest;
                gathered.extend_from_slice(&part);
                // A body without a length is trusted only after it has ended at the right place.
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
        None if to_come > 0 => Err(again("the body is shorter than announced")),
        None => Ok(()),
    }
}
