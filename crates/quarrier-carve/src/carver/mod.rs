//! The way through a source: candidates, verdicts, who holds which bytes, what can be mended.

mod candidates;
mod claims;
mod ground;
mod judge;
mod kept;
mod resolve;
mod resume;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quarrier_core::pipeline::{Plan, Rates, Run, Stage, StageLoad};
use quarrier_core::source::Source;
use quarrier_search::Sample;

use crate::carved::Carved;
use crate::error::{Error, Result};
use crate::format::{self, Broken, Format, Verdict};
use crate::mend::{Effort, Yard};
use crate::view::{Extent, View};

use candidates::Signatures;
pub use claims::Claims;
use ground::Ground;
pub(crate) use judge::cut;
use judge::{Court, Judged};
use kept::Kept;
use resolve::Resolver;
pub use resume::{Alignment, Begun};

/// A stride is searched, judged and kept before the next one is begun.
const STRIDE_BYTES: u64 = 256 << 20;
/// Broken files that are remembered until all is read, and candidates of a stride.
const REMEMBERED_MAX: usize = 1 << 20;
/// What one of them takes at most, with all that becomes of it, in bytes.
const REMEMBERED_BYTES: u64 = 256;

/// What becomes of what is found.
pub trait Keep: Sync {
    /// A file was found; `view` shows its bytes. Called by many threads at once, in no order;
    /// each file once.
    ///
    /// # Errors
    /// What ends the run: a full disk.
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()>;

    /// A stride is done: all files in it that are whole have been given to `keep`.
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
    /// The files that are whole, those of types that are not wanted too.
    pub whole: &'a [Carved],
    /// Those that begin here and are broken.
    pub broken: &'a [BrokenFile],
    /// Ranges of it that could not be read.
    pub unreadable: &'a [Range<u64>],
    /// Where the files of all strides until now lie.
    pub alignment: Alignment,
    /// The length of what is carved, and how much of it is done, in bytes.
    pub total_bytes: u64,
    /// See `total_bytes`.
    pub done_bytes: u64,
}

/// A file that is not decided yet: it broke, and nobody has looked for its rest; or it is whole
/// (then `sure` and `at` are its length, and there is no reason), but lies where another that broke
/// may go on, and may be a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenFile {
    /// Its offset in the source.
    pub offset: u64,
    /// The first of the types of its format: who reads it again.
    pub format: &'static str,
    /// What it seems to be.
    pub kind: format::Kind,
    /// See [`Verdict::Broken`].
    pub sure: u64,
    /// See [`Verdict::Broken`].
    pub at: u64,
    /// See [`Verdict::Broken`].
    pub reason: String,
}

