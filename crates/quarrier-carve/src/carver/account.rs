//! What a run tells: of each stride while it lasts, and of all in the end.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::pipeline::{Plan, Run, Stage, StageLoad};

use super::{Alignment, Midway, SkimmedRange};
use crate::carved::Carved;
use crate::format::Kind;
use crate::view::View;

/// What becomes of what is found.
pub trait Keep: Sync {
    /// A file was found; `view` shows its bytes. Called by many threads at once, in no order;
    /// each file once.
    ///
    /// # Errors
    /// What ends the run: a full disk.
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()>;

    /// A stride is done: all files in it that are whole have been given to `keep`. Called for one
    /// stride after the other, in their order.
    ///
    /// # Errors
    /// What ends the run.
    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        let _ = stride;
        Ok(())
    }
}

/// What was found in a part of the source, for who wants to go on there after a crash.
#[derive(Debug)]
pub struct Stride<'a> {
    /// The part, in bytes of the source.
    pub range: Range<u64>,
    /// The files whose end is known, those of types that are not wanted too.
    pub whole: &'a [Carved],
    /// Those that begin here and are broken.
    pub broken: &'a [BrokenFile],
    /// Ranges of it that could not be read.
    pub unreadable: &'a [Range<u64>],
    /// Ranges of it that were looked at less closely, as files may begin at too many places there.
    pub skimmed: &'a [SkimmedRange],
    /// Where the files of all strides until now lie.
    pub alignment: Alignment,
    /// Where it is a part of a stride with very many candidates, and not the last one.
    pub midway: Option<Midway>,
    /// The length of what is carved, and how much of it is done, in bytes.
    pub total_bytes: u64,
    /// See `total_bytes`.
    pub done_bytes: u64,
}

/// A file that is not decided yet: it broke, and nobody has looked for its rest; or its end is known
/// (then `sure` and `at` are its length), but it lies where another that broke may go on, and may be
/// a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenFile {
    /// Its offset in the source.
    pub offset: u64,
    /// The first of the types of its format: who reads it again.
    pub format: &'static str,
    /// What it seems to be.
    pub kind: Kind,
    /// See [`Verdict::Broken`](crate::Verdict::Broken).
    pub sure: u64,
    /// See [`Verdict::Broken`](crate::Verdict::Broken).
    pub at: u64,
    /// Whether its end is known, and it is perhaps a part of another.
    pub is_whole: bool,
    /// Why it breaks; or, where its end is known, what of it was not read: empty for nothing.
    pub reason: String,
}

/// What a run was.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// Bytes of the source that were searched.
    pub bytes: u64,
    /// Of these, bytes in holes that were passed over without reading.
    pub hole_bytes: u64,
    /// Places that were looked at.
    pub candidates: u64,
    /// Files by status: valid, partial, header.
    pub files: [u64; 3],
    /// Files that are valid because their fragments were found.
    pub mended: u64,
    /// Ranges that were looked at less closely than the rest, each with a reason; in order.
    pub skimmed: Vec<SkimmedRange>,
    /// What it took to read candidates: bytes that were looked at, and what counts as many.
    pub cost_bytes: u64,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// Everything before this offset is done.
    pub position: u64,
    /// Size of the blocks in which files lie, in bytes.
    pub block_bytes: u64,
    /// The engine that searched for signatures.
    pub engine: String,
    /// How many signatures it searched for, and the time it took to prepare.
    pub signatures: usize,
    /// See `signatures`.
    pub compile: Duration,
    /// Threads.
    pub workers: usize,
    /// How the source was read to find signatures; none where nothing was searched.
    pub plan: Option<Plan>,
    /// Time of all threads in reading, in searching, validating and mending, and in keeping; by
    /// [`Stage`].
    pub stages: [StageLoad; 3],
}

impl Summary {
    /// Adds what a search for signatures says of itself.
    pub(super) fn add(&mut self, run: &Run) {
        for (sum, stage) in self.stages.iter_mut().zip(Stage::ALL) {
            let load = run.timeline.load(stage);
            sum.busy += load.busy;
            sum.waiting += load.waiting;
        }
        self.hole_bytes += run.hole_bytes;
        self.plan.get_or_insert_with(|| run.plan.clone());
        for range in &run.unreadable {
            self.lose(range.clone());
        }
    }

    /// Counts files that were kept.
    pub(super) fn count<'f>(&mut self, files: impl IntoIterator<Item = &'f Carved>) {
        for one in files {
            self.files[one.status as usize] += 1;
        }
    }

    /// Adds a range that could not be read behind the others, joining it with the last where they
    /// touch.
    pub(super) fn lose(&mut self, range: Range<u64>) {
        match self.unreadable.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => self.unreadable.push(range),
        }
    }
}

/// Time of all threads together, in nanoseconds, but for what the search tells of itself.
#[derive(Default)]
pub(super) struct Times {
    pub(super) work_ns: AtomicU64,
    pub(super) sink_ns: AtomicU64,
}

impl Times {
    pub(super) fn add_to(&self, summary: &mut Summary) {
        for (stage, ns) in [(Stage::Work, &self.work_ns), (Stage::Sink, &self.sink_ns)] {
            let busy = Duration::from_nanos(ns.load(Ordering::Relaxed));
            summary.stages[stage as usize].busy += busy;
        }
    }
}

/// Adds the time since `begun`.
pub(super) fn add_since(busy_ns: &AtomicU64, begun: Instant) {
    let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    busy_ns.fetch_add(ns, Ordering::Relaxed);
}
