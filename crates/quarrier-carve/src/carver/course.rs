//! The state of a run, and its end: what is broken is mended, and what is left of the rest is kept.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::account::{BrokenFile, Keep, Summary, Times, add_since};
use super::candidates::{Candidate, Signatures};
use super::claims::Claims;
use super::enclosed::is_enclosed;
use super::ground::Ground;
use super::judge::Judged;
use super::kept::Kept;
use super::resolve::{Resolver, Settled};
use super::strides::Strides;
use super::{Carver, extents_of};
use crate::carved::Carved;
use crate::error::{Error, Result};
use crate::format::{Broken, Verdict};
use crate::mend::Yard;
use crate::view::View;

/// What a run works with.
pub(super) struct Course<'c> {
    pub(super) carver: &'c Carver<'c>,
    pub(super) source: &'c Kept<'c>,
    pub(super) keep: &'c dyn Keep,
    pub(super) ground: &'c Ground,
    pub(super) times: Times,
}

/// What a run has found out.
pub(super) struct Known<'c> {
    pub(super) resolver: Resolver<'c>,
    pub(super) summary: Summary,
    /// What is not decided yet.
    pub(super) broken: Vec<BrokenFile>,
}

impl<'c> Course<'c> {
    /// Goes through all of the source, and then through what is broken.
    pub(super) fn run(&self, signatures: &Signatures, summary: Summary) -> Result<Summary> {
        let known = self.recall(summary)?;
        let known = Strides::new(self, signatures, known).run()?;
        let mut summary = self.rest(known)?;
        summary.stopped |= self.carver.is_stopped();
        self.times.add_to(&mut summary);
        Ok(summary)
    }

    /// Takes up what an earlier run has done.
    fn recall(&self, mut summary: Summary) -> Result<Known<'c>> {
        let begun = &self.carver.begun;
        let mut resolver = Resolver::new(&self.carver.formats, self.carver.embedded);
        resolver.recall(begun);
        summary.files[0] += self.keep_wanted(&begun.whole)?;
        summary.position = summary.position.max(begun.position);
        summary.unreadable.clone_from(&begun.unreadable);
        let mut broken = Vec::new();
        summary.forgotten += self.carver.remember(&mut broken, begun.broken.clone());
        Ok(Known { resolver, summary, broken })
    }

    /// Mends what is broken, and keeps what is left of the rest.
    fn rest(&self, known: Known<'_>) -> Result<Summary> {
        let Known { mut resolver, mut summary, mut broken } = known;
        summary.block_bytes = resolver.block_bytes();
        broken.retain(|one| !resolver.is_covered(one.offset));
        let mended = match self.carver.is_stopped() {
            true => vec![None; broken.len()],
            false => {
                let (mended, left) = self.mend_all(resolver.claims(), summary.block_bytes, &broken);
                summary.forgotten += left;
                mended
            }
        };
        let Settled { mended, alone, partial, left_out } =
            resolver.settle(self.ground, broken, mended);
        summary.forgotten += left_out;
        summary.files[0] += self.keep_wanted(&alone)?;
        let mended = self.keep_wanted(&mended)?;
        summary.files[0] += mended;
        summary.mended += mended;
        if self.carver.keep_broken {
            self.keep_wanted(&partial)?;
            for one in partial.iter().filter(|one| self.carver.is_wanted(one)) {
                summary.files[one.status as usize] += 1;
            }
        }
        Ok(summary)
    }

    /// The whole file that each of `broken` can be mended to; and for how many this was not tried.
    fn mend_all(
        &self,
        claims: &Claims,
        block_bytes: u64,
        broken: &[BrokenFile],
    ) -> (Vec<Option<Judged>>, u64) {
        let carver = self.carver;
        let count = broken.iter().filter(|one| !one.is_whole()).count() as u64;
        let (effort, tried) = carver.effort.shared(self.ground.bytes(), count);
        let ranges = self.ground.ranges();
        let yard = Yard::new(block_bytes, claims, effort, ranges, carver.stop);
        let mut left = tried;
        let tasks: Vec<_> = broken
            .iter()
            .map(|one| {
                let is_tried = one.is_whole() || left > 0;
                left -= u64::from(is_tried && !one.is_whole());
                (one, is_tried)
            })
            .collect();
        // Those of which most is there come first: what is long is not begun when all others are done.
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(tasks[*index].0.at));
        let found = self.each(&order, &self.times.work_ns, |index, view| {
            let (one, is_tried) = tasks[*index];
            is_tried.then(|| self.mend(one, view, &yard)).flatten()
        });
        let mut mended = vec![None; tasks.len()];
        order.into_iter().zip(found).for_each(|(index, one)| mended[index] = one);
        (mended, count - tried)
    }

    fn mend(&self, one: &BrokenFile, view: &mut View<'_>, yard: &Yard<'_>) -> Option<Judged> {
        let formats = &self.carver.formats;
        let index = formats.iter().position(|f| f.kinds()[0].name == one.format)?;
        let format = formats[index];
        let candidate = Candidate { offset: one.offset, format: index as u32 };
        if one.is_whole() {
            if !self.carver.embedded && is_enclosed(view, one.offset, one.at) {
                return None;
            }
            let verdict = Verdict::Whole { length: one.at, kind: one.kind };
            let extents = extents_of(self.ground, one.offset, one.at);
            return Some(Judged { candidate, verdict, extents });
        }
        view.look_at(&self.ground.extents_from(one.offset), yard.effort.fuel_bytes);
        let extents = format.mend(view, &Broken { sure: one.sure, at: one.at }, yard)?;
        // Nothing is believed that does not stand on its own.
        view.look_at(&extents, u64::MAX);
        let verdict = format.validate(view);
        let Verdict::Whole { length, .. } = verdict else { return None };
        let is_it = length == view.length() && extents.first()?.offset == one.offset;
        if !is_it || length > self.ground.file_bytes_max() {
            return None;
        }
        Some(Judged { candidate, verdict, extents })
    }

    /// Keeps those of `files` whose type is wanted, in parallel, the longest first; returns how
    /// many.
    fn keep_wanted(&self, files: &[Carved]) -> Result<u64> {
        let wanted = self.carver.wanted(files);
        let failed = Mutex::new(None);
        let failure = || failed.lock().unwrap_or_else(PoisonError::into_inner);
        self.each(&wanted, &self.times.sink_ns, |one, view| {
            if failure().is_none() {
                view.look_at(&one.extents, u64::MAX);
                if let Err(error) = self.keep.keep(one, view) {
                    *failure() = Some(error);
                }
            }
        });
        let failed: Option<io::Error> = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        match failed {
            Some(error) => Err(Error::Keep(error)),
            None => Ok(wanted.len() as u64),
        }
    }

    /// Calls `work` for each of `things`, in parallel, each thread with a view of its own.
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
                all.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            }
            add_since(busy_ns, begun);
        };
        std::thread::scope(|scope| {
            for _ in 1..self.carver.workers_count().min(things.len()) {
                scope.spawn(run);
            }
            run();
        });
        let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, result)| result).collect()
    }
}