impl BrokenFile {
    /// Whether it is whole, and perhaps a part of another.
    pub(crate) fn is_whole(&self) -> bool {
        self.reason.is_empty()
    }
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
    /// Broken files that were forgotten, there being too many.
    pub forgotten: u64,
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

/// Carves sources.
pub struct Carver<'a> {
    formats: Vec<&'a dyn Format>,
    workers: usize,
    range: Option<Vec<Range<u64>>>,
    file_bytes_max: u64,
    effort: Effort,
    embedded: bool,
    keep_broken: bool,
    kinds: Option<Vec<String>>,
    begun: Begun,
    memory_bytes_max: u64,
    rates: Option<Rates>,
    stop: &'a AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Carver<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Carver<'a> {
    /// Looks for every format there is.
    pub fn new() -> Self {
        Carver {
            formats: format::ALL.to_vec(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            range: None,
            file_bytes_max: u64::MAX,
            effort: Effort::NORMAL,
            embedded: false,
            keep_broken: true,
            kinds: None,
            begun: Begun::default(),
            memory_bytes_max: 1 << 30,
            rates: None,
            stop: &NEVER,
        }
    }

    /// Looks for these formats only.
    #[must_use]
    pub fn formats(mut self, formats: Vec<&'a dyn Format>) -> Self {
        self.formats = formats;
        self
    }

    /// Threads; not more files are read at once.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How many threads it will use.
    pub fn workers_count(&self) -> usize {
        self.workers
    }

    /// Carves these ranges of the source as if there were nothing else.
    #[must_use]
    pub fn ranges(mut self, ranges: Vec<Range<u64>>) -> Self {
        self.range = Some(ranges);
        self
    }

    /// No file is longer than this; what is, is broken there.
    #[must_use]
    pub fn file_bytes_max(mut self, bytes: u64) -> Self {
        self.file_bytes_max = bytes;
        self
    }

    /// How hard the rest of broken files is looked for.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Files inside other files are found, too; but not in archives, whose members
    /// [`embedded::walk`](crate::embedded::walk) tells by name.
    #[must_use]
    pub fn embedded(mut self, embedded: bool) -> Self {
        self.embedded = embedded;
        self
    }

    /// Whether broken files that could not be mended are kept.
    #[must_use]
    pub fn keep_broken(mut self, keep: bool) -> Self {
        self.keep_broken = keep;
        self
    }

    /// Only files of these types are kept. All others are looked for nevertheless, to know which
    /// bytes are theirs: a picture in a document is not a file of its own.
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

    /// Files of all types are kept, whatever [`kinds`](Carver::kinds) was told before.
    #[must_use]
    pub fn all_kinds(mut self) -> Self {
        self.kinds = None;
        self
    }

    /// Goes on where an earlier run over the same source, with the same settings, ended. What is
    /// whole already is given to `keep` again, before anything else.
    #[must_use]
    pub fn resume(mut self, begun: Begun) -> Self {
        self.begun = begun;
        self
    }

    /// Memory for what is remembered of the source, in bytes; 1 GiB where nothing is said. Files
    /// beyond it that are broken are forgotten, which the summary tells. What a few windows of the
    /// source and decoders take comes on top of it.
    #[must_use]
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.memory_bytes_max = bytes;
        self
    }

    /// What the source's disk gives, so that it is read in the way that suits it.
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

    /// Carves `source`, and gives what is found to `keep`.
    ///
    /// # Errors
    /// [`Error::Source`] when the source fails as a whole, [`Error::Keep`] with what `keep` says;
    /// what was kept until then is as it was said.
    pub fn run(&self, source: &dyn Source, keep: &dyn Keep) -> Result<Summary> {
        let length = source.length();
        let ranges = match &self.range {
            Some(ranges) => ranges.iter().map(|r| r.start.min(length)..r.end.min(length)).collect(),
            None => std::iter::once(0..length).collect(),
        };
        let ground = Ground::new(ranges, self.file_bytes_max);
        let started = Instant::now();
        let signatures = Signatures::new(&self.formats, Sample::default())?;
        let mut summary = Summary {
            signatures: signatures.count(),
            compile: started.elapsed(),
            engine: signatures.engine_name(),
            workers: self.workers,
            position: ground.span().start,
            ..Summary::default()
        };
        let times = Times::default();
        let kept = Kept::new(source, self.memory_bytes_max);
        let court = Court {
            source: &kept,
            formats: &self.formats,
            ground: &ground,
            workers: self.workers,
            busy_ns: &times.work_ns,
            stop: self.stop,
        };
        let mut resolver = Resolver::new(&self.formats, self.embedded);
        let mut broken = self.recall(&kept, keep, &mut resolver, &mut summary, &times)?;
        let mut at = summary.position;
        while let Some(from) = ground.next(at) {
            let end = (from - from % STRIDE_BYTES + STRIDE_BYTES).min(ground.span().end);
            let looked = signatures.look(source, from..end, self)?;
            let stride_bytes = looked.until - from;
            summary.bytes += stride_bytes;
            summary.candidates += looked.candidates.len() as u64;
            summary.add(&looked.run);
            for range in &looked.run.unreadable {
                join(&mut summary.unreadable, range.clone());
            }
            let judged = court.judge(&looked.candidates, stride_bytes);
            if self.is_stopped() {
                summary.stopped = true;
                break;
            }
            // Of those that wait only the broken ones may be forgotten: they get half of the room.
            let room = (self.remembered_max() / 2).saturating_sub(broken.len());
            let (whole, mut more) = resolver.resolve(judged, room);
            summary.files[0] += self.keep_wanted(&kept, &whole, keep, &times)?;
            at = looked.until.max(from + 1);
            summary.position = at;
            keep.stride(&Stride {
                range: from..at,
                whole: &whole,
                broken: &more,
                unreadable: &looked.run.unreadable,
                alignment: resolver.alignment(),
                total_bytes: ground.span().end - ground.span().start,
                done_bytes: at - ground.span().start,
            })
            .map_err(Error::Keep)?;
            summary.forgotten += self.remember(&mut broken, &mut more);
        }
        self.rest(&kept, keep, &ground, resolver, broken, &mut summary, &times)?;
        times.add_to(&mut summary);
        Ok(summary)
    }

    /// Takes up what an earlier run has done. Returns what it left broken.
    fn recall(
        &self,
        source: &dyn Source,
        keep: &dyn Keep,
        resolver: &mut Resolver<'_>,
        summary: &mut Summary,
        times: &Times,
    ) -> Result<Vec<BrokenFile>> {
        resolver.recall(&self.begun);
        summary.files[0] += self.keep_wanted(source, &self.begun.whole, keep, times)?;
        summary.position = summary.position.max(self.begun.position);
        summary.unreadable.clone_from(&self.begun.unreadable);
        let mut broken = Vec::new();
        summary.forgotten += self.remember(&mut broken, &mut self.begun.broken.clone());
        Ok(broken)
    }

    /// Appends `more`, of broken ones as many as there is room for. Returns how many were
    /// forgotten.
    fn remember(&self, broken: &mut Vec<BrokenFile>, more: &mut Vec<BrokenFile>) -> u64 {
        let room = self.remembered_max().saturating_sub(broken.len());
        let over = more.len().saturating_sub(room);
        let mut broken_left = more.iter().filter(|one| !one.is_whole()).count();
        let forgotten = over.min(broken_left);
        broken_left -= forgotten;
        more.retain(|one| {
            let stays = one.is_whole() || broken_left > 0;
            broken_left -= usize::from(stays && !one.is_whole());
            stays
        });
        broken.append(more);
        forgotten as u64
    }

    /// A quarter of the memory for what is broken, one for the candidates of a stride.
    fn remembered_max(&self) -> usize {
        let fit = self.memory_bytes_max / 4 / REMEMBERED_BYTES;
        usize::try_from(fit).map_or(REMEMBERED_MAX, |fit| fit.clamp(1, REMEMBERED_MAX))
    }

    fn is_wanted(&self, carved: &Carved) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&carved.kind))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Keeps those of `files` whose type is wanted; returns how many.
    fn keep_wanted(
        &self,
        source: &dyn Source,
        files: &[Carved],
        keep: &dyn Keep,
        times: &Times,
    ) -> Result<u64> {
        let mut wanted: Vec<&Carved> = files.iter().filter(|one| self.is_wanted(one)).collect();
        // Formats that call a file by the same name mean the same file.
        wanted.dedup_by(|a, b| a.offset() == b.offset() && a.kind == b.kind);
        self.keep_all(source, &wanted, keep, &times.sink_ns)?;
        Ok(wanted.len() as u64)
    }

    /// Mends what is broken, and keeps what is left of the rest.
    #[expect(clippy::too_many_arguments, reason = "the state of the run, which ends here")]
    fn rest(
        &self,
        source: &dyn Source,
        keep: &dyn Keep,
        ground: &Ground,
        mut resolver: Resolver<'_>,
        broken: Vec<BrokenFile>,
        summary: &mut Summary,
        times: &Times,
    ) -> Result<()> {
        summary.block_bytes = resolver.block_bytes();
        let broken: Vec<BrokenFile> =
            broken.into_iter().filter(|one| !resolver.is_covered(one.offset)).collect();
        let mended = if self.is_stopped() {
            vec![None; broken.len()]
        } else {
            self.mend_all(source, ground, resolver.claims(), summary.block_bytes, &broken, times)
        };
        summary.stopped |= self.is_stopped();
        let resolve::Settled { mended, alone, partial } = resolver.settle(ground, broken, mended);
        summary.files[0] += self.keep_wanted(source, &alone, keep, times)?;
        let mended = self.keep_wanted(source, &mended, keep, times)?;
        summary.files[0] += mended;
        summary.mended += mended;
        if self.keep_broken {
            self.keep_wanted(source, &partial, keep, times)?;
            for one in partial.iter().filter(|one| self.is_wanted(one)) {
                summary.files[one.status as usize] += 1;
            }
        }
        Ok(())
    }

    /// The whole file that each of `broken` can be mended to.
    fn mend_all(
        &self,
        source: &dyn Source,
        ground: &Ground,
        claims: &Claims,
        block_bytes: u64,
        broken: &[BrokenFile],
        times: &Times,
    ) -> Vec<Option<Judged>> {
        let ranges = ground.ranges();
        let yard = Yard::new(block_bytes, claims, self.effort, ranges, self.stop);
        self.each(source, broken, &times.work_ns, |one, view| {
            let index = self.formats.iter().position(|f| f.kinds()[0].name == one.format)?;
            let format = self.formats[index];
            view.look_at(&ground.extents_from(one.offset), self.effort.fuel_bytes);
            let candidate = candidates::Candidate { offset: one.offset, format: index as u32 };
            if one.is_whole() {
                let verdict = Verdict::Whole { length: one.at, kind: one.kind };
                let extents = extents_of(ground, one.offset, one.at);
                return Some(Judged { candidate, verdict, extents });
            }
            let extents = format.mend(view, &Broken { sure: one.sure, at: one.at }, &yard)?;
            // Nothing is believed that does not stand on its own.
            view.look_at(&extents, u64::MAX);
            let verdict = format.validate(view);
            let Verdict::Whole { length, .. } = verdict else { return None };
            if length != view.length() || extents.first()?.offset != one.offset {
                return None;
            }
            Some(Judged { candidate, verdict, extents })
        })
    }

    /// Gives all of `files` to `keep`, in parallel, the longest first.
    fn keep_all(
        &self,
        source: &dyn Source,
        files: &[&Carved],
        keep: &dyn Keep,
        busy_ns: &AtomicU64,
    ) -> Result<()> {
        let mut files = files.to_vec();
        files.sort_by_key(|one| std::cmp::Reverse(one.length()));
        let failed = Mutex::new(None);
        self.each(source, &files, busy_ns, |one, view| {
            let is_failed = |e: &Mutex<Option<io::Error>>| {
                e.lock().unwrap_or_else(PoisonError::into_inner).is_some()
            };
            if !is_failed(&failed) {
                view.look_at(&one.extents, u64::MAX);
                if let Err(error) = keep.keep(one, view) {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(Error::Keep(error)),
            None => Ok(()),
        }
    }

    /// Calls `work` for each of `things`, in parallel, each thread with a view of its own.
    fn each<T: Sync, R: Send>(
        &self,
        source: &dyn Source,
        things: &[T],
        busy_ns: &AtomicU64,
        work: impl Fn(&T, &mut View<'_>) -> R + Sync,
    ) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let all = Mutex::new(Vec::with_capacity(things.len()));
        let run = || {
            let begun = Instant::now();
            let mut view = View::new(source);
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(thing) = things.get(index) else { break };
                let result = work(thing, &mut view);
                all.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            }
            add_since(busy_ns, begun);
        };
        std::thread::scope(|scope| {
            for _ in 1..self.workers.min(things.len()) {
                scope.spawn(run);
            }
            run();
        });
        let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, result)| result).collect()
    }
}

