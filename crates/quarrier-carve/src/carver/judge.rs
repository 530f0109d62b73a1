//! Validates candidates, in the order of the source.
//!
//! Most candidates are not files, which shows within a few bytes; some claim to be gigabytes. So each
//! is read with little fuel first, and with more only if that runs out. The fuel of a whole stride is
//! [bounded](Allowance), and does not depend on the schedule: results are the
//! same with any number of workers. For whom that does not suffice, there is a [second
//! look](super::again).

use std::sync::atomic::{AtomicBool, Ordering};

use super::again::Waiting;
use super::allowance::{Allowance, FUEL_BYTES};
use super::candidates::Candidate;
use crate::claims::Claims;
use crate::embedded::is_archive;
use crate::format::{Format, Verdict};
use crate::view::{Extent, View, cut};

/// Fuel for each run of a file that a file system knows, beside its bytes.
const JUMP_FUEL_BYTES: u64 = 64 << 10;
/// The bytes kept of a candidate without fuel.
const GIVEN_UP_BYTES: u64 = 512;

/// A candidate with what its validator says.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) candidate: Candidate,
    pub(super) verdict: Verdict,
    /// The places of the bytes that the validator saw, cut to the length of a whole file.
    pub(super) extents: Vec<Extent>,
    /// Whether a file system knows it with these extents.
    pub(super) is_confirmed: bool,
}

/// The judgement of candidates.
#[derive(Default)]
pub(super) struct Judgement {
    /// In order, without the invalid ones.
    pub(super) judged: Vec<Judged>,
    /// Those that could not be read to an end, in order.
    pub(super) unread: Vec<Candidate>,
    /// Their cost, in bytes of fuel.
    pub(super) cost_bytes: u64,
}

impl Judgement {
    pub(super) fn add(&mut self, judged: Judged) {
        if judged.verdict != Verdict::Not {
            self.judged.push(judged);
        }
    }
}

/// The result of reading a candidate with some fuel.
pub(super) struct Attempt {
    /// `None` if the fuel did not suffice.
    pub(super) judged: Option<Judged>,
    /// In bytes of fuel.
    pub(super) cost_bytes: u64,
}

/// The parts of the run that validators need.
pub(super) struct Judge<'c> {
    pub(super) formats: &'c [&'c dyn Format],
    pub(super) ranges: &'c super::ranges::CarvedRanges,
    pub(super) in_pieces: &'c super::in_pieces::FilesInPieces<'c>,
    /// Whether files inside others are wanted, too.
    pub(super) embedded: bool,
    /// Whether every candidate is read to its end, whatever that costs.
    pub(super) reads_all: bool,
    pub(super) stop: &'c AtomicBool,
}

