//! Carves a source: candidates, verdicts, claims of bytes, mending.

mod account;
mod again;
mod allowance;
mod apart;
mod bad;
mod cached;
mod candidates;
mod enclosed;
mod in_pieces;
mod judge;
mod places;
mod ranges;
mod resolve;
mod resume;
mod room;
mod run;
mod scheduler;
mod skimmed;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quarrier_core::parallel::{available_workers, planned_workers};
use quarrier_core::pipeline::Rates;
use quarrier_core::region::AsData;
use quarrier_core::source::Source;

use crate::carved::{Carved, Status};
use crate::error::{Error, Result};
use crate::format::{self, Format};
use crate::mend::Effort;
use crate::view::{Extent, View, cut};

use account::Times;
pub use account::{BrokenFile, Keep, Stride, Summary};
pub use allowance::Allowance;
pub use apart::{JudgedRange, JudgedStrides};
use cached::CachedSource;
use candidates::Signatures;
use in_pieces::FilesInPieces;
use ranges::CarvedRanges;
pub use resume::{Alignment, EarlierResults, Midway};
use run::CarveRun;
use skimmed::Skimmed;
pub use skimmed::{SkimmedRange, Skimming};

/// Size of a stride, which one worker searches and judges.
const STRIDE_BYTES: u64 = 16 << 20;
/// Number of strides, or parts of them, that share the memory for candidates.
const UNDER_WAY: usize = 16;

