//! Schedules the work of a run: which worker searches, judges, decides and keeps, and when.
//!
//! ```text
//!  strides:  search ──→ judge ──┐          by any worker, several strides at a time
//!            search ──→ judge ──┤
//!                               └─→ decide ──→ keep its files ──→ note     in order of the source
//! ```
//!
//! A worker takes the next stride, searches it, judges its candidates, and submits the result. When
//! all earlier strides are decided, the next free worker decides which of its files count; then
//! free workers keep the files. So no worker waits while another reads a long file, and the results
//! do not depend on the schedule.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use quarrier_core::source::Source;
use quarrier_core::sync::{into_inner, lock, wait};
use quarrier_core::threads;

use super::STRIDE_BYTES;
use super::account::{BrokenFile, Stride, add_since};
use super::allowance::{Allowance, again_bytes};
use super::apart::{JudgedPart, PartSearch, Passing};
use super::candidates::{Candidate, CandidateSearch, Signatures};
use super::judge::Judge;
use super::ranges::CarvedRanges;
use super::resume::Midway;
use super::run::{CarveRun, RunState};
use super::skimmed::{Skimmed, SkimmedRange, Skimming};
use crate::carved::Carved;
use crate::error::{Error, Result};
use crate::view::View;

/// Maximum number of strides, or parts of them, that are judged before it is their turn.
const AHEAD_MAX: usize = 16;

/// The minimum size of a search in bytes.
const STEP_BYTES_MIN: u64 = 64 << 10;

/// Assigns the work of a run, stride by stride.
pub(super) struct Scheduler<'a, 'c> {
    run: &'a CarveRun<'c>,
    signatures: &'a Signatures,
    /// Held while reading a source that is not in memory, so that strides are read sequentially.
    reading: Mutex<()>,
    shared: Mutex<SharedState<'c>>,
    /// Signals a change of the shared state.
    changed: Condvar,
    /// Where judged parts go, if another process decides about them.
    passing: Option<&'a Passing<'a>>,
}

/// State that all workers share.
struct SharedState<'c> {
    state: RunState<'c>,
    /// The next stride to take: its number, and its earliest possible start.
    next: (u64, u64),
    /// The state of the first stride, if an earlier run finished a part of it.
    midway: Option<Midway>,
    /// The number of strides taken and not yet judged to their end.
    under_way: u64,
    /// The judged parts, by the numbers of the stride and of the part.
    judged: BTreeMap<(u64, u32), JudgedPart>,
    /// The next part to decide.
    turn: (u64, u32),
    pending: Option<PendingOutput>,
    failed: Option<Error>,
    /// Whether a worker panicked.
    is_lost: bool,
}

/// The unjudged rest of a stride that a worker has taken.
#[derive(Debug, Clone)]
struct Task {
    number: u64,
    part: u32,
    range: Range<u64>,
    /// The size of the next search in bytes: smaller if there are very many candidates.
    step_bytes: u64,
    left: Allowance,
    /// Whether another part of it was judged before.
    is_begun: bool,
}

/// The part whose files are being kept.
struct PendingOutput {
    range: Range<u64>,
    midway: Option<Midway>,
    unreadable: Vec<Range<u64>>,
    skimmed: Vec<SkimmedRange>,
    whole: Vec<Carved>,
    broken: Vec<BrokenFile>,
    /// The wanted ones of `whole`, the longest first.
    wanted: Arc<[Carved]>,
    /// The numbers of wanted files that workers have taken, and that are not yet kept.
    taken: usize,
    left: usize,
}

/// The next step of a worker.
enum NextStep {
    Keep(Arc<[Carved]>, usize),
    Judge(Task),
    Nothing,
}

