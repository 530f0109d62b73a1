//! Sends batches to the log in the order of the source, whichever worker made them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Condvar, Mutex};

use quarrier_core::sync::{into_inner, lock, wait};

use super::blocks::Checked;
use super::load::{LoadWatch, Progress, Stored};
use crate::log::{Log, Pending, Publication, Sealed};
use crate::{Error, Limits, Reject, Result};

/// Maximum number of batches in flight.
const PENDING_MAX: usize = 32;

/// A parsed block.
pub(super) struct Done {
    /// Its range in the source.
    pub(super) bytes: Range<u64>,
    pub(super) checked: Checked,
    /// The batch; None if the block has no message.
    pub(super) sealed: Option<Sealed>,
}

/// Accepts blocks in any order, and sends them in the order of their numbers.
pub(super) struct Order<'o> {
    log: &'o Log,
    name: &'o str,
    limits: &'o Limits,
    state: Mutex<State<'o>>,
    /// A number was sent, or sending has ended.
    moved: Condvar,
    /// Maximum number of blocks that wait for an earlier one.
    ahead_max: usize,
}

struct State<'o> {
    next: usize,
    waiting: BTreeMap<usize, Done>,
    pending: VecDeque<(Pending, u32, u64)>,
    /// The sequence of the last batch sent; 0 if none was.
    sequence: u64,
    /// Number of lines of the source before the next block.
    lines: u64,
    stored: Stored,
    failed: Option<Error>,
    watch: &'o mut dyn LoadWatch,
}

impl<'o> Order<'o> {
    /// Continues after the publisher's batch with this sequence; `lines` lines of the source precede it.
    pub(super) fn new(
        (log, name, limits): (&'o Log, &'o str, &'o Limits),
        (sequence, lines): (u64, u64),
        workers: usize,
        watch: &'o mut dyn LoadWatch,
    ) -> Self {
        let state = State {
            next: 0,
            waiting: BTreeMap::new(),
            pending: VecDeque::new(),
            sequence,
            lines,
            stored: Stored::default(),
            failed: None,
            watch,
        };
        let (moved, ahead_max) = (Condvar::new(), 2 * workers + 2);
        Order { log, name, limits, state: Mutex::new(state), moved, ahead_max }
    }

    /// Returns whether sending has ended.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).failed.is_some()
    }

    /// Ends sending, with this error.
    pub(super) fn fail(&self, error: Error) {
        lock(&self.state).failed.get_or_insert(error);
        self.moved.notify_all();
    }

    /// Accepts a block, and sends all blocks whose turn it is. Waits if its number is far ahead of the
    /// others.
    pub(super) fn put(&self, number: usize, done: Done) {
        let mut state = lock(&self.state);
        while state.failed.is_none() && number >= state.next + self.ahead_max {
            state = wait(&self.moved, state);
        }
        state.waiting.insert(number, done);
        while state.failed.is_none() {
            let next = state.next;
            let Some(done) = state.waiting.remove(&next) else { break };
            state.next += 1;
            if let Err(error) = self.send(&mut state, done) {
                state.failed = Some(error);
            }
        }
        drop(state);
        self.moved.notify_all();
    }

    fn send(&self, state: &mut State<'_>, done: Done) -> Result<()> {
        let Done { bytes, checked, sealed } = done;
        for reject in &checked.rejects {
            let line = 1 + state.lines + reject.line;
            let place = (line, bytes.start + reject.at);
            state.stored.rejected_listed += 1;
            if state.stored.rejected_listed <= self.limits.rejects_max as u64 {
                let reject = Reject::new(self.name, place, reject.fault, &reject.bytes);
                state.watch.rejected(&reject);
            }
        }
        state.lines += checked.lines;
        state.stored.rejected += checked.rejected;
        state.stored.bytes += bytes.end - bytes.start;
        let Some(mut sealed) = sealed else { return Ok(()) };
        if let Some(Publication { sequence, .. }) = sealed.publication {
            sealed.after = Some(state.sequence);
            state.sequence = sequence;
        }
        let pending = self.log.send_sealed(sealed)?;
        state.pending.push_back((pending, checked.messages, bytes.end));
        if state.pending.len() > PENDING_MAX {
            state.wait_for_one()?;
        }
        Ok(())
    }

    /// Waits for all batches sent. Returns the result, even after an error.
    pub(super) fn finish(self) -> (Stored, Result<()>) {
        let mut state = into_inner(self.state);
        let mut waited = Ok(());
        while !state.pending.is_empty() {
            let one = state.wait_for_one();
            waited = waited.and(one);
        }
        let State { stored, failed, .. } = state;
        let done = match failed {
            // This error came first; the log refused all later batches because of it.
            Some(error @ Error::Log(_)) => Err(error),
            failed => waited.and(failed.map_or(Ok(()), Err)),
        };
        (stored, done)
    }
}

impl State<'_> {
    /// Waits until the earliest batch sent is on the disk.
    fn wait_for_one(&mut self) -> Result<()> {
        let Some((pending, messages, end)) = self.pending.pop_front() else { return Ok(()) };
        let committed = pending.wait()?;
        let stored = &mut self.stored;
        if !committed.is_duplicate {
            stored.messages += u64::from(messages);
            stored.marks = match stored.marks.is_empty() {
                true => committed.marks,
                false => stored.marks.start..committed.marks.end,
            };
        }
        stored.end = end;
        let (messages, rejected) = (stored.messages, stored.rejected);
        self.watch.progressed(&Progress { bytes: end, messages, rejected });
        Ok(())
    }
}