/// Recovers files from sources. Methods set the options of its [runs](Carver::run).
pub struct Carver<'a> {
    formats: Vec<&'a dyn Format>,
    workers: usize,
    range: Option<Vec<Range<u64>>>,
    clusters: Option<Vec<Range<u64>>>,
    in_pieces: Vec<Box<[Extent]>>,
    file_bytes_max: u64,
    effort: Effort,
    embedded: bool,
    reads_all: bool,
    keep_broken: bool,
    kinds: Option<Vec<String>>,
    begun: EarlierResults,
    judged: Option<&'a dyn JudgedStrides>,
    memory_bytes_max: u64,
    rates: Option<Rates>,
    promise: Option<AsData>,
    stop: &'a AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Carver<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Carver<'a> {
    /// Makes a carver for all formats.
    pub fn new() -> Self {
        Carver {
            formats: format::ALL.to_vec(),
            workers: available_workers(),
            range: None,
            clusters: None,
            in_pieces: Vec::new(),
            file_bytes_max: u64::MAX,
            effort: Effort::NORMAL,
            embedded: false,
            reads_all: false,
            keep_broken: true,
            kinds: None,
            begun: EarlierResults::default(),
            judged: None,
            memory_bytes_max: 1 << 30,
            rates: None,
            promise: None,
            stop: &NEVER,
        }
    }

    /// Restricts the search to these formats.
    #[must_use]
    pub fn formats(mut self, formats: Vec<&'a dyn Format>) -> Self {
        self.formats = formats;
        self
    }

    /// Shows formats and [`Keep`] the bytes of files in place, without copies, although others may
    /// change these bytes meanwhile. They must tolerate changes; without this promise they see
    /// copies.
    ///
    /// The formats of this crate, [user-defined](crate::own) ones and
    /// [`Folder`](crate::folder::Folder) tolerate changes: they copy the bytes of a view before
    /// they make a `str` of them. The crate's only unsafe code is a call of a function for the
    /// CPU's features. Decompressors read their input forward, bounded by lengths and not by
    /// earlier contents; the one library in C receives copies.
    #[must_use]
    pub fn show_changing(mut self, promise: AsData) -> Self {
        self.promise = Some(promise);
        self
    }

    /// Sets the number of threads, which is also the maximum number of files read at once. 0
    /// selects the default, one per CPU.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = planned_workers(workers);
        self
    }

    /// Returns the number of threads that a run will use: the requested number, limited by memory.
    pub fn workers_count(&self) -> usize {
        self.workers.min(room::workers_max(self.memory_bytes_max))
    }

    /// Carves only these ranges, as if the source had no other bytes.
    #[must_use]
    pub fn ranges(mut self, ranges: Vec<Range<u64>>) -> Self {
        self.range = Some(ranges);
        self
    }

    /// Sets the parts of the [`ranges`](Self::ranges) that form the clusters of a file system. A
    /// file that begins in a cluster continues in the next ones. A file that begins elsewhere, such
    /// as in the slack of another, ends with its range. With `None`, a file continues from each
    /// range to the next.
    #[must_use]
    pub fn clusters(mut self, clusters: Option<Vec<Range<u64>>>) -> Self {
        self.clusters = clusters;
        self
    }

    /// Sets the extents of fragmented files that a file system still has, for each file in the
    /// order of its bytes. A candidate at the first byte of such a file is first read with these
    /// extents, which are accepted if its format confirms them.
    #[must_use]
    pub fn files_in_pieces(mut self, files: Vec<Box<[Extent]>>) -> Self {
        self.in_pieces = files;
        self
    }

    /// Sets the maximum file size in bytes; longer files are cut and reported as partial.
    #[must_use]
    pub fn file_bytes_max(mut self, bytes: u64) -> Self {
        self.file_bytes_max = bytes;
        self
    }

    /// Sets the effort of the search for the rest of broken files.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Sets whether to find files inside other files, too. This excludes archives, whose members
    /// [`embedded::walk`](crate::embedded::walk) lists by name.
    #[must_use]
    pub fn embedded(mut self, embedded: bool) -> Self {
        self.embedded = embedded;
        self
    }

    /// Sets whether to return to every place that [`Summary::skimmed`] would list, and read all
    /// candidates there to their end. The time for this is unbounded: it depends on the contents of
    /// the source.
    #[must_use]
    pub fn reads_all(mut self, reads_all: bool) -> Self {
        self.reads_all = reads_all;
        self
    }

    /// Sets whether to keep files that are not valid: broken ones that could not be mended, and
    /// those with parts that were not read.
    #[must_use]
    pub fn keep_broken(mut self, keep: bool) -> Self {
        self.keep_broken = keep;
        self
    }

    /// Keeps only files of these types. The carver still searches for all others, to know which
    /// bytes belong to them: a picture in a document is not a separate file.
    ///
    /// # Errors
    /// [`Error::Signature`] for a type that no format reports.
    pub fn kinds(mut self, kinds: Vec<String>) -> Result<Self> {
        let known: Vec<_> =
            self.formats.iter().flat_map(|format| format.kinds()).map(|kind| kind.name).collect();
        if let Some(kind) = kinds.iter().find(|kind| !known.contains(&kind.as_str())) {
            let known = known.join(", ");
            return Err(Error::Signature(format!("type {kind:?} is not known; known are {known}")));
        }
        self.kinds = Some(kinds);
        Ok(self)
    }

    /// Keeps files of all types again, after [`kinds`](Carver::kinds).
    #[must_use]
    pub fn all_kinds(mut self) -> Self {
        self.kinds = None;
        self
    }

    /// Resumes an earlier run over the same source with the same settings. `keep` first receives
    /// the earlier run's whole files again.
    #[must_use]
    pub fn resume(mut self, begun: EarlierResults) -> Self {
        self.begun = begun;
        self
    }

    /// Sets the memory for candidates and for windows and buffers of the source, in bytes; the
    /// default is 1 GiB. Broken files that do not fit are dropped, and the summary reports them;
    /// with little memory there are fewer threads. The carver takes at least some 64 MiB; decoders
    /// and the program itself need more.
    #[must_use]
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.memory_bytes_max = bytes;
        self
    }

    /// Sets the measured rates of the source's disk, which plan its reads.
    #[must_use]
    pub fn rates(mut self, rates: Rates) -> Self {
        self.rates = Some(rates);
        self
    }

    /// Ends the run early when the flag becomes true.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = stop;
        self
    }

    /// Carves `source`, and passes the files to `keep`.
    ///
    /// # Errors
    /// [`Error::Source`] if the source fails as a whole, [`Error::Keep`] with the error of `keep`;
    /// files kept until then are valid.
    pub fn run(&self, source: &dyn Source, keep: &dyn Keep) -> Result<Summary> {
        let (ranges, lost) = self.ranges_of(source);
        let in_pieces = FilesInPieces::new(&self.in_pieces);
        let started = Instant::now();
        let signatures = Signatures::new(&self.formats)?;
        let summary = Summary {
            signatures: signatures.count(),
            compile: started.elapsed(),
            engine: signatures.engine_name(),
            workers: self.workers_count(),
            position: ranges.span().start,
            ..Summary::default()
        };
        let cached = CachedSource::new(source, self.memory_bytes_max);
        let times = Times::default();
        let run = CarveRun {
            carver: self,
            source: &cached,
            keep,
            ranges: &ranges,
            in_pieces: &in_pieces,
            times,
        };
        let mut summary = run.run(&signatures, summary)?;
        if !summary.stopped {
            lost.into_iter().for_each(|range| summary.lose(range));
        }
        Ok(summary)
    }

    /// Returns the ranges to carve, and those that are unreadable for certain.
    fn ranges_of(&self, source: &dyn Source) -> (CarvedRanges, Vec<Range<u64>>) {
        let length = source.length();
        let wanted: Vec<Range<u64>> = match &self.range {
            Some(ranges) => ranges.iter().map(|r| r.start.min(length)..r.end.min(length)).collect(),
            None => std::iter::once(0..length).collect(),
        };
        // Try one stride of the unreadable range, in case more can be read than reported.
        let tried = source.readable_end().saturating_add(STRIDE_BYTES).min(length);
        let lost = wanted.iter().map(|r| r.start.max(tried)..r.end).filter(|r| !r.is_empty());
        let lost = lost.collect();
        let cut = |ranges: &[Range<u64>]| -> Vec<Range<u64>> {
            ranges.iter().map(|r| r.start.min(tried)..r.end.min(tried)).collect()
        };
        let clusters = self.clusters.as_deref().map(cut);
        (CarvedRanges::new(cut(&wanted), clusters, self.file_bytes_max), lost)
    }

    /// Appends `more`: all with a known end, and broken ones up to the limit. The others go to
    /// `forgotten`.
    fn remember(
        &self,
        broken: &mut Vec<BrokenFile>,
        mut more: Vec<BrokenFile>,
        forgotten: &mut Skimmed,
    ) {
        let room = self.remembered_max().saturating_sub(broken.len());
        let over = more.len().saturating_sub(room);
        let mut broken_left = more.iter().filter(|one| !one.is_whole).count();
        broken_left -= over.min(broken_left);
        more.retain(|one| {
            let stays = one.is_whole || broken_left > 0;
            broken_left -= usize::from(stays && !one.is_whole);
            if !stays {
                forgotten.add(one.offset, one.kind.name);
            }
            stays
        });
        broken.append(&mut more);
    }

    fn remembered_max(&self) -> usize {
        room::remembered_max(self.memory_bytes_max)
    }

    /// Returns the maximum number of candidates of a stride, or of a part of it.
    fn candidates_max(&self) -> usize {
        (self.remembered_max() / UNDER_WAY).max(1)
    }

    /// Makes a view for one of the threads.
    fn view<'s>(&self, source: &'s dyn Source) -> View<'s> {
        let windows_max = room::windows_max(self.memory_bytes_max, self.workers_count());
        View::with_windows(source, windows_max, self.promise)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_wanted(&self, carved: &Carved) -> bool {
        let is_kept = self.keep_broken || carved.status == Status::Valid;
        is_kept && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&carved.kind))
    }

    /// Returns the `files` to keep, the longest first.
    fn wanted<'f>(&self, files: &'f [Carved]) -> Vec<&'f Carved> {
        let mut wanted: Vec<&Carved> = files.iter().filter(|one| self.is_wanted(one)).collect();
        // Several formats may find the same file of the same type.
        wanted.dedup_by(|a, b| a.offset() == b.offset() && a.kind == b.kind);
        wanted.sort_by_key(|one| std::cmp::Reverse(one.length()));
        wanted
    }
}

/// Returns the extents of `length` bytes of the carved ranges from `offset` on.
fn extents_of(ranges: &CarvedRanges, offset: u64, length: u64) -> Vec<Extent> {
    cut(&ranges.extents_from(offset), length)
}
