//! Validates candidates, in the order of the source.
//!
//! Most candidates are none, which shows within a few bytes; some claim to be gigabytes. So each is
//! read with little fuel first, and with more only where that ran out. How much all of a stride
//! together may get is [bounded](Allowance), and does not depend on who works when: results are the
//! same with any number of workers.

use std::sync::atomic::{AtomicBool, Ordering};

use super::allowance::{Allowance, FUEL_BYTES};
use super::candidates::Candidate;
use crate::claims::Claims;
use crate::embedded::is_archive;
use crate::format::{Format, Verdict};
use crate::view::{Extent, View, cut};

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

/// What became of candidates.
#[derive(Default)]
pub(super) struct Judgement {
    /// In order, those that are none left out.
    pub(super) judged: Vec<Judged>,
    /// Those for which nothing was left, beyond those of which a beginning is kept.
    pub(super) unread: u64,
    /// What they have cost, in bytes of fuel.
    pub(super) cost_bytes: u64,
}

/// What validators need to know of the run.
pub(super) struct Judge<'c> {
    pub(super) formats: &'c [&'c dyn Format],
    pub(super) ranges: &'c super::ranges::CarvedRanges,
    /// Whether files inside others are wanted, too.
    pub(super) embedded: bool,
    pub(super) stop: &'c AtomicBool,
}

impl Judge<'_> {
    /// Judges `candidates`, in order, with what is `left` for those of a stride. Those that are none
    /// are left out, and those that lie in a file that is whole.
    pub(super) fn judge(
        &self,
        view: &mut View<'_>,
        candidates: &[Candidate],
        left: &mut Allowance,
    ) -> Judgement {
        let mut judgement = Judgement::default();
        let mut claims = Claims::default();
        view.pay_for_jumps(true);
        for there in candidates.chunk_by(|one, next| one.offset == next.offset) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            if claims.holds(there[0].offset) {
                continue;
            }
            let from = judgement.judged.len();
            for one in there {
                match self.one(view, *one, left, &mut judgement.cost_bytes) {
                    Some(judged) if judged.verdict == Verdict::Not => {}
                    Some(judged) => judgement.judged.push(judged),
                    None if left.keeps_one_more() => judgement.judged.push(self.given_up(*one)),
                    None => judgement.unread += 1,
                }
            }
            for one in &judgement.judged[from..] {
                if self.is_claimed(one) {
                    one.extents.iter().for_each(|extent| claims.add(*extent));
                }
            }
        }
        view.pay_for_jumps(false);
        judgement
    }

    /// Whether what lies in it is not looked at.
    fn is_claimed(&self, one: &Judged) -> bool {
        let Some((_, kind, _)) = one.verdict.end() else { return false };
        let is_weak = self.formats[one.candidate.format as usize].is_weak();
        !is_weak && (!self.embedded || is_archive(kind.name))
    }

    /// Judges a candidate with more and more of the fuel that is `left`; nothing where that does
    /// not suffice.
    fn one(
        &self,
        view: &mut View<'_>,
        candidate: Candidate,
        left: &mut Allowance,
        cost_bytes: &mut u64,
    ) -> Option<Judged> {
        let mut extents = Vec::new();
        for attempt in 0..FUEL_BYTES.len() {
            let fuel = left.of(attempt);
            if fuel == 0 {
                return None;
            }
            if attempt == 0 {
                extents = self.ranges.extents_from(candidate.offset);
            }
            view.look_at(&extents, fuel);
            if view.length() == 0 {
                return Some(Judged { candidate, verdict: Verdict::Not, extents: Vec::new() });
            }
            let verdict = self.formats[candidate.format as usize].validate(view);
            let cost = fuel.saturating_sub(view.fuel_bytes());
            *cost_bytes = cost_bytes.saturating_add(cost);
            left.pay(attempt, cost);
            // Whoever was refused a byte may have taken that for the end.
            if !view.is_starved() {
                let end = verdict.end();
                let extents = end.map_or(Vec::new(), |(length, ..)| cut(view.extents(), length));
                return Some(Judged { candidate, verdict, extents });
            }
        }
        None
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
