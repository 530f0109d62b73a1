//! Validates candidates, in the order of the source.
//!
//! Most candidates are not files, which shows within a few bytes; some claim to be gigabytes. So
//! each is read with little fuel first, and with more only if that runs out. The fuel of a whole
//! stride is [bounded](Allowance) and does not depend on the schedule, so that results are the same
//! with any number of workers. Candidates that run out of fuel get a [second look](super::again).

use std::sync::atomic::{AtomicBool, Ordering};

use super::again::StarvedCandidate;
use super::allowance::{Allowance, FUEL_BYTES};
use super::candidates::Candidate;
use crate::claims::Claims;
use crate::embedded::is_archive;
use crate::format::{Format, Verdict};
use crate::view::{Extent, View, cut};

/// Additional fuel in bytes for each extent of a file that a file system knows.
const JUMP_FUEL_BYTES: u64 = 64 << 10;
/// Number of bytes to keep of a candidate without fuel.
const HEADER_ONLY_BYTES: u64 = 512;

/// A candidate with its validator's verdict.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) candidate: Candidate,
    pub(super) verdict: Verdict,
    /// The extents that the validator saw, cut to the length of a file with a known end.
    pub(super) extents: Vec<Extent>,
    /// Whether a file system knows it with these extents.
    pub(super) is_confirmed: bool,
}

/// The verdicts on candidates.
#[derive(Default)]
pub(super) struct Judgement {
    /// The candidates that are files, in order.
    pub(super) judged: Vec<Judged>,
    /// The candidates for which the fuel did not suffice, in order.
    pub(super) unread: Vec<Candidate>,
    /// The cost of all candidates, in bytes of fuel.
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
    /// The cost in bytes of fuel.
    pub(super) cost_bytes: u64,
}

/// The settings of a run that validation needs.
pub(super) struct Judge<'c> {
    pub(super) formats: &'c [&'c dyn Format],
    pub(super) ranges: &'c super::ranges::CarvedRanges,
    pub(super) in_pieces: &'c super::in_pieces::FilesInPieces<'c>,
    /// Whether to find files inside others, too.
    pub(super) embedded: bool,
    /// Whether to read every candidate to its end, whatever that costs.
    pub(super) reads_all: bool,
    pub(super) stop: &'c AtomicBool,
}

impl Judge<'_> {
    /// Judges `candidates`, in order, with the fuel `left` for those of a stride. Those that run
    /// out of fuel get a second look with `again_bytes` of fuel. Omits invalid candidates, and
    /// those within a whole file.
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

    /// Takes the first look. Returns the candidates for which the remaining fuel does not suffice.
    fn in_order(
        &self,
        view: &mut View<'_>,
        candidates: &[Candidate],
        left: &mut Allowance,
        judgement: &mut Judgement,
        claims: &mut Claims,
    ) -> Vec<StarvedCandidate> {
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

    /// Gives up the candidates of `still`, for which no fuel is left; each comes with its rank
    /// within its group. The first ones by rank become partial files, as many as the run may keep.
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
            judgement.judged.push(self.header_only(one));
        }
        judgement.unread = still.into_iter().map(|(one, _)| one).collect();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Claims the bytes of a file if the carver does not look for files inside it.
    pub(super) fn claim(&self, one: &Judged, claims: &mut Claims) {
        if self.is_claimed(one) {
            one.extents.iter().for_each(|extent| claims.add(*extent));
        }
    }

    /// Whether the carver skips its contents.
    fn is_claimed(&self, one: &Judged) -> bool {
        let Some((_, kind, _)) = one.verdict.end() else { return false };
        let is_weak = self.formats[one.candidate.format as usize].is_weak();
        !is_weak && (!self.embedded || is_archive(kind.name))
    }

    /// Judges a candidate with more and more of the fuel that is `left`. If that does not suffice,
    /// the error has the greatest fuel of an attempt.
    fn one(
        &self,
        view: &mut View<'_>,
        candidate: Candidate,
        left: &mut Allowance,
        cost_bytes: &mut u64,
    ) -> Result<Judged, StarvedCandidate> {
        if let Some(judged) = self.in_pieces(view, candidate) {
            return Ok(judged);
        }
        let mut waiting = StarvedCandidate { candidate, fuel_bytes: 0 };
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

    /// Reads a candidate with the extents that a file system has of a file that begins there. This
    /// fuel is separate and depends on the file's length, so that no other candidate gets less.
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
            // A shorter file is in the first extent alone, or its end is not credible.
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

    /// Reads a candidate with this much fuel.
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
        // A validator that was refused a byte may have mistaken that for the end.
        let judged = (!view.is_starved()).then(|| {
            let end = verdict.end();
            let extents = end.map_or(Vec::new(), |(length, ..)| cut(view.extents(), length));
            Judged { verdict, extents, ..none }
        });
        Attempt { judged, cost_bytes }
    }

    /// Makes the result for a candidate for which no fuel is left.
    fn header_only(&self, candidate: Candidate) -> Judged {
        let format = self.formats[candidate.format as usize];
        let verdict = Verdict::Broken {
            kind: format.kinds()[0],
            sure: 0,
            at: HEADER_ONLY_BYTES,
            reason: "too many candidates nearby to read them all".to_string(),
        };
        Judged { candidate, verdict, extents: Vec::new(), is_confirmed: false }
    }
}
