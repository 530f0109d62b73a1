//! A run over a source, and its end, which mends broken files and keeps the remains of the others.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use quarrier_core::source::Source;
use quarrier_core::sync::{into_inner, lock};
use quarrier_core::threads;

use super::account::{BrokenFile, Keep, Summary, Times, add_since};
use super::cached::CachedSource;
use super::candidates::{Candidate, Signatures};
use super::enclosed::is_enclosed;
use super::in_pieces::FilesInPieces;
use super::judge::Judged;
use super::places::first_of_places;
use super::ranges::CarvedRanges;
use super::resolve::{Outcome, Resolver, broken_max};
use super::scheduler::Scheduler;
use super::skimmed::{Skimmed, Skimming};
use super::{Carver, extents_of};
use crate::carved::Carved;
use crate::claims::Claims;
use crate::error::{Error, Result};
use crate::format::Verdict;
use crate::mend::{Broken, Listed, MendContext, listed};
use crate::view::{Extent, View, cut};

/// Maximum number of rounds of mending: a file that was mended may free the way for others around
/// it.
const ROUNDS_MAX: usize = 3;
/// How far after the byte at which a file breaks newly claimed bytes justify another attempt to
/// mend it.
const AFTER_BYTES: u64 = 64 << 10;

/// The inputs of a run.
pub(super) struct CarveRun<'c> {
    pub(super) carver: &'c Carver<'c>,
    pub(super) source: &'c CachedSource<'c>,
    pub(super) keep: &'c dyn Keep,
    pub(super) ranges: &'c CarvedRanges,
    pub(super) in_pieces: &'c FilesInPieces<'c>,
    pub(super) times: Times,
}

/// The results of a run up to the last stride.
pub(super) struct RunState<'c> {
    pub(super) resolver: Resolver<'c>,
    pub(super) summary: Summary,
    /// The undecided files.
    pub(super) broken: Vec<BrokenFile>,
    /// The starts of candidates that were not read to their end.
    pub(super) crowded: Skimmed,
    /// The starts of broken files that were dropped for lack of memory.
    pub(super) forgotten: Skimmed,
}

impl<'c> CarveRun<'c> {
    /// Carves the source, then mends the broken files.
    pub(super) fn run(&self, signatures: &Signatures, summary: Summary) -> Result<Summary> {
        let state = self.recall(summary)?;
        let state = Scheduler::new(self, signatures, state).run()?;
        let mut summary = self.rest(state)?;
        summary.stopped |= self.carver.is_stopped();
        self.times.add_to(&mut summary);
        Ok(summary)
    }

    /// The error of the source as a whole, if there was one.
    pub(super) fn gone(&self) -> Option<Error> {
        let error = self.source.gone()?;
        Some(quarrier_core::Error::io(self.source.name(), "read", error).into())
    }

