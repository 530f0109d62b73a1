//! The way through a source: candidates, verdicts, who holds which bytes, what can be mended.

mod candidates;
mod claims;
mod ground;
mod judge;
mod resolve;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
use resolve::Resolver;

/// A stride is searched, judged and kept before the next one is begun.
const STRIDE_BYTES: u64 = 256 << 20;
/// Broken files that are remembered until all is read; some 100 bytes each.
const BROKEN_MAX: usize = 1 << 20;

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
    /// The files that are whole.
    pub whole: &'a [Carved],
    /// Those that begin here and are broken.
    pub broken: &'a [BrokenFile],
    /// The length of what is carved, and how much of it is done, in bytes.
    pub total_bytes: u64,
    /// See `total_bytes`.
    pub done_bytes: u64,
}

/// A file that broke, before anybody has looked for its rest.
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

/// What a run was.
#[derive(Debug, Default, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// Bytes of the source that were searched.
    pub bytes: u64,
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
    /// Threads.
    pub workers: usize,
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

    /// Files inside other files are found, too.
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
        let signatures = Signatures::new(&self.formats, Sample::default())?;
        let mut summary = Summary {
            engine: signatures.engine_name(),
            workers: self.workers,
            ..Summary::default()
        };
        let court = Court {
            source,
            formats: &self.formats,
            ground: &ground,
            workers: self.workers,
            stop: self.stop,
        };
        let mut resolver = Resolver::new(&self.formats, self.embedded);
        let mut broken: Vec<BrokenFile> = Vec::new();
        let mut at = ground.span().start;
        while let Some(from) = ground.next(at) {
            let end = (from - from % STRIDE_BYTES + STRIDE_BYTES).min(ground.span().end);
            let looked = signatures.look(source, from..end, self.workers, self.stop)?;
            let stride_bytes = looked.until - from;
            summary.bytes += stride_bytes;
            summary.candidates += looked.candidates.len() as u64;
            for range in looked.run.unreadable {
                join(&mut summary.unreadable, range);
            }
            let judged = court.judge(&looked.candidates, stride_bytes);
            if self.is_stopped() {
                summary.stopped = true;
                break;
            }
            let (mut whole, mut more) = resolver.resolve(judged);
            whole.retain(|one| self.is_wanted(one));
            self.keep_all(source, &whole, keep)?;
            summary.files[0] += whole.len() as u64;
            at = looked.until.max(from + 1);
            summary.position = at;
            keep.stride(&Stride {
                range: from..at,
                whole: &whole,
                broken: &more,
                total_bytes: ground.span().end - ground.span().start,
                done_bytes: at - ground.span().start,
            })
            .map_err(Error::Keep)?;
            let room = BROKEN_MAX - broken.len();
            summary.forgotten += more.len().saturating_sub(room) as u64;
            more.truncate(room);
            broken.append(&mut more);
        }
        self.rest(source, keep, &ground, resolver, broken, &mut summary)?;
        Ok(summary)
    }

    fn is_wanted(&self, carved: &Carved) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&carved.kind))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Mends what is broken, and keeps what is left of the rest.
    fn rest(
        &self,
        source: &dyn Source,
        keep: &dyn Keep,
        ground: &Ground,
        mut resolver: Resolver<'_>,
        broken: Vec<BrokenFile>,
        summary: &mut Summary,
    ) -> Result<()> {
        summary.block_bytes = resolver.block_bytes();
        let broken: Vec<BrokenFile> =
            broken.into_iter().filter(|one| !resolver.is_covered(one.offset)).collect();
        let mended = if self.is_stopped() {
            vec![None; broken.len()]
        } else {
            self.mend_all(source, ground, resolver.claims(), summary.block_bytes, &broken)
        };
        summary.stopped |= self.is_stopped();
        let (mut whole, mut partial) = resolver.settle(ground, broken, mended);
        whole.retain(|one| self.is_wanted(one));
        partial.retain(|one| self.is_wanted(one));
        self.keep_all(source, &whole, keep)?;
        summary.files[0] += whole.len() as u64;
        summary.mended += whole.len() as u64;
        if self.keep_broken {
            self.keep_all(source, &partial, keep)?;
            for one in &partial {
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
    ) -> Vec<Option<Judged>> {
        let ranges = ground.ranges();
        let yard = Yard::new(block_bytes, claims, self.effort, ranges, self.stop);
        self.each(source, broken, |one, view| {
            let index = self.formats.iter().position(|f| f.kinds()[0].name == one.format)?;
            let format = self.formats[index];
            view.look_at(&ground.extents_from(one.offset), self.effort.fuel_bytes);
            let told = Broken { sure: one.sure, at: one.at };
            let extents = format.mend(view, &told, &yard)?;
            // Nothing is believed that does not stand on its own.
            view.look_at(&extents, u64::MAX);
            let verdict = format.validate(view);
            let Verdict::Whole { length, .. } = verdict else { return None };
            if length != view.length() || extents.first()?.offset != one.offset {
                return None;
            }
            let candidate = candidates::Candidate { offset: one.offset, format: index as u32 };
            Some(Judged { candidate, verdict, extents })
        })
    }

    /// Gives all of `files` to `keep`, in parallel.
    fn keep_all(&self, source: &dyn Source, files: &[Carved], keep: &dyn Keep) -> Result<()> {
        let failed = Mutex::new(None);
        self.each(source, files, |one, view| {
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
        work: impl Fn(&T, &mut View<'_>) -> R + Sync,
    ) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let all = Mutex::new(Vec::with_capacity(things.len()));
        let run = || {
            let mut view = View::new(source);
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(thing) = things.get(index) else { break };
                let result = work(thing, &mut view);
                all.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            }
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
