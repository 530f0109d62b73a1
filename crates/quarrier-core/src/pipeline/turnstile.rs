//! Puts results in the order of the source, in whatever order workers finish.
//!
//! There is no thread of its own for this: the worker that finishes the chunk that is next
//! in order hands it to the sink, and after it all that have been waiting for it.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use super::feed::Filled;
use super::retry::push_merged;
use super::timeline::{Recorder, Stage};
use super::{Chunk, Sink};
use crate::error::Error;
use crate::source::Source;
use crate::sync::{into_inner, lock, wait};

/// A finished chunk, or why it could not be had.
pub(super) enum Done<'a, O> {
    Worked(Filled<'a>, O),
    Failed(Error),
}

struct Order<'a, O> {
    next: u64,
    pending: BTreeMap<u64, Done<'a, O>>,
    /// Someone is at the sink.
    taken: bool,
}

struct Exit<'s, O> {
    sink: &'s mut dyn Sink<O>,
    end: End,
}

/// How the run ended, as the sink's side saw it.
#[derive(Default)]
pub(super) struct End {
    pub(super) error: Option<Error>,
    pub(super) stopped_by_sink: bool,
    pub(super) unreadable: Vec<Range<u64>>,
    pub(super) bytes: u64,
    /// All positions before this one were handed to the sink.
    pub(super) position: u64,
}

/// The gate between workers and sink.
pub(super) struct Turnstile<'a, 's, O> {
    order: Mutex<Order<'a, O>>,
    moved: Condvar,
    exit: Mutex<Exit<'s, O>>,
    spare: Mutex<Vec<O>>,
    /// For looking whether a window is whole; a stream has none.
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

    /// Whether the sink wants no more, or an error ended the run.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(super) fn spare_output(&self) -> O {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Hands in a finished chunk; if it is the next in order, passes it and its successors on.
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

    /// Passes on everything that is in order. The caller has set `taken`.
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
            // Giving a window back takes a while; it belongs to reading, and to no lock.
            let start = Instant::now();
            drop(held);
            recorder.busy(Stage::Read, start, 0);
        }
    }

    /// Gives one finished chunk to the sink; returns its owned bytes and what held them.
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
                // The sink may have looked at bytes that went away after the kernel was done.
                if let Some(source) = self.source.filter(|&source| filled.is_torn(source)) {
                    exit.end.error = Some(filled.why_torn(source));
                    self.close();
                    return (bytes, None);
                }
                (bytes, Some(filled))
            }
        }
    }

    /// Ends the run: results submitted from now on are dropped, and nobody waits.
    pub(super) fn close(&self) {
        // Under the lock, so that nobody falls asleep between looking at `closed` and waiting.
        let order = lock(&self.order);
        self.closed.store(true, std::sync::atomic::Ordering::Release);
        drop(order);
        self.moved.notify_all();
    }

    /// Waits until chunk `index` is the next in order, then gives a part of its results to
    /// the sink. The chunk itself is submitted later as usual.
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
        // Nobody else can be next: the order waits for this very chunk.
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

/// A kernel's record of its own time.
pub(super) struct Note {
    pub(super) stage: Stage,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) bytes: u64,
}

/// The results that a kernel leaves at its end.
pub(super) struct Emitted<O> {
    pub(super) output: O,
    /// Parts of it have been handed on.
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

    /// An emitter that only collects, for running a kernel over one chunk by hand.
    pub fn collecting() -> Self {
        Emitter::collecting_as(0)
    }

    /// As [`collecting`](Self::collecting), for the worker of this number.
    pub fn collecting_as(worker: usize) -> Self {
        let (output, notes) = (O::default(), Vec::new());
        Emitter { output, flushed: false, gate: None, worker, notes }
    }

    /// The number of the calling worker, from 0, by which it can find state of its own.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Says what part of the work was done when. A kernel that says so once for a chunk does it
    /// for all its work on it; of one that says nothing all time is [`Stage::Work`].
    pub fn note(&mut self, stage: Stage, start: Instant, end: Instant, bytes: u64) {
        self.notes.push(Note { stage, start, end, bytes });
    }

    /// Ends a collecting emitter.
    pub fn into_output(self) -> O {
        self.output
    }

    /// Where results go.
    pub fn output(&mut self) -> &mut O {
        &mut self.output
    }

    /// Hands the output to the sink now, so that it needs no more room. Call it when a chunk yields
    /// very many results, once all results so far are in order and none to come belongs before them.
    /// Waits for earlier chunks.
    pub fn flush(&mut self, chunk: &Chunk<'_>) {
        if let Some(gate) = &self.gate {
            (gate.pass)(chunk, &mut self.output);
            self.flushed = true;
        }
    }

    /// Whether results can be handed on in parts; a collecting emitter keeps them all.
    pub fn can_flush(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether no further results are wanted, so that work may end early.
    pub fn is_closed(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| (gate.is_closed)())
    }
}