impl Judge<'_> {
    /// Judges `candidates`, in order, with the fuel `left` for those of a stride, and then, with
    /// `again_bytes` of fuel, those for which that did not suffice. Leaves out invalid ones, and those
    /// within a whole file.
    pub(super) fn judge(
        &self,
        view: &mut View<'_>,
        candidates: &[Candidate],
        left: &mut Allowance,
        again_bytes: u64,
    ) -> Judgement {
        let mut judgement = Judgement::default();
        let mut claims = Claims::default();
        view.pay_for_jumps(true);
        let waiting = self.in_order(view, candidates, left, &mut judgement, &mut claims);
        if !waiting.is_empty() {
            let still = self.look_again(view, waiting, again_bytes, &mut judgement, &mut claims);
            self.give_up(view, still, left, &mut judgement, &mut claims);
            judgement.judged.sort_by_key(|one| one.candidate);
        }
        view.pay_for_jumps(false);
        judgement
    }

    /// The first look. Returns those for which there is not enough left.
    fn in_order(
        &self,
        view: &mut View<'_>,
        candidates: &[Candidate],
        left: &mut Allowance,
        judgement: &mut Judgement,
        claims: &mut Claims,
    ) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for there in candidates.chunk_by(|one, next| one.offset == next.offset) {
            if self.is_stopped() {
                break;
            }
            if claims.holds(there[0].offset) {
                continue;
            }
            let from = judgement.judged.len();
            for one in there {
                match self.one(view, *one, left, &mut judgement.cost_bytes) {
                    Ok(judged) => judgement.add(judged),
                    Err(one) => waiting.push(one),
                }
            }
            judgement.judged[from..].iter().for_each(|one| self.claim(one, claims));
        }
        waiting
    }

    /// Gives up the candidates of `still`, which no fuel is left for; each comes with its rank within its
    /// group. As many as the run may keep become partial files, in the order of their ranks.
    fn give_up(
        &self,
        view: &mut View<'_>,
        still: Vec<(Candidate, usize)>,
        left: &mut Allowance,
        judgement: &mut Judgement,
        claims: &mut Claims,
    ) {
        if self.reads_all {
            for (candidate, _) in still {
                self.read_all(view, candidate, judgement, claims);
            }
            return;
        }
        let mut by_rank: Vec<_> = still.iter().map(|(one, rank)| (*rank, *one)).collect();
        by_rank.sort_unstable();
        for (_, one) in by_rank.into_iter().take_while(|_| left.keeps_one_more()) {
            judgement.judged.push(self.given_up(one));
        }
        judgement.unread = still.into_iter().map(|(one, _)| one).collect();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Claims the bytes of a file in which nothing else is looked at.
    pub(super) fn claim(&self, one: &Judged, claims: &mut Claims) {
        if self.is_claimed(one) {
            one.extents.iter().for_each(|extent| claims.add(*extent));
        }
    }

    /// Whether its contents are skipped.
    fn is_claimed(&self, one: &Judged) -> bool {
        let Some((_, kind, _)) = one.verdict.end() else { return false };
        let is_weak = self.formats[one.candidate.format as usize].is_weak();
        !is_weak && (!self.embedded || is_archive(kind.name))
    }

    /// Judges a candidate with more and more of the fuel that is `left`; if that does not suffice,
    /// reports how much it had.
    fn one(
        &self,
        view: &mut View<'_>,
        candidate: Candidate,
        left: &mut Allowance,
        cost_bytes: &mut u64,
    ) -> Result<Judged, Waiting> {
        if let Some(judged) = self.in_pieces(view, candidate) {
            return Ok(judged);
        }
        let mut waiting = Waiting { candidate, fuel_bytes: 0 };
        for attempt in 0..FUEL_BYTES.len() {
            let fuel = left.of(attempt);
            if fuel == 0 {
                break;
            }
            let Attempt { judged, cost_bytes: cost } = self.attempt(view, candidate, fuel);
            *cost_bytes = cost_bytes.saturating_add(cost);
            left.pay(attempt, cost);
            if let Some(judged) = judged {
                return Ok(judged);
            }
            waiting.fuel_bytes = waiting.fuel_bytes.max(fuel);
        }
        Err(waiting)
    }

    /// Reads a candidate with the runs that a file system knows of a file that begins there. These have
    /// fuel of their own, by their length, which the files of a source share: so nothing else is read less.
    fn in_pieces(&self, view: &mut View<'_>, candidate: Candidate) -> Option<Judged> {
        let format = self.formats[candidate.format as usize];
        self.in_pieces.at(candidate.offset).find_map(|extents| {
            let bytes = extents.iter().fold(0u64, |sum, one| sum.saturating_add(one.length));
            let is_carved = bytes <= self.ranges.file_bytes_max() && self.ranges.hold_all(extents);
            if !is_carved || self.is_stopped() {
                return None;
            }
            let jumps = (extents.len() as u64).saturating_mul(JUMP_FUEL_BYTES);
            view.look_at(extents, bytes.saturating_mul(2).saturating_add(jumps));
            let verdict = format.validate(view);
            let (length, ..) = verdict.end()?;
            // A shorter file lies in the first run alone, or only seems to end.
            let is_strong = matches!(verdict, Verdict::Whole { .. }) && !format.is_weak();
            let is_it = length > extents[0].length && (length == bytes || is_strong);
            (is_it && !view.is_starved()).then(|| Judged {
                candidate,
                extents: cut(view.extents(), length),
                verdict,
                is_confirmed: true,
            })
        })
    }

    /// Reads a candidate with so much fuel.
    pub(super) fn attempt(
        &self,
        view: &mut View<'_>,
        candidate: Candidate,
        fuel_bytes: u64,
    ) -> Attempt {
        let extents = self.ranges.extents_from(candidate.offset);
        view.look_at(&extents, fuel_bytes);
        let none =
            Judged { candidate, verdict: Verdict::Not, extents: Vec::new(), is_confirmed: false };
        if view.length() == 0 {
            return Attempt { judged: Some(none), cost_bytes: 0 };
        }
        let verdict = self.formats[candidate.format as usize].validate(view);
        let cost_bytes = fuel_bytes.saturating_sub(view.fuel_bytes());
        // A validator that was refused a byte may have taken that for the end.
        let judged = (!view.is_starved()).then(|| {
            let end = verdict.end();
            let extents = end.map_or(Vec::new(), |(length, ..)| cut(view.extents(), length));
            Judged { verdict, extents, ..none }
        });
        Attempt { judged, cost_bytes }
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
        Judged { candidate, verdict, extents: Vec::new(), is_confirmed: false }
    }
}
