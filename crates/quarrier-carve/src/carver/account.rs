//! Reports of a run: on each stride as it ends, and on the whole at the end.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::pipeline::{Plan, Stage, StageLoad};
use quarrier_core::ranges::push_merged;

use super::apart::PartSearch;
use super::{Alignment, Midway, SkimmedRange};
use crate::carved::Carved;
use crate::format::Kind;
use crate::view::View;

/// Receives the carved files.
pub trait Keep: Sync {
    /// Takes a file; `view` shows its bytes. Many threads call this at once, in no order, once for
    /// each file.
    ///
    /// # Errors
    /// An error that ends the run, such as a full disk.
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()>;

    /// Reports that a stride is done: `keep` has received all of its whole files. Called once for
    /// each stride, in order.
    ///
    /// # Errors
    /// An error that ends the run.
    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        let _ = stride;
        Ok(())
    }
}

/// The files of a part of the source, for runs that resume there after a crash.
#[derive(Debug)]
pub struct Stride<'a> {
    /// The part, in bytes of the source.
    pub range: Range<u64>,
    /// The files with a known end, including those of unwanted types.
    pub whole: &'a [Carved],
    /// Broken files that begin here.
    pub broken: &'a [BrokenFile],
    /// The unreadable ranges in it.
    pub unreadable: &'a [Range<u64>],
    /// The ranges in it that were examined less closely because they had too many candidates.
    pub skimmed: &'a [SkimmedRange],
    /// The alignment of the files of this and all earlier strides.
    pub alignment: Alignment,
    /// Set if this is a part of a stride with very many candidates, and not the last one.
    pub midway: Option<Midway>,
    /// The length of the carved ranges, in bytes.
    pub total_bytes: u64,
    /// The number of these bytes that are done.
    pub done_bytes: u64,
}

/// An undecided file. Either it broke, and its rest has not been searched for; or its end is known
/// (then `sure` and `at` are its length), but it may be a part of another broken file that
/// continues there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenFile {
    /// The offset of the file in the source.
    pub offset: u64,
    /// The first type of the file's format, which identifies the format.
    pub format: &'static str,
    /// The apparent type of the file.
    pub kind: Kind,
    /// The number of bytes that certainly belong to the file; see
    /// [`Verdict::Broken`](crate::Verdict::Broken).
    pub sure: u64,
    /// The byte of the file where it breaks; see [`Verdict::Broken`](crate::Verdict::Broken).
    pub at: u64,
    /// Whether the end of the file is known, but it may be a part of another file.
    pub is_whole: bool,
    /// Why the file breaks. If its end is known, the part that was not read, or empty.
    pub reason: String,
}

/// The totals of a run.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// Bytes of the source that were searched.
    pub bytes: u64,
    /// The part of these bytes in holes, which were skipped without reading.
    pub hole_bytes: u64,
    /// The number of candidates examined.
    pub candidates: u64,
    /// Files by status: valid, partial, header.
    pub files: [u64; 3],
    /// Files that are valid because their fragments were found.
    pub mended: u64,
    /// Ranges that were examined less closely than the rest, each with a reason; in order.
    pub skimmed: Vec<SkimmedRange>,
    /// The cost of reading candidates, in bytes of fuel.
    pub cost_bytes: u64,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Whether the run was stopped before its end.
    pub stopped: bool,
    /// All bytes before this offset are done.
    pub position: u64,
    /// The block size to which files are aligned, in bytes.
    pub block_bytes: u64,
    /// The engine that searched for signatures.
    pub engine: String,
    /// The number of signatures in that search.
    pub signatures: usize,
    /// The time to compile the signatures.
    pub compile: Duration,
    /// The number of worker threads.
    pub workers: usize,
    /// The plan for reading the source during the search for signatures; `None` if nothing was
    /// searched.
    pub plan: Option<Plan>,
    /// The time of all threads by [`Stage`]: for reading; for searching, validating and mending;
    /// and for keeping.
    pub stages: [StageLoad; 3],
}

impl Summary {
    /// Adds the figures of a run over another source. Ranges and the position stay those of this
    /// run, since they are offsets in one source.
    pub fn join(&mut self, other: &Summary) {
        self.bytes += other.bytes;
        self.hole_bytes += other.hole_bytes;
        self.candidates += other.candidates;
        self.files.iter_mut().zip(other.files).for_each(|(sum, count)| *sum += count);
        self.mended += other.mended;
        self.cost_bytes += other.cost_bytes;
        self.stopped |= other.stopped;
        self.compile += other.compile;
        self.workers = self.workers.max(other.workers);
        if self.plan.is_none() {
            self.plan.clone_from(&other.plan);
            self.engine.clone_from(&other.engine);
            self.signatures = other.signatures;
        }
        for (sum, load) in self.stages.iter_mut().zip(&other.stages) {
            sum.busy += load.busy;
            sum.waiting += load.waiting;
        }
    }

    /// Adds the figures of a search for signatures.
    pub(super) fn add(&mut self, search: &PartSearch) {
        if let Some(run) = &search.run {
            for (sum, stage) in self.stages.iter_mut().zip(Stage::ALL) {
                let load = run.timeline.load(stage);
                sum.busy += load.busy;
                sum.waiting += load.waiting;
            }
            self.plan.get_or_insert_with(|| run.plan.clone());
        }
        self.candidates += search.candidates;
        self.hole_bytes += search.hole_bytes;
        for range in &search.unreadable {
            self.lose(range.clone());
        }
    }

    /// Counts files that were kept.
    pub(super) fn count<'f>(&mut self, files: impl IntoIterator<Item = &'f Carved>) {
        for one in files {
            self.files[one.status as usize] += 1;
        }
    }

    /// Appends an unreadable range, joining it with the last one if they touch.
    pub(super) fn lose(&mut self, range: Range<u64>) {
        push_merged(&mut self.unreadable, range);
    }
}

/// The total time of all threads in nanoseconds, without the search.
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