    /// Restores the results of an earlier run, and keeps its whole files again.
    pub(super) fn recall(&self, mut summary: Summary) -> Result<RunState<'c>> {
        let begun = &self.carver.begun;
        let mut resolver = Resolver::new(&self.carver.formats, self.carver.embedded);
        resolver.recall(begun);
        self.keep_wanted(&begun.whole, &mut summary)?;
        summary.position = summary.position.max(begun.position);
        summary.unreadable.clone_from(&begun.unreadable);
        let mut crowded = Skimmed::new(Skimming::Crowded);
        begun.skimmed.iter().for_each(|one| crowded.append(one.clone()));
        let (mut broken, mut forgotten) = (Vec::new(), Skimmed::new(Skimming::Forgotten));
        self.carver.remember(&mut broken, begun.broken.clone(), &mut forgotten);
        Ok(RunState { resolver, summary, broken, crowded, forgotten })
    }

    /// Mends broken files, and keeps the remains of the others.
    fn rest(&self, state: RunState<'_>) -> Result<Summary> {
        let RunState { mut resolver, mut summary, mut broken, crowded, forgotten } = state;
        summary.block_bytes = resolver.block_bytes(&broken);
        broken.retain(|one| !resolver.is_covered(one.offset));
        let (mended, mut untried) = match self.carver.is_stopped() {
            true => (vec![None; broken.len()], Vec::new()),
            false => self.mend_all(resolver.claims(), summary.block_bytes, &broken),
        };
        if let Some(error) = self.gone().filter(|_| !self.carver.is_stopped()) {
            return Err(error);
        }
        let kept_max = if self.carver.reads_all { usize::MAX } else { broken_max(self.ranges) };
        let Outcome { mended, alone, partial, left_out, mut lost } =
            resolver.settle(self.ranges, broken, mended, kept_max);
        untried.retain(|(offset, _)| !resolver.is_covered(*offset));
        untried.extend(left_out);
        untried.sort_unstable();
        untried.dedup();
        let mut skimmed = Skimmed::new(Skimming::Broken);
        untried.into_iter().for_each(|(offset, kind)| skimmed.add(offset, kind));
        let mut overlapping = Skimmed::new(Skimming::Overlapping);
        lost.sort_by_key(|one| one.candidate);
        for extent in lost.iter().flat_map(|one| one.extents.iter().map(move |e| (e, one))) {
            let (Extent { offset, length }, one) = extent;
            let kind = self.carver.formats[one.candidate.format as usize].kinds()[0].name;
            overlapping.add_range(*offset..offset + length, kind);
        }
        for list in [crowded, skimmed, forgotten, overlapping] {
            summary.skimmed.extend(list.into_ranges());
        }
        summary.skimmed.sort_by_key(|one| (one.range.start, one.reason));
        self.keep_wanted(&alone, &mut summary)?;
        let valid = summary.files[0];
        self.keep_wanted(&mended, &mut summary)?;
        summary.mended += summary.files[0] - valid;
        self.keep_wanted(&partial, &mut summary)?;
        Ok(summary)
    }

    /// Returns, for each of `broken`, the whole file that it was mended to, if any; and offsets and
    /// types of those for which this was not tried.
    fn mend_all(
        &self,
        claims: &Claims,
        block_bytes: u64,
        broken: &[BrokenFile],
    ) -> (Vec<Option<Judged>>, Vec<(u64, &'static str)>) {
        let count = broken.iter().filter(|one| !one.is_whole).count() as u64;
        let (effort, tried) = self.carver.effort.shared(self.ranges.bytes(), count);
        let mut claims = self.with_sure(claims, broken);
        let tried = if self.carver.reads_all { count } else { tried };
        let (mut waiting, untried) = chosen(broken, tried);
        let mut mended = vec![None; broken.len()];
        // These need no search, and show what is not the rest of another file.
        let found = self.each(&waiting, &self.times.work_ns, |index, view| {
            self.by_lists(&broken[*index], view, effort.fuel_bytes)
        });
        waiting.iter().zip(found).for_each(|(index, one)| mended[*index] = one);
        leave_out_contested(broken, &mut mended);
        let extents = mended.iter().flatten().flat_map(|one| &one.extents);
        extents.for_each(|extent| claims.add(*extent));
        waiting.retain(|index| mended[*index].is_none());
        for _ in 0..ROUNDS_MAX {
            // Files with the latest break come first, so that no long one starts when all others
            // are done.
            waiting.sort_by_key(|index| std::cmp::Reverse(broken[*index].at));
            let ranges = self.ranges.clusters();
            let context = MendContext::new(block_bytes, &claims, effort, ranges, self.carver.stop);
            let found = self.each(&waiting, &self.times.work_ns, |index, view| {
                self.mend(&broken[*index], view, &context)
            });
            waiting.iter().zip(found).for_each(|(index, one)| mended[*index] = one);
            leave_out_contested(broken, &mut mended);
            let files = broken.iter().zip(&mended).filter(|(one, _)| !one.is_whole);
            let mut extents =
                files.flat_map(|(_, one)| one).flat_map(|one| &one.extents).peekable();
            if extents.peek().is_none() || self.carver.is_stopped() {
                break;
            }
            let mut more = claims.clone();
            extents.for_each(|extent| more.add(*extent));
            waiting.retain(|index| {
                let one = &broken[*index];
                mended[*index].is_none() && !one.is_whole && has_changed(one, &claims, &more)
            });
            claims = more;
            if waiting.is_empty() {
                break;
            }
        }
        let untried =
            untried.into_iter().map(|index| (broken[index].offset, broken[index].kind.name));
        (mended, untried.collect())
    }

    /// Returns `claims` with the bytes that certainly belong to broken files.
    fn with_sure(&self, claims: &Claims, broken: &[BrokenFile]) -> Claims {
        let mut claims = claims.clone();
        for one in broken.iter().filter(|one| !one.is_whole) {
            extents_of(self.ranges, one.offset, one.sure).into_iter().for_each(|e| claims.add(e));
        }
        claims
    }

    /// Reads a broken file without the blocks in which ext2 and ext3 list its blocks.
    fn by_lists(&self, one: &BrokenFile, view: &mut View<'_>, fuel_bytes: u64) -> Option<Judged> {
        if one.is_whole {
            return None;
        }
        let formats = &self.carver.formats;
        let index = formats.iter().position(|f| f.kinds()[0].name == one.format)?;
        let candidate = Candidate { offset: one.offset, format: index as u32 };
        listed(view, one.offset).into_iter().find_map(|Listed { extents, bytes, block_bytes }| {
            if bytes > self.ranges.file_bytes_max() || !self.ranges.hold_all(&extents) {
                return None;
            }
            view.look_at(&extents, fuel_bytes);
            let verdict = formats[index].validate(view);
            let (length, ..) = verdict.end()?;
            // The lists say in which block it ends.
            let is_it = !view.is_starved() && length > bytes - block_bytes && length <= bytes;
            let extents = cut(view.extents(), length);
            is_it.then_some(Judged { candidate, verdict, extents, is_confirmed: true })
        })
    }

    fn mend(
        &self,
        one: &BrokenFile,
        view: &mut View<'_>,
        context: &MendContext<'_>,
    ) -> Option<Judged> {
        let formats = &self.carver.formats;
        let index = formats.iter().position(|f| f.kinds()[0].name == one.format)?;
        let format = formats[index];
        let candidate = Candidate { offset: one.offset, format: index as u32 };
        if one.is_whole {
            if !self.carver.embedded && is_enclosed(view, one.offset, one.at) {
                return None;
            }
            let verdict = Verdict::ended(one.at, one.kind, &one.reason);
            let extents = extents_of(self.ranges, one.offset, one.at);
            return Some(Judged { candidate, verdict, extents, is_confirmed: false });
        }
        view.look_at(&self.ranges.extents_from(one.offset), context.effort.fuel_bytes);
        let extents = format.mend(view, &Broken { sure: one.sure, at: one.at }, context)?;
        // The mended file must be valid on its own.
        view.look_at(&extents, u64::MAX);
        let verdict = format.validate(view);
        let (length, ..) = verdict.end()?;
        let is_it = length == view.length() && extents.first()?.offset == one.offset;
        if !is_it || length > self.ranges.file_bytes_max() {
            return None;
        }
        Some(Judged { candidate, verdict, extents, is_confirmed: false })
    }

    /// Keeps the wanted ones of `files`, in parallel, the longest first, and counts them.
    fn keep_wanted(&self, files: &[Carved], summary: &mut Summary) -> Result<()> {
        let wanted = self.carver.wanted(files);
        let failed = Mutex::new(None);
        let failure = || lock(&failed);
        self.each(&wanted, &self.times.sink_ns, |one, view| {
            if failure().is_none() {
                view.look_at(&one.extents, u64::MAX);
                if let Err(error) = self.keep.keep(one, view) {
                    *failure() = Some(error);
                }
            }
        });
        let failed: Option<io::Error> = into_inner(failed);
        match failed {
            Some(error) => Err(Error::Keep(error)),
            None => {
                summary.count(wanted);
                Ok(())
            }
        }
    }

    /// Calls `work` for each of `things`, in parallel, each thread with its own view.
    fn each<T: Sync, R: Send>(
        &self,
        things: &[T],
        busy_ns: &AtomicU64,
        work: impl Fn(&T, &mut View<'_>) -> R + Sync,
    ) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let all = Mutex::new(Vec::with_capacity(things.len()));
        let run = || {
            let begun = Instant::now();
            let mut view = self.carver.view(self.source);
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(thing) = things.get(index) else { break };
                let result = work(thing, &mut view);
                lock(&all).push((index, result));
            }
            add_since(busy_ns, begun);
        };
        threads::team(0..self.carver.workers_count().min(things.len()).max(1), |_| run());
        let mut all = into_inner(all);
        all.sort_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, result)| result).collect()
    }
}

