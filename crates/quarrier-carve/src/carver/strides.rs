//! The way through a source: who searches, judges, decides and keeps, and when.
//!
//! ```text
//!  strides:  search ──→ judge ──┐          by any worker, several strides at a time
//!            search ──→ judge ──┤
//!                               └─→ decide ──→ keep its files ──→ note     in order of the source
//! ```
//!
//! A worker takes the next stride, searches it, judges what it found, and puts that on the board.
//! Who comes by next and sees that it is this stride's turn decides which of its files count, which
//! needs all before it; then its files are kept by whoever is free. So nobody waits while another
//! reads a long file, and what is found does not depend on who did what.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use quarrier_core::source::Source;

use super::STRIDE_BYTES;
use super::account::{BrokenFile, Stride, add_since};
use super::allowance::Allowance;
use super::candidates::{Looked, Signatures};
use super::course::{Course, Known};
use super::judge::{Court, Docket};
use super::resume::Midway;
use crate::carved::Carved;
use crate::error::{Error, Result};
use crate::view::View;

/// Strides, or parts of them, that may be judged before it is their turn.
const AHEAD_MAX: usize = 16;

/// What is searched at once at least.
const STEP_BYTES_MIN: u64 = 64 << 10;

/// The strides of a run, on their way.
pub(super) struct Strides<'a, 'c> {
    course: &'a Course<'c>,
    signatures: &'a Signatures,
    /// Held by who reads a source that must be fetched: one stride is read after the other.
    reading: Mutex<()>,
    board: Mutex<Board<'c>>,
    /// Something on the board is not as it was.
    changed: Condvar,
}

/// What all workers see.
struct Board<'c> {
    known: Known<'c>,
    /// The next stride that nobody has taken: its number, and where it begins at the earliest.
    next: (u64, u64),
    /// How the first stride goes on, if a part of it is done.
    midway: Option<Midway>,
    /// Strides taken and not yet judged to their end.
    under_way: u64,
    /// What was judged, by number of the stride and of the part of it.
    judged: BTreeMap<(u64, u32), Part>,
    /// What is decided next.
    turn: (u64, u32),
    keeping: Option<Keeping>,
    failed: Option<Error>,
    /// Whether a worker panicked.
    is_lost: bool,
}

/// A stride that a worker has taken, as far as it is not yet judged.
#[derive(Debug, Clone)]
struct Taken {
    number: u64,
    part: u32,
    range: Range<u64>,
    /// How much of it is searched at once, in bytes: less where there are very many candidates.
    step_bytes: u64,
    left: Allowance,
}

/// A stride that was judged, or a part of one with very many candidates.
struct Part {
    range: Range<u64>,
    /// How it goes on, where it is not the last of its stride.
    midway: Option<Midway>,
    looked: Looked,
    docket: Docket,
}

/// The part whose files are being kept.
struct Keeping {
    range: Range<u64>,
    midway: Option<Midway>,
    unreadable: Vec<Range<u64>>,
    whole: Vec<Carved>,
    broken: Vec<BrokenFile>,
    /// Those of `whole` that are wanted, the longest first.
    wanted: Arc<[Carved]>,
    /// How many of them were taken by somebody, and how many are not yet kept.
    taken: usize,
    left: usize,
}

/// What a worker does next.
enum Duty {
    Keep(Arc<[Carved]>, usize),
    Judge(Taken),
    Nothing,
}

impl<'a, 'c> Strides<'a, 'c> {
    /// Those behind what is `known`.
    pub(super) fn new(
        course: &'a Course<'c>,
        signatures: &'a Signatures,
        known: Known<'c>,
    ) -> Self {
        let board = Board {
            next: (0, known.summary.position),
            midway: course.carver.begun.midway,
            known,
            under_way: 0,
            judged: BTreeMap::new(),
            turn: (0, 0),
            keeping: None,
            failed: None,
            is_lost: false,
        };
        let (reading, changed) = (Mutex::new(()), Condvar::new());
        Strides { course, signatures, reading, board: Mutex::new(board), changed }
    }

