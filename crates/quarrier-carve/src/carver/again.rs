//! A second look at candidates for which a stride's usual fuel did not suffice.
//!
//! An attacker who puts thousands of headers before a file uses up that fuel before the carver
//! reaches the file. So the remaining candidates share separate fuel by *place*: the candidates of
//! one format within 64 KiB form a group. All groups get the same amount, and so do all members of
//! a group, little at first and more in each round. Headers before a place take nothing from it. To
//! hide a file, headers must surround it, and then the summary lists that place.

use super::candidates::Candidate;
use super::judge::{Attempt, Judge, Judgement};
use super::places::PLACE_BYTES;
use crate::claims::Claims;
use crate::view::View;

/// Fuel of each candidate in the first round, in bytes.
const FUEL_BYTES_MIN: u64 = 2 << 10;
/// Each round has this many times the fuel of the one before.
const GROWTH: u64 = 8;
/// A round spends at most the remaining fuel divided by this, so that a crowded group cannot use up
/// what the others need.
const ROUND_SHARE: u64 = 2;
/// A candidate is read again only with this many times the fuel of its last read.
const GAIN_MIN: u64 = 2;

/// A candidate that could not be read to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StarvedCandidate {
    pub(super) candidate: Candidate,
    /// The fuel of its most expensive attempt, in bytes.
    pub(super) fuel_bytes: u64,
}

/// Candidates of one format in one place, in order.
type Group = Vec<StarvedCandidate>;

impl Judge<'_> {
    /// Looks again at the waiting candidates, with `fuel_bytes` for all of them. Returns those that
    /// still lack fuel, in order, each with the number of members of its group before it.
    pub(super) fn look_again(
        &self,
        view: &mut View<'_>,
        waiting: Vec<StarvedCandidate>,
        mut fuel_bytes: u64,
        judgement: &mut Judgement,
        claims: &mut Claims,
    ) -> Vec<(Candidate, usize)> {
        let mut open = grouped(waiting);
        let mut closed = Vec::new();
        let mut fuel_each = FUEL_BYTES_MIN;
        while !open.is_empty() {
            let share = fuel_bytes / ROUND_SHARE / open.len() as u64;
            let mut next = Vec::with_capacity(open.len());
            for mut group in open {
                group.retain(|one| !claims.holds(one.candidate.offset));
                let each = fuel_each.min(share / group.len().max(1) as u64);
                let is_last = each < fuel_each || self.is_stopped();
                for one in std::mem::take(&mut group) {
                    let cost = judgement.cost_bytes;
                    group.extend(self.once_more(view, one, each, judgement, claims));
                    fuel_bytes = fuel_bytes.saturating_sub(judgement.cost_bytes - cost);
                }
                match group.is_empty() {
                    true => {}
                    false if is_last => closed.push(group),
                    false => next.push(group),
                }
            }
            open = next;
            fuel_each = fuel_each.saturating_mul(GROWTH);
        }
        let ranked = closed.into_iter().flat_map(|group| group.into_iter().enumerate());
        let mut left: Vec<_> = ranked.map(|(rank, one)| (one.candidate, rank)).collect();
        left.retain(|(one, _)| !claims.holds(one.offset));
        left.sort_unstable();
        left
    }

    /// Reads a candidate to its end at any cost.
    pub(super) fn read_all(
        &self,
        view: &mut View<'_>,
        candidate: Candidate,
        judgement: &mut Judgement,
        claims: &mut Claims,
    ) {
        if !claims.holds(candidate.offset) {
            let one = StarvedCandidate { candidate, fuel_bytes: 0 };
            self.once_more(view, one, u64::MAX, judgement, claims);
        }
    }

    /// Reads a candidate with this much fuel, unless that is hardly more than it had before.
    /// Returns the candidate if it still lacks fuel.
    fn once_more(
        &self,
        view: &mut View<'_>,
        mut one: StarvedCandidate,
        fuel_bytes: u64,
        judgement: &mut Judgement,
        claims: &mut Claims,
    ) -> Option<StarvedCandidate> {
        if one.fuel_bytes > fuel_bytes / GAIN_MIN || self.is_stopped() {
            return Some(one);
        }
        let Attempt { judged, cost_bytes } = self.attempt(view, one.candidate, fuel_bytes);
        judgement.cost_bytes = judgement.cost_bytes.saturating_add(cost_bytes);
        one.fuel_bytes = fuel_bytes;
        let Some(judged) = judged else { return Some(one) };
        self.claim(&judged, claims);
        judgement.add(judged);
        None
    }
}

fn grouped(mut waiting: Vec<StarvedCandidate>) -> Vec<Group> {
    let key = |one: &StarvedCandidate| (one.candidate.offset / PLACE_BYTES, one.candidate.format);
    waiting.sort_unstable_by_key(|one| (key(one), one.candidate.offset));
    waiting
        .chunk_by(|one, other| key(one) == key(other))
        .map(<[StarvedCandidate]>::to_vec)
        .collect()
}
