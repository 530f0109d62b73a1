//! Passes results to the sink in source order, regardless of the order in which workers finish.
//!
//! It has no thread: the worker that finishes the next chunk in order passes it to the sink, and
//! then all finished chunks that follow it.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use super::feed::Filled;
use super::timeline::{Recorder, Stage};
use super::{Chunk, Sink};
use crate::error::Error;
use crate::ranges::push_merged;
use crate::source::Source;
use crate::sync::{into_inner, lock, wait};

/// A finished chunk, or the error in its place.
pub(super) enum Done<'a, O> {
    Worked(Filled<'a>, O),
    Failed(Error),
}

struct Order<'a, O> {
    next: u64,
    pending: BTreeMap<u64, Done<'a, O>>,
    /// Whether a thread is calling the sink.
    taken: bool,
}

struct Exit<'s, O> {
    sink: &'s mut dyn Sink<O>,
    end: End,
}

/// How the run ended, from the point of view of the sink.
#[derive(Default)]
pub(super) struct End {
    pub(super) error: Option<Error>,
    pub(super) stopped_by_sink: bool,
    pub(super) unreadable: Vec<Range<u64>>,
    pub(super) bytes: u64,
    /// The position before which the sink has received everything.
    pub(super) position: u64,
}

/// The gate between workers and sink.
pub(super) struct Turnstile<'a, 's, O> {
    order: Mutex<Order<'a, O>>,
    moved: Condvar,
    exit: Mutex<Exit<'s, O>>,
    spare: Mutex<Vec<O>>,
    /// Needed to check whether a window is torn; a stream has none.
    source: Option<&'s dyn Source>,
    closed: std::sync::atomic::AtomicBool,
}

impl<'a, 's, O: Default + Send> Turnstile<'a, 's, O> {
    pub(super) fn new(
        sink: &'s mut dyn Sink<O>,
        position: u64,
        source: Option<&'s dyn Source>,
    ) -> Self {
        Turnstile {
            order: Mutex::new(Order { next: 0, pending: BTreeMap::new(), taken: false }),
            moved: Condvar::new(),
            exit: Mutex::new(Exit { sink, end: End { position, ..End::default() } }),
            spare: Mutex::new(Vec::new()),
            source,
            closed: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Whether the sink accepts no more results, or an error ended the run.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(super) fn spare_output(&self) -> O {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Submits a finished chunk; if it is the next in order, passes it and its successors on.
    pub(super) fn submit(&self, index: u64, done: Done<'a, O>, recorder: &mut Recorder) {
        let mut order = lock(&self.order);
        order.pending.insert(index, done);
        if order.taken {
            return;
        }
        order.taken = order.pending.contains_key(&order.next);
        let mine = order.taken;
        drop(order);
        if mine {
            self.drain(recorder);
        }
    }

    /// Passes on every chunk that is in order. The caller has set `taken`.
    fn drain(&self, recorder: &mut Recorder) {
        loop {
            let mut order = lock(&self.order);
            let next = order.next;
            let Some(done) = order.pending.remove(&next) else {
                order.taken = false;
                drop(order);
                self.moved.notify_all();
                return;
            };
            drop(order);
            let start = Instant::now();
            let (bytes, held) = self.pass(done);
            recorder.busy(Stage::Sink, start, bytes);
            lock(&self.order).next += 1;
            // Unmapping a window takes a while: count it as reading, and do it outside the lock.
            let start = Instant::now();
            drop(held);
            recorder.busy(Stage::Read, start, 0);
        }
    }

    /// Gives one finished chunk to the sink; returns its owned bytes and the memory that holds
    /// them.
    fn pass(&self, done: Done<'a, O>) -> (u64, Option<Filled<'a>>) {
        let mut exit = lock(&self.exit);
        if self.is_closed() {
            return (0, None);
        }
        match done {
            Done::Failed(error) => {
                exit.end.error = Some(error);
                self.close();
                (0, None)
            }
            Done::Worked(filled, mut output) => {
                let chunk = filled.chunk();
                let bytes = chunk.own.len() as u64;
                for range in chunk.unreadable {
                    push_merged(&mut exit.end.unreadable, range.clone());
                }
                let flow = exit.sink.take(&chunk, &mut output);
                exit.end.bytes += bytes;
                exit.end.position = chunk.offset + chunk.own.end as u64;
                if flow == ControlFlow::Break(()) {
                    exit.end.stopped_by_sink = true;
                    self.close();
                }
                lock(&self.spare).push(output);
                // The sink may have read bytes that disappeared after the kernel was done.
                if let Some(source) = self.source.filter(|&source| filled.is_torn(source)) {
                    exit.end.error = Some(filled.why_torn(source));
                    self.close();
                    return (bytes, None);
                }
                (bytes, Some(filled))
            }
        }
    }

    /// Ends the run: drops results submitted from now on, and wakes all waiting threads.
    pub(super) fn close(&self) {
        // Under the lock, so that no thread checks `closed` and then misses the wake-up.
        let order = lock(&self.order);
        self.closed.store(true, std::sync::atomic::Ordering::Release);
        drop(order);
        self.moved.notify_all();
    }

    /// Waits until chunk `index` is the next in order, then gives a part of its results to the
    /// sink. The worker submits the chunk itself later, as usual.
    fn pass_part(&self, index: u64, chunk: &Chunk<'_>, output: &mut O) {
        let mut order = lock(&self.order);
        while (order.next != index || order.taken) && !self.is_closed() {
            order = wait(&self.moved, order);
        }
        if self.is_closed() {
            return;
        }
        order.taken = true;
        drop(order);
        let mut exit = lock(&self.exit);
        if !self.is_closed() && exit.sink.take(chunk, output) == ControlFlow::Break(()) {
            exit.end.stopped_by_sink = true;
            self.close();
        }
        drop(exit);
        // No other chunk can be next: the order waits for this one.
        lock(&self.order).taken = false;
    }

    pub(super) fn into_end(self) -> End {
        into_inner(self.exit).end
    }
}

/// Receives the results of a kernel.
pub struct Emitter<'e, O> {
    output: O,
    flushed: bool,
    gate: Option<Gate<'e, O>>,
    worker: usize,
    notes: Vec<Note>,
}

/// A time that a kernel recorded itself.
pub(super) struct Note {
    pub(super) stage: Stage,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) bytes: u64,
}

/// The results that a kernel leaves when it returns.
pub(super) struct Emitted<O> {
    pub(super) output: O,
    /// Whether parts of it have been passed on.
    pub(super) is_flushed: bool,
    pub(super) notes: Vec<Note>,
}

/// Passes a part of a chunk's results to the sink when it is that chunk's turn.
struct Gate<'e, O> {
    pass: &'e (dyn Fn(&Chunk<'_>, &mut O) + Sync),
    is_closed: &'e (dyn Fn() -> bool + Sync),
}

