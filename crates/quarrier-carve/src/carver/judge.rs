//! Validates candidates in parallel.
//!
//! Most candidates are none, which shows within a few bytes; some claim to be gigabytes. So all
//! are read with little fuel first, and only those that ran out of it get more. How much all
//! together may get is bounded, and does not depend on who works when: results are the same with
//! any number of workers.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::add_since;
use super::candidates::Candidate;
use super::claims::Claims;
use crate::format::{Format, Verdict};
use crate::view::{Extent, View};

/// Fuel of a candidate in each round, in bytes.
const FUEL_BYTES: [u64; 4] = [64 << 10, 16 << 20, 1 << 30, u64::MAX];
/// Fuel of all candidates of a stride in a round, as a multiple of the bytes of the stride.
const ROUND_FUEL: u64 = 256;

/// A candidate with what its validator says.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) candidate: Candidate,
    pub(super) verdict: Verdict,
    /// Where the bytes lie that the validator saw, cut to the length of a whole file.
    pub(super) extents: Vec<Extent>,
}

/// What validators need to know of the run.
pub(super) struct Court<'c> {
    pub(super) source: &'c dyn quarrier_core::source::Source,
    pub(super) formats: &'c [&'c dyn Format],
    pub(super) ground: &'c super::ground::Ground,
    pub(super) workers: usize,
    /// Time of all threads together is added here, in nanoseconds.
    pub(super) busy_ns: &'c AtomicU64,
    pub(super) stop: &'c AtomicBool,
}

impl Court<'_> {
    /// Judges `candidates`, found in `stride_bytes` bytes. Those that are none are left out.
    pub(super) fn judge(&self, candidates: &[Candidate], stride_bytes: u64) -> Vec<Judged> {
        let mut waiting: Vec<Candidate> = candidates.to_vec();
        let mut judged: Vec<Judged> = Vec::new();
        let mut claims = Claims::default();
        for (round, fuel) in FUEL_BYTES.into_iter().enumerate() {
            let most = match round {
                0 => usize::MAX,
                _ => (stride_bytes.saturating_mul(ROUND_FUEL) / fuel.min(1 << 40)).max(64) as usize,
            };
            let late = waiting.split_off(waiting.len().min(most));
            let mut starved = Vec::new();
            for (one, is_starved) in self.round(&waiting, fuel) {
                let is_whole = matches!(one.verdict, Verdict::Whole { .. });
                // Whoever was refused a byte may have taken that for the end.
                if is_starved {
                    starved.push(one);
                } else if one.verdict != Verdict::Not {
                    if is_whole && !self.formats[one.candidate.format as usize].is_weak() {
                        one.extents.iter().for_each(|extent| claims.add(*extent));
                    }
                    judged.push(one);
                }
            }
            judged.extend(late.into_iter().map(|candidate| self.given_up(candidate)));
            // What lies in a file that is whole need not be read to its end.
            starved.retain(|one| !claims.holds(one.candidate.offset));
            waiting = starved.into_iter().map(|one| one.candidate).collect();
            if waiting.is_empty() || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        judged.sort_by_key(|one| one.candidate);
        judged
    }

    /// All of `candidates` once, in parallel, with the same fuel; in no order.
    fn round(&self, candidates: &[Candidate], fuel_bytes: u64) -> Vec<(Judged, bool)> {
        let next = AtomicUsize::new(0);
        let all = Mutex::new(Vec::new());
        // Single candidates far apart are long; many together are short.
        let batch = (candidates.len() / (64 * self.workers.max(1))).clamp(1, 256);
        let work = || {
            let begun = Instant::now();
            let mut view = View::new(self.source);
            let mut mine = Vec::new();
            loop {
                let from = next.fetch_add(batch, Ordering::Relaxed);
                if from >= candidates.len() || self.stop.load(Ordering::Relaxed) {
                    break;
                }
                for candidate in &candidates[from..candidates.len().min(from + batch)] {
                    let one = self.one(&mut view, *candidate, fuel_bytes);
                    if one.0.verdict != Verdict::Not || one.1 {
                        mine.push(one);
                    }
                }
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
            add_since(self.busy_ns, begun);
        };
        std::thread::scope(|scope| {
            for _ in 1..self.workers.min(candidates.len().div_ceil(batch)) {
                scope.spawn(work);
            }
            work();
        });
        let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_by_key(|(one, _)| one.candidate);
        all
    }

    fn one(&self, view: &mut View<'_>, candidate: Candidate, fuel_bytes: u64) -> (Judged, bool) {
        let extents = self.ground.extents_from(candidate.offset);
        view.look_at(&extents, fuel_bytes);
        let verdict = match view.length() {
            0 => Verdict::Not,
            _ => self.formats[candidate.format as usize].validate(view),
        };
        let extents = match verdict {
            Verdict::Whole { length, .. } => cut(view.extents(), length),
            _ => Vec::new(),
        };
        (Judged { candidate, verdict, extents }, view.is_starved())
    }

    /// A candidate for which nothing is left.
    fn given_up(&self, candidate: Candidate) -> Judged {
        let format = self.formats[candidate.format as usize];
        let verdict = Verdict::Broken {
            kind: format.kinds()[0],
            sure: 0,
            at: FUEL_BYTES[0],
            reason: "too many candidates of its size here to read them all".to_string(),
        };
        Judged { candidate, verdict, extents: Vec::new() }
    }
}

/// The first `length` bytes of `extents`.
pub(crate) fn cut(extents: &[Extent], length: u64) -> Vec<Extent> {
    let mut left = length;
    let mut kept = Vec::new();
    for extent in extents {
        if left == 0 {
            break;
        }
        let length = extent.length.min(left);
        kept.push(Extent { offset: extent.offset, length });
        left -= length;
    }
    kept
}