impl<'a, 'c> Scheduler<'a, 'c> {
    /// Schedules the strides after `state`.
    pub(super) fn new(
        run: &'a CarveRun<'c>,
        signatures: &'a Signatures,
        state: RunState<'c>,
    ) -> Self {
        let shared = SharedState {
            next: (0, state.summary.position),
            midway: run.carver.begun.midway,
            state,
            under_way: 0,
            judged: BTreeMap::new(),
            turn: (0, 0),
            pending: None,
            failed: None,
            is_lost: false,
        };
        let (reading, changed) = (Mutex::new(()), Condvar::new());
        let shared = Mutex::new(shared);
        Scheduler { run, signatures, reading, shared, changed, passing: None }
    }

    /// Passes the judged parts of some strides on, in place of deciding.
    pub(super) fn pass(mut self, passing: &'a Passing<'a>) -> Self {
        self.passing = Some(passing);
        self
    }

    /// Runs all strides. Returns the final state.
    pub(super) fn run(self) -> Result<RunState<'c>> {
        threads::team(0..self.run.carver.workers_count().max(1), |_| self.work());
        let shared = into_inner(self.shared);
        match shared.failed {
            Some(error) => Err(error),
            None => Ok(shared.state),
        }
    }

    /// Runs a worker until there is nothing left to do.
    fn work(&self) {
        let _alarm = Alarm(self);
        let mut view = self.run.carver.view(self.run.source);
        let mut mine = None;
        loop {
            match self.next(&mine) {
                NextStep::Keep(files, index) => {
                    let begun = Instant::now();
                    view.look_at(&files[index].extents, u64::MAX);
                    let kept = self.run.keep.keep(&files[index], &mut view);
                    add_since(&self.run.times.sink_ns, begun);
                    self.kept(kept);
                }
                NextStep::Judge(task) => mine = self.judge(task, &mut view),
                NextStep::Nothing => return,
            }
        }
    }

    /// Waits for the next step. `mine` is the rest of the stride that this worker has taken.
    fn next(&self, mine: &Option<Task>) -> NextStep {
        let mut shared = self.lock();
        loop {
            if shared.failed.is_some() || shared.is_lost {
                return NextStep::Nothing;
            }
            if let Some(pending) = &mut shared.pending
                && pending.taken < pending.wanted.len()
            {
                pending.taken += 1;
                return NextStep::Keep(Arc::clone(&pending.wanted), pending.taken - 1);
            }
            let is_stopped = self.run.carver.is_stopped();
            if shared.pending.is_none() {
                let turn = shared.turn;
                if is_stopped {
                    return NextStep::Nothing;
                }
                if let Some(part) = shared.judged.remove(&turn) {
                    match self.passing {
                        None => self.decide(&mut shared, part),
                        Some(passing) => self.pass_on(&mut shared, passing, part),
                    }
                    continue;
                }
            }
            if !is_stopped && let Some(task) = self.take(&mut shared, mine) {
                return NextStep::Judge(task);
            }
            let is_all = shared.under_way == 0 && shared.judged.is_empty();
            if is_all && shared.pending.is_none() {
                return NextStep::Nothing;
            }
            shared = wait(&self.changed, shared);
        }
    }

    /// Takes the rest of a stride, or a new one, as long as there is memory for judged parts.
    fn take(&self, shared: &mut SharedState<'c>, mine: &Option<Task>) -> Option<Task> {
        let is_room = shared.judged.len() < AHEAD_MAX;
        if let Some(mine) = mine {
            return (is_room || mine.number == shared.turn.0).then(|| mine.clone());
        }
        let (number, at) = shared.next;
        let from = self.run.ranges.next(at).filter(|_| is_room)?;
        if self.passing.is_some_and(|passing| from >= passing.end) {
            return None;
        }
        let end = stride_end(self.run.source, self.run.ranges, from);
        shared.next = (number + 1, end);
        shared.under_way += 1;
        // The carved ranges may begin after the finished part.
        let midway = shared.midway.take().filter(|_| from == at);
        let is_begun = midway.is_some();
        let fresh = Midway { step_bytes: end - from, left: Allowance::WHOLE };
        let Midway { step_bytes, left } = midway.unwrap_or(fresh);
        Some(Task { number, part: 0, range: from..end, step_bytes, left, is_begun })
    }

    /// Searches a task, and judges its candidates; returns the rest of it.
    fn judge(&self, task: Task, view: &mut View<'_>) -> Option<Task> {
        if let Some(parts) = self.judged_apart(&task) {
            let mut shared = self.lock();
            let parts = (0..).zip(parts).map(|(part, judged)| ((task.number, part), judged));
            shared.judged.extend(parts);
            shared.under_way -= 1;
            self.changed.notify_all();
            return None;
        }
        let start = task.range.start;
        let requested = start..task.range.end.min(start.saturating_add(task.step_bytes));
        let looked = self.look(requested);
        let looked = match looked {
            Ok(looked) => looked,
            Err(error) => {
                self.lock().failed.get_or_insert(error);
                self.changed.notify_all();
                return None;
            }
        };
        let range = start..looked.until.max(start + 1);
        let is_last = range.end >= task.range.end;
        let judge = Judge {
            formats: &self.run.carver.formats,
            ranges: self.run.ranges,
            in_pieces: self.run.in_pieces,
            embedded: self.run.carver.embedded,
            reads_all: self.run.carver.reads_all,
            stop: self.run.carver.stop,
        };
        let begun = Instant::now();
        let mut allowance = task.left;
        let again_bytes = again_bytes(range.end - range.start, is_last && !task.is_begun);
        let judgement = judge.judge(view, &looked.candidates, &mut allowance, again_bytes);
        add_since(&self.run.times.work_ns, begun);
        let step_bytes = (2 * (range.end - start)).max(STEP_BYTES_MIN);
        let midway = (!is_last).then_some(Midway { step_bytes, left: allowance });
        let rest = midway.map(|Midway { step_bytes, left }| Task {
            number: task.number,
            part: task.part + 1,
            range: range.end..task.range.end,
            step_bytes,
            left,
            is_begun: true,
        });
        let mut shared = self.lock();
        // An interrupted stride is incomplete, and so is one whose source was lost.
        match self.run.gone() {
            _ if self.run.carver.is_stopped() => {}
            Some(error) => {
                shared.failed.get_or_insert(error);
            }
            None => {
                let search = PartSearch::of(looked);
                let part = JudgedPart { range, midway, search, judgement };
                shared.judged.insert((task.number, task.part), part);
            }
        }
        shared.under_way -= u64::from(is_last);
        self.changed.notify_all();
        rest
    }

    /// The parts of a stride that was judged apart.
    fn judged_apart(&self, task: &Task) -> Option<Vec<JudgedPart>> {
        let apart = self.run.carver.judged.filter(|_| task.part == 0 && !task.is_begun)?;
        let line = apart.stride(task.range.start)?;
        let stride = self.run.carver.judged_stride(&line)?;
        (stride.range == task.range).then_some(stride.parts)
    }

    /// Searches `range`. If the source is in memory, the calling worker searches alone; otherwise
    /// the workers of a pipeline search one range at a time.
    fn look(&self, range: Range<u64>) -> Result<CandidateSearch> {
        let CarveRun { carver, source, .. } = *self.run;
        if source.is_resident() {
            return self.signatures.look(source, range, carver, 1);
        }
        let _turn = self.reading.lock();
        self.signatures.look(source, range, carver, carver.workers_count())
    }

    /// Decides which files of a part count; it must be the part's turn.
    fn decide(&self, shared: &mut SharedState<'c>, part: JudgedPart) {
        let JudgedPart { range, midway, search, judgement } = part;
        shared.state.summary.cost_bytes += judgement.cost_bytes;
        shared.state.summary.bytes += range.end - range.start;
        shared.state.summary.add(&search);
        // Undecided files with a known end cannot be dropped, so they get only half of the memory.
        let room = (self.run.carver.remembered_max() / 2).saturating_sub(shared.state.broken.len());
        let (whole, broken) = shared.state.resolver.resolve(judgement.judged, range.end, room);
        let skimmed = self.skimmed(&shared.state, judgement.unread);
        let wanted: Arc<[Carved]> = self.run.carver.wanted(&whole).into_iter().cloned().collect();
        let left = wanted.len();
        shared.pending = Some(PendingOutput {
            range,
            midway,
            unreadable: search.unreadable,
            skimmed,
            whole,
            broken,
            wanted,
            taken: 0,
            left,
        });
        if left == 0 {
            self.note(shared);
        }
        self.changed.notify_all();
    }

    /// Passes a part on to another process; it must be the part's turn.
    fn pass_on(&self, shared: &mut SharedState<'c>, passing: &Passing<'_>, part: JudgedPart) {
        shared.turn = after(shared.turn, part.midway.is_some());
        if let Err(error) = (lock(&passing.take))(part) {
            shared.failed.get_or_insert(Error::Keep(error));
        }
        self.changed.notify_all();
    }

    /// Returns the places of candidates that could not be read to their end, except those in whole
    /// files.
    fn skimmed(&self, state: &RunState<'_>, unread: Vec<Candidate>) -> Vec<SkimmedRange> {
        let mut skimmed = Skimmed::new(Skimming::Crowded);
        for one in unread {
            if !state.resolver.is_covered(one.offset) {
                let format = self.run.carver.formats[one.format as usize];
                skimmed.add(one.offset, format.kinds()[0].name);
            }
        }
        skimmed.into_ranges()
    }

    /// Records that a file was kept, or the error.
    fn kept(&self, kept: io::Result<()>) {
        let mut shared = self.lock();
        match kept {
            Err(error) => drop(shared.failed.get_or_insert(Error::Keep(error))),
            Ok(()) => {
                let Some(pending) = &mut shared.pending else { return };
                pending.left -= 1;
                if pending.left > 0 {
                    return;
                }
                self.note(&mut shared);
            }
        }
        self.changed.notify_all();
    }

    /// Reports a part as done, after all its files were kept.
    fn note(&self, shared: &mut SharedState<'c>) {
        let Some(pending) = shared.pending.take() else { return };
        let span = self.run.ranges.span();
        shared.state.summary.count(pending.wanted.iter());
        shared.state.summary.position = pending.range.end;
        let noted = self.run.keep.stride(&Stride {
            range: pending.range.clone(),
            whole: &pending.whole,
            broken: &pending.broken,
            unreadable: &pending.unreadable,
            skimmed: &pending.skimmed,
            alignment: shared.state.resolver.alignment(),
            midway: pending.midway,
            total_bytes: span.end - span.start,
            done_bytes: pending.range.end - span.start,
        });
        if let Err(error) = noted {
            shared.failed.get_or_insert(Error::Keep(error));
        }
        pending.skimmed.into_iter().for_each(|one| shared.state.crowded.append(one));
        let RunState { broken, forgotten, .. } = &mut shared.state;
        self.run.carver.remember(broken, pending.broken, forgotten);
        shared.turn = after(shared.turn, pending.midway.is_some());
    }

    fn lock(&self) -> MutexGuard<'_, SharedState<'c>> {
        lock(&self.shared)
    }
}

/// Returns the end of the stride that begins at `from`. A stride includes the hole at its start, however long.
pub(super) fn stride_end(source: &dyn Source, ranges: &CarvedRanges, from: u64) -> u64 {
    let aligned = |at: u64| at - at % STRIDE_BYTES;
    let data = match source.next_data(from) {
        Ok(data) => data.map_or(u64::MAX, |data| data.start),
        Err(_) => from,
    };
    let end = (aligned(from) + STRIDE_BYTES).max(aligned(data));
    end.min(ranges.span().end).max(from + 1)
}

/// The numbers of stride and part after these.
fn after((stride, part): (u64, u32), is_midway: bool) -> (u64, u32) {
    if is_midway { (stride, part + 1) } else { (stride + 1, 0) }
}

/// Notifies the other workers when one panics, so that all end and the panic propagates.
struct Alarm<'x, 'a, 'c>(&'x Scheduler<'a, 'c>);

impl Drop for Alarm<'_, '_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_lost = true;
            self.0.changed.notify_all();
        }
    }
}