impl<'e, O: Default + Send> Emitter<'e, O> {
    pub(super) fn run(
        turnstile: &Turnstile<'_, '_, O>,
        index: u64,
        worker: usize,
        work: impl FnOnce(&mut Emitter<'_, O>),
    ) -> Emitted<O> {
        let pass = |chunk: &Chunk<'_>, output: &mut O| turnstile.pass_part(index, chunk, output);
        let is_closed = || turnstile.is_closed();
        let gate = Gate { pass: &pass, is_closed: &is_closed };
        let mut emitter = Emitter {
            output: turnstile.spare_output(),
            flushed: false,
            gate: Some(gate),
            worker,
            notes: Vec::new(),
        };
        work(&mut emitter);
        let Emitter { output, flushed, notes, .. } = emitter;
        Emitted { output, is_flushed: flushed, notes }
    }

    /// Makes an emitter that only collects, to run a kernel over one chunk by hand.
    pub fn collecting() -> Self {
        Emitter::collecting_as(0)
    }

    /// As [`collecting`](Self::collecting), for the worker of this number.
    pub fn collecting_as(worker: usize) -> Self {
        let (output, notes) = (O::default(), Vec::new());
        Emitter { output, flushed: false, gate: None, worker, notes }
    }

    /// Returns the number of the calling worker, from 0, as an index to its own state.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Records that the worker spent `start` to `end` in `stage`. A kernel that records anything
    /// for a chunk must record all its work on it; without a record, all time counts as
    /// [`Stage::Work`].
    pub fn note(&mut self, stage: Stage, start: Instant, end: Instant, bytes: u64) {
        self.notes.push(Note { stage, start, end, bytes });
    }

    /// Ends a collecting emitter and returns the results.
    pub fn into_output(self) -> O {
        self.output
    }

    /// Returns the place for results.
    pub fn output(&mut self) -> &mut O {
        &mut self.output
    }

    /// Passes the output to the sink now, to free its memory. Call it if a chunk yields very many
    /// results, once all results so far are in order and no later result belongs before them. Waits
    /// for earlier chunks.
    pub fn flush(&mut self, chunk: &Chunk<'_>) {
        if let Some(gate) = &self.gate {
            (gate.pass)(chunk, &mut self.output);
            self.flushed = true;
        }
    }

    /// Whether results can be passed on in parts; a collecting emitter keeps them all.
    pub fn can_flush(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether no more results are wanted, so that the kernel may return early.
    pub fn is_closed(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| (gate.is_closed)())
    }
}