/// Returns the indexes of the `broken` files to try to mend, and of the others. The first are all
/// with a known end, and `tried` of the rest, preferring the first of each place.
fn chosen(broken: &[BrokenFile], tried: u64) -> (Vec<usize>, Vec<usize>) {
    let offsets = broken.iter().filter(|one| !one.is_whole).map(|one| one.offset);
    let offsets: Vec<u64> = offsets.collect();
    let tried = usize::try_from(tried).unwrap_or(usize::MAX);
    let mut tried = first_of_places(&offsets, tried).into_iter();
    (0..broken.len()).partition(|index| broken[*index].is_whole || tried.next().unwrap_or_default())
}

/// Drops mended files that share bytes, unless one begins inside the other: one of them is wrong,
/// and nothing shows which.
fn leave_out_contested(broken: &[BrokenFile], mended: &mut [Option<Judged>]) {
    let mut extents: Vec<(Extent, usize)> = Vec::new();
    for (index, one) in mended.iter().enumerate().filter(|(index, _)| !broken[*index].is_whole) {
        extents.extend(one.iter().flat_map(|one| &one.extents).map(|extent| (*extent, index)));
    }
    extents.sort_by_key(|(extent, _)| extent.offset);
    let starts_in = |one: usize, other: usize, mended: &[Option<Judged>]| {
        let mut extents = mended[other].iter().flat_map(|other| &other.extents);
        extents.any(|extent| (extent.offset..extent.end()).contains(&broken[one].offset))
    };
    let mut contested = Vec::new();
    let mut last: Option<(Extent, usize)> = None;
    for (extent, index) in extents {
        if let Some((before, other)) = last
            && before.end() > extent.offset
            && other != index
            && !starts_in(index, other, mended)
            && !starts_in(other, index, mended)
        {
            contested.extend([index, other]);
        }
        if last.is_none_or(|(before, _)| before.end() < extent.end()) {
            last = Some((extent, index));
        }
    }
    contested.into_iter().for_each(|index| mended[index] = None);
}

/// Whether `more` claims bytes around the break of a file that `claims` does not.
fn has_changed(one: &BrokenFile, claims: &Claims, more: &Claims) -> bool {
    let range = one.offset + one.sure + 1..one.offset + one.at + AFTER_BYTES;
    let begins = more.next_after(range.start).filter(|start| range.contains(start));
    begins.is_some_and(|start| !claims.holds(start))
}