/// Time of all threads together, in nanoseconds, but for what the search tells of itself.
#[derive(Default)]
struct Times {
    work_ns: AtomicU64,
    sink_ns: AtomicU64,
}

impl Times {
    fn add_to(&self, summary: &mut Summary) {
        for (stage, ns) in [(Stage::Work, &self.work_ns), (Stage::Sink, &self.sink_ns)] {
            let busy = Duration::from_nanos(ns.load(Ordering::Relaxed));
            summary.stages[stage as usize].busy += busy;
        }
    }
}

/// Adds the time since `begun`.
fn add_since(busy_ns: &AtomicU64, begun: Instant) {
    let ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    busy_ns.fetch_add(ns, Ordering::Relaxed);
}

impl Summary {
    /// Adds what a search for signatures says of itself.
    fn add(&mut self, run: &Run) {
        for (sum, stage) in self.stages.iter_mut().zip(Stage::ALL) {
            let load = run.timeline.load(stage);
            sum.busy += load.busy;
            sum.waiting += load.waiting;
        }
        self.hole_bytes += run.hole_bytes;
        self.plan.get_or_insert_with(|| run.plan.clone());
    }
}

/// Adds a range behind the others, joining it with the last where they touch.
fn join(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Extents from `offset` that hold `length` bytes of what is carved.
fn extents_of(ground: &Ground, offset: u64, length: u64) -> Vec<Extent> {
    cut(&ground.extents_from(offset), length)
}