    /// Goes through all of them. Returns what is known then.
    pub(super) fn run(self) -> Result<Known<'c>> {
        std::thread::scope(|scope| {
            for _ in 1..self.course.carver.workers_count() {
                scope.spawn(|| self.work());
            }
            self.work();
        });
        let board = self.board.into_inner().unwrap_or_else(PoisonError::into_inner);
        match board.failed {
            Some(error) => Err(error),
            None => Ok(board.known),
        }
    }

    /// The life of a worker.
    fn work(&self) {
        let _alarm = Alarm(self);
        let mut view = self.course.carver.view(self.course.source);
        let mut mine = None;
        loop {
            match self.next(&mine) {
                Duty::Keep(files, index) => {
                    let begun = Instant::now();
                    view.look_at(&files[index].extents, u64::MAX);
                    let kept = self.course.keep.keep(&files[index], &mut view);
                    add_since(&self.course.times.sink_ns, begun);
                    self.kept(kept);
                }
                Duty::Judge(taken) => mine = self.judge(taken, &mut view),
                Duty::Nothing => return,
            }
        }
    }

    /// Waits for something to do. `mine` is what is left of the stride that this worker has taken.
    fn next(&self, mine: &Option<Taken>) -> Duty {
        let mut board = self.lock();
        loop {
            if board.failed.is_some() || board.is_lost {
                return Duty::Nothing;
            }
            if let Some(keeping) = &mut board.keeping
                && keeping.taken < keeping.wanted.len()
            {
                keeping.taken += 1;
                return Duty::Keep(Arc::clone(&keeping.wanted), keeping.taken - 1);
            }
            let is_stopped = self.course.carver.is_stopped();
            if board.keeping.is_none() {
                let turn = board.turn;
                if is_stopped {
                    return Duty::Nothing;
                }
                if let Some(part) = board.judged.remove(&turn) {
                    self.decide(&mut board, part);
                    continue;
                }
            }
            if !is_stopped && let Some(taken) = self.take(&mut board, mine) {
                return Duty::Judge(taken);
            }
            let is_all = board.under_way == 0 && board.judged.is_empty();
            if is_all && board.keeping.is_none() {
                return Duty::Nothing;
            }
            board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The rest of a stride, or a new one, as long as there is room for what is judged.
    fn take(&self, board: &mut Board<'c>, mine: &Option<Taken>) -> Option<Taken> {
        let is_room = board.judged.len() < AHEAD_MAX;
        if let Some(mine) = mine {
            return (is_room || mine.number == board.turn.0).then(|| mine.clone());
        }
        let (number, at) = board.next;
        let from = self.course.ground.next(at).filter(|_| is_room)?;
        let end = self.stride_end(from);
        board.next = (number + 1, end);
        board.under_way += 1;
        // What is carved may begin behind what was done.
        let midway = board.midway.take().filter(|_| from == at);
        let fresh = Midway { step_bytes: end - from, left: Allowance::WHOLE };
        let Midway { step_bytes, left } = midway.unwrap_or(fresh);
        Some(Taken { number, part: 0, range: from..end, step_bytes, left })
    }

    /// The end of the stride that begins at `from`. What is a hole all over is no stride.
    fn stride_end(&self, from: u64) -> u64 {
        let aligned = |at: u64| at - at % STRIDE_BYTES;
        let data = match self.course.source.next_data(from) {
            Ok(data) => data.map_or(u64::MAX, |data| data.start),
            Err(_) => from,
        };
        let end = (aligned(from) + STRIDE_BYTES).max(aligned(data));
        end.min(self.course.ground.span().end).max(from + 1)
    }

    /// Searches what was taken, and judges what is found there; returns what is left of it.
    fn judge(&self, taken: Taken, view: &mut View<'_>) -> Option<Taken> {
        let start = taken.range.start;
        let wish = start..taken.range.end.min(start.saturating_add(taken.step_bytes));
        let looked = self.look(wish);
        let looked = match looked {
            Ok(looked) => looked,
            Err(error) => {
                self.lock().failed.get_or_insert(error);
                self.changed.notify_all();
                return None;
            }
        };
        let range = start..looked.until.max(start + 1);
        let is_last = range.end >= taken.range.end;
        let court = Court {
            formats: &self.course.carver.formats,
            ground: self.course.ground,
            embedded: self.course.carver.embedded,
            stop: self.course.carver.stop,
        };
        let begun = Instant::now();
        let mut allowance = taken.left;
        let docket = court.judge(view, &looked.candidates, &mut allowance);
        add_since(&self.course.times.work_ns, begun);
        let step_bytes = (2 * (range.end - start)).max(STEP_BYTES_MIN);
        let midway = (!is_last).then_some(Midway { step_bytes, left: allowance });
        let rest = midway.map(|Midway { step_bytes, left }| Taken {
            number: taken.number,
            part: taken.part + 1,
            range: range.end..taken.range.end,
            step_bytes,
            left,
        });
        let mut board = self.lock();
        // What was stopped is not known to its end.
        if !self.course.carver.is_stopped() {
            let part = Part { range, midway, looked, docket };
            board.judged.insert((taken.number, taken.part), part);
        }
        board.under_way -= u64::from(is_last);
        self.changed.notify_all();
        rest
    }

    /// Searches `range`: where it can be mapped by who judges it next, and else by all in turn.
    fn look(&self, range: Range<u64>) -> Result<Looked> {
        let Course { carver, source, .. } = *self.course;
        if source.is_resident() {
            return self.signatures.look(source, range, carver, 1);
        }
        let _turn = self.reading.lock();
        self.signatures.look(source, range, carver, carver.workers_count())
    }

    /// Decides which files of a part count. It is its turn.
    fn decide(&self, board: &mut Board<'c>, part: Part) {
        let Part { range, midway, looked, docket } = part;
        board.known.summary.unread += docket.unread;
        board.known.summary.cost_bytes += docket.cost_bytes;
        board.known.summary.bytes += range.end - range.start;
        board.known.summary.candidates += looked.candidates.len() as u64;
        board.known.summary.add(&looked.run);
        // Of those that wait only the broken ones may be forgotten: they get half of the room.
        let room =
            (self.course.carver.remembered_max() / 2).saturating_sub(board.known.broken.len());
        let (whole, broken) = board.known.resolver.resolve(docket.judged, range.end, room);
        let wanted: Arc<[Carved]> =
            self.course.carver.wanted(&whole).into_iter().cloned().collect();
        let left = wanted.len();
        board.keeping = Some(Keeping {
            range,
            midway,
            unreadable: looked.run.unreadable,
            whole,
            broken,
            wanted,
            taken: 0,
            left,
        });
        if left == 0 {
            self.note(board);
        }
        self.changed.notify_all();
    }

    /// A file was kept, or not.
    fn kept(&self, kept: io::Result<()>) {
        let mut board = self.lock();
        match kept {
            Err(error) => drop(board.failed.get_or_insert(Error::Keep(error))),
            Ok(()) => {
                let Some(keeping) = &mut board.keeping else { return };
                keeping.left -= 1;
                if keeping.left > 0 {
                    return;
                }
                self.note(&mut board);
            }
        }
        self.changed.notify_all();
    }

    /// All files of a part are kept: it is done.
    fn note(&self, board: &mut Board<'c>) {
        let Some(keeping) = board.keeping.take() else { return };
        let span = self.course.ground.span();
        board.known.summary.count(keeping.wanted.iter());
        board.known.summary.position = keeping.range.end;
        let noted = self.course.keep.stride(&Stride {
            range: keeping.range.clone(),
            whole: &keeping.whole,
            broken: &keeping.broken,
            unreadable: &keeping.unreadable,
            alignment: board.known.resolver.alignment(),
            midway: keeping.midway,
            total_bytes: span.end - span.start,
            done_bytes: keeping.range.end - span.start,
        });
        if let Err(error) = noted {
            board.failed.get_or_insert(Error::Keep(error));
        }
        board.known.summary.forgotten +=
            self.course.carver.remember(&mut board.known.broken, keeping.broken);
        board.turn = match keeping.midway {
            None => (board.turn.0 + 1, 0),
            Some(_) => (board.turn.0, board.turn.1 + 1),
        };
    }

    fn lock(&self) -> MutexGuard<'_, Board<'c>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the others when a worker panics, so that all end and the panic is passed on.
struct Alarm<'x, 'a, 'c>(&'x Strides<'a, 'c>);

impl Drop for Alarm<'_, '_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_lost = true;
            self.0.changed.notify_all();
        }
    }
}
