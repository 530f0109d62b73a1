//! Validates candidates, in the order of the source.
//!
//! Most candidates are none, which shows within a few bytes; some claim to be gigabytes. So each is
//! read with little fuel first, and with more only where that ran out. How much all of a stride
//! together may get is bounded, and does not depend on who works when: results are the same with
//! any number of workers.

use std::sync::atomic::{AtomicBool, Ordering};

use super::candidates::Candidate;
use super::claims::Claims;
use crate::embedded::is_archive;
use crate::format::{Format, Verdict};
use crate::view::{Extent, View};

/// Fuel of a candidate in each of the attempts at it, in bytes.
const FUEL_BYTES: [u64; 4] = [64 << 10, 64 << 20, 1 << 30, u64::MAX];
/// Fuel of all candidates of a part of a stride in attempts of a kind, as a multiple of its bytes,
/// or of [`SHARED_BYTES`] where it is shorter; at least what one of them gets.
const STRIDE_FUEL: u64 = 16;
/// Files of a disk that are close together want more than their share: with 16 MiB a few pictures
/// that are read to their end took what those behind them needed, and all of these became headers.
const SHARED_BYTES: u64 = 256 << 20;
/// What is kept of a candidate for which nothing is left.
const GIVEN_UP_BYTES: u64 = 512;

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
    pub(super) formats: &'c [&'c dyn Format],
    pub(super) ground: &'c super::ground::Ground,
    /// Whether files inside others are wanted, too.
    pub(super) embedded: bool,
    pub(super) stop: &'c AtomicBool,
}

impl Court<'_> {
    /// Judges `candidates`, in order, found in `stride_bytes` bytes. Those that are none are left
    /// out, and those that lie in a file that is whole.
    pub(super) fn judge(
        &self,
        view: &mut View<'_>,
        candidates: &[Candidate],
        stride_bytes: u64,
    ) -> Vec<Judged> {
        let share = stride_bytes.max(SHARED_BYTES).saturating_mul(STRIDE_FUEL);
        let mut left = FUEL_BYTES.map(|fuel| fuel.max(share));
        let mut judged: Vec<Judged> = Vec::new();
        let mut claims = Claims::default();
        for there in candidates.chunk_by(|one, next| one.offset == next.offset) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if claims.holds(there[0].offset) {
                continue;
            }
            let from = judged.len();
            judged.extend(there.iter().filter_map(|one| self.one(view, *one, &mut left)));
            for one in &judged[from..] {
                if self.is_claimed(one) {
                    one.extents.iter().for_each(|extent| claims.add(*extent));
                }
            }
        }
        judged
    }

    /// Whether what lies in it is not looked at.
    fn is_claimed(&self, one: &Judged) -> bool {
        let Verdict::Whole { kind, .. } = one.verdict else { return false };
        let is_weak = self.formats[one.candidate.format as usize].is_weak();
        !is_weak && (!self.embedded || is_archive(kind.name))
    }

    /// Judges a candidate with more and more of the fuel that is `left`; nothing if it is none.
    fn one(
        &self,
        view: &mut View<'_>,
        candidate: Candidate,
        left: &mut [u64; FUEL_BYTES.len()],
    ) -> Option<Judged> {
        let extents = self.ground.extents_from(candidate.offset);
        for (fuel, left) in FUEL_BYTES.into_iter().zip(left) {
            let fuel = fuel.min(*left);
            view.look_at(&extents, fuel);
            if fuel == 0 || view.length() == 0 {
                break;
            }
            let verdict = self.formats[candidate.format as usize].validate(view);
            *left -= fuel - view.fuel_bytes();
            // Whoever was refused a byte may have taken that for the end.
            if !view.is_starved() {
                let extents = match verdict {
                    Verdict::Not => return None,
                    Verdict::Whole { length, .. } => cut(view.extents(), length),
                    Verdict::Broken { .. } => Vec::new(),
                };
                return Some(Judged { candidate, verdict, extents });
            }
        }
        (view.length() > 0).then(|| self.given_up(candidate))
    }

    /// A candidate for which nothing is left.
    fn given_up(&self, candidate: Candidate) -> Judged {
        let format = self.formats[candidate.format as usize];
        let verdict = Verdict::Broken {
            kind: format.kinds()[0],
            sure: 0,
            at: GIVEN_UP_BYTES,
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
