//! Matches longer than allowed, wherever they end.
//!
//! A match is defined by the whole source. A chunk shows `L + 1` bytes from each of its starts,
//! which is enough to find every match that is not too long. But `a(?s:.*)b` may find no match
//! within them, or a short one, and continue to match gigabytes. So the attempts still open after
//! `L + 1` bytes are followed, in order, through the later chunks, until they die or have matched
//! more than `L` bytes. Attempts in the same state have the same future, so the one that began
//! first represents them all.
//!
//! The search ends where a match first proves to be too long, at byte `D`; findings before
//! `D - L - 1` are reported. That depends on the bytes alone, and does not delay findings until an
//! attempt is decided, which may be never. Another attempt, still open then, may have begun before
//! the one that proved too long. Such attempts are followed to their end, so that the search
//! reports the start of the first match.
//!
//! If few bytes keep an attempt open, this costs nearly nothing: starts are taken in batches of
//! nearly `L`, and following all states of the regex at once from the last start soon shows whether
//! any attempt could still be open `L + 1` bytes after the first.

use std::ops::Range;

use quarrier_core::pipeline::Chunk;

use super::BoundedRegex;
use super::attempt::{Attempts, DEAD, MATCH};
use super::byteset::ByteSet;
use super::exact::Exact;
use crate::finding::Finding;

/// Marks the absence of a match.
const NO_START: u64 = u64::MAX;

/// Watches one regex.
pub(super) struct Watch {
    attempts: Attempts,
    bytes_max: u64,
    first: ByteSet,
    /// Attempts that are open at `at`, in the order of their starts, each in a different state.
    open: Vec<Attempt>,
    at: u64,
    /// Attempts that begin in the current batch.
    fresh: Vec<Attempt>,
    /// Starts before this offset were examined.
    known_until: u64,
    proof: Option<Proof>,
    /// For each state, the last round in which it occurred.
    met: Vec<u64>,
    round: u64,
}

/// An attempt to match.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Attempt {
    start: u64,
    state: u32,
}

/// Proof that a match is too long.
#[derive(Clone, Copy)]
struct Proof {
    /// The earliest known start of such a match.
    start: u64,
    /// The offset at which the first such match was detected.
    end: u64,
}

/// Bytes with their offset in the source.
#[derive(Clone, Copy)]
struct View<'t> {
    text: &'t [u8],
    offset: u64,
}

impl View<'_> {
    fn index(&self, offset: u64) -> usize {
        (offset - self.offset) as usize
    }
}

/// Decides where a match may begin: not inside another.
pub(super) struct Free<'m> {
    matches: &'m [Finding],
    /// The end of the match before them.
    resume: u64,
}

impl<'m> Free<'m> {
    pub(super) fn new(matches: &'m [Finding], resume: u64) -> Self {
        Free { matches, resume }
    }

    /// Returns whether a match may begin at `start`; calls must come in ascending order.
    fn holds(&mut self, start: u64) -> bool {
        while let Some((first, rest)) = self.matches.split_first()
            && first.offset < start
        {
            self.resume = first.offset + u64::from(first.length);
            self.matches = rest;
        }
        start >= self.resume
    }
}

impl Watch {
    /// Returns `None` if the regex itself allows no match that is too long.
    pub(super) fn new(regex: &BoundedRegex) -> Option<Self> {
        Some(Watch {
            attempts: Attempts::new(
                regex.endless.as_ref()?,
                regex.exact.as_ref().map(Exact::order),
            ),
            bytes_max: regex.length_bytes_max as u64,
            first: regex.first,
            open: Vec::new(),
            at: 0,
            fresh: Vec::new(),
            known_until: 0,
            proof: None,
            met: Vec::new(),
            round: 0,
        })
    }

    /// Examines the starts of a chunk before `until`, given the matches among them. If a match proved too
    /// long, returns the offset before which findings count.
    pub(super) fn look(
        &mut self,
        chunk: &Chunk<'_>,
        until: u64,
        free: &mut Free<'_>,
    ) -> Option<u64> {
        let view = View { text: chunk.data, offset: chunk.offset };
        let end = chunk.offset + chunk.data.len() as u64;
        let begin = chunk.offset + chunk.own.start as u64;
        if self.known_until < begin {
            // The start of the source, or after zeros that leave no attempt open.
            self.open.clear();
            (self.known_until, self.at) = (begin, begin);
        }
        let reach = self.bytes_max + 1;
        let batch = reach - reach / 8;
        while self.known_until < until && self.known_until + reach <= end && self.proof.is_none() {
            let starts = self.known_until..until.min(self.known_until + batch);
            let sight = self.known_until + reach;
            let to = self.at.max(sight);
            self.follow(view, to);
            if self.may_be_open(view, starts.end..sight) {
                self.enter(view, &starts, to, free);
            }
            self.known_until = starts.end;
        }
        self.known_until = self.known_until.max(until);
        self.follow_until(chunk, until);
        self.proof.map(|proof| proof.end - reach)
    }

    /// Follows the open attempts through the part of a chunk before `until`, as far as the chunk's bytes
    /// reach.
    pub(super) fn follow_until(&mut self, chunk: &Chunk<'_>, until: u64) {
        let view = View { text: chunk.data, offset: chunk.offset };
        let end = chunk.offset + chunk.data.len() as u64;
        // The automaton reports a match one byte after its end.
        self.follow(view, self.at.max((until + self.bytes_max + 2).min(end)));
        if chunk.at_end && self.at == end {
            for index in 0..self.open.len() {
                let Attempt { start, state } = self.open[index];
                if self.is_too_long(start, end) && self.attempts.ends(state, view.text) {
                    self.prove(start, end);
                }
            }
            self.drop_redundant_attempts();
        }
    }

    /// Returns the start of the match that proved too long.
    pub(super) fn too_long(&self) -> Option<u64> {
        self.proof.map(|proof| proof.start)
    }

    /// Returns whether another match may still prove to be the first.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    fn is_too_long(&self, start: u64, end: u64) -> bool {
        end.saturating_sub(start) > self.bytes_max
    }

    fn prove(&mut self, start: u64, end: u64) {
        let proof = self.proof.get_or_insert(Proof { start, end });
        *proof = Proof { start: proof.start.min(start), end: proof.end.min(end) };
    }

    /// Follows the open attempts to the offset `to`.
    fn follow(&mut self, view: View<'_>, to: u64) {
        if !self.open.is_empty() {
            let range = view.index(self.at)..view.index(to);
            for index in 0..self.open.len() {
                self.follow_one(view, index, range.clone());
            }
            self.drop_redundant_attempts();
        }
        self.at = to;
    }

    /// Drops attempts that are dead, that an earlier one in the same state represents, or that begin too
    /// late.
    fn drop_redundant_attempts(&mut self) {
        let before = self.proof.map_or(NO_START, |proof| proof.start);
        self.open.retain(|attempt| attempt.start < before);
        let mut open = std::mem::take(&mut self.open);
        self.keep_distinct(&mut open);
        self.open = open;
    }

    fn keep_distinct(&mut self, attempts: &mut Vec<Attempt>) {
        self.round += 1;
        attempts.retain(|attempt| {
            let state = attempt.state as usize;
            if self.met.len() <= state {
                self.met.resize(state + 1, 0);
            }
            state != DEAD as usize
                && std::mem::replace(&mut self.met[state], self.round) != self.round
        });
    }

    /// Follows one open attempt through `range`, or until it is decided.
    fn follow_one(&mut self, view: View<'_>, index: usize, range: Range<usize>) {
        let start = self.open[index].start;
        let mut at = range.start;
        let mut state = self.open[index].state;
        while at < range.end && state != DEAD {
            let byte = view.text[at];
            let step = match self.attempts.step(state, byte) {
                Some(step) => step,
                None => {
                    self.open[index].state = state;
                    self.make_room();
                    self.attempts.work_out(self.open[index].state, view.text, at)
                }
            };
            let end = view.offset + at as u64;
            if step & MATCH != 0 && self.is_too_long(start, end) {
                self.prove(start, end);
                state = DEAD;
                break;
            }
            at += 1;
            if step == state && self.attempts.depends_on_neighbours() {
                at += run(&view.text[at..range.end], byte);
            }
            state = step & !MATCH;
        }
        self.open[index].state = state;
    }

    /// Returns whether an attempt that began before `range` may still be open after it.
    fn may_be_open(&mut self, view: View<'_>, range: Range<u64>) -> bool {
        let range = view.index(range.start)..view.index(range.end);
        let state = self.attempts.any(view.text, range.start);
        self.open.push(Attempt { start: NO_START, state });
        self.follow_one(view, self.open.len() - 1, range);
        self.open.pop().is_some_and(|all| all.state != DEAD)
    }

    /// Adds the attempts that begin in `starts` and are open at `to`.
    fn enter(&mut self, view: View<'_>, starts: &Range<u64>, to: u64, free: &mut Free<'_>) {
        let (mut last, mut at) = (Vec::new(), starts.start);
        loop {
            at = self.glide(view, at, starts.end, to);
            if at >= to || (at >= starts.end && self.fresh.is_empty()) {
                break;
            }
            let index = view.index(at);
            let byte = view.text[index];
            let is_free = at >= starts.end || free.holds(at);
            let in_run = index > 0 && view.text[index - 1] == byte;
            if in_run {
                last.clone_from(&self.fresh);
            }
            if at < starts.end && is_free && self.first.contains(byte) {
                let state = self.attempts.begin(view.text, index);
                self.fresh.push(Attempt { start: at, state });
            }
            let has_matched = self.step_fresh(view, at);
            at += 1;
            // If one more of the same byte changes nothing, the rest of the run changes nothing.
            if in_run && is_free && !has_matched && last == self.fresh {
                let end = if at <= starts.end { starts.end } else { to };
                if self.attempts.depends_on_neighbours() {
                    at += run(&view.text[view.index(at)..view.index(end)], byte) as u64;
                }
            }
        }
        self.open.append(&mut self.fresh);
        self.drop_redundant_attempts();
    }

    /// Skips bytes at which no attempt begins, while at most one is open and its step is known.
    /// Returns the offset where it stopped.
    fn glide(&mut self, view: View<'_>, at: u64, starts_end: u64, to: u64) -> u64 {
        let (mut state, end) = match self.fresh[..] {
            [] => (DEAD, starts_end),
            [only] => (only.state, to),
            _ => return at,
        };
        let (from, starts) = (view.index(at), view.index(starts_end));
        let mut index = from;
        while index < view.index(end) {
            let byte = view.text[index];
            if index < starts && self.first.contains(byte) {
                break;
            }
            if let Some(only) = self.fresh.first_mut() {
                match self.attempts.step(state, byte) {
                    Some(step) if step & MATCH == 0 && step != DEAD => state = step,
                    _ => break,
                }
                only.state = state;
            }
            index += 1;
        }
        at + (index - from) as u64
    }

    /// Steps over the byte at `at`; returns whether any attempt has matched before it.
    fn step_fresh(&mut self, view: View<'_>, at: u64) -> bool {
        let index = view.index(at);
        let mut has_matched = false;
        for fresh in 0..self.fresh.len() {
            let Attempt { start, state } = self.fresh[fresh];
            let step = match self.attempts.step(state, view.text[index]) {
                Some(step) => step,
                None => {
                    self.make_room();
                    self.attempts.work_out(self.fresh[fresh].state, view.text, index)
                }
            };
            self.fresh[fresh].state = step & !MATCH;
            if step & MATCH != 0 {
                has_matched = true;
                if self.is_too_long(start, at) {
                    self.prove(start, at);
                    self.fresh[fresh].state = DEAD;
                }
            }
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        self.keep_distinct(&mut fresh);
        self.fresh = fresh;
        has_matched
    }

    fn make_room(&mut self) {
        if self.attempts.is_full() {
            let all = self.open.iter_mut().chain(&mut self.fresh);
            self.attempts.forget(all.map(|attempt| &mut attempt.state));
        }
    }
}

/// Returns the length of the run of `byte` at the start of `text`.
#[inline]
fn run(text: &[u8], byte: u8) -> usize {
    if text.first() == Some(&byte) { long_run(text, byte) } else { 0 }
}

fn long_run(text: &[u8], byte: u8) -> usize {
    const WORD: usize = 32;
    let words = text.chunks_exact(WORD).take_while(|word| **word == [byte; WORD]).count();
    let rest = &text[words * WORD..];
    words * WORD + rest.iter().take_while(|&&other| other == byte).count()
}

/// Returns whether an attempt may still be open after as many zeros as a chunk sees.
pub(super) fn is_open_in_zeros(regex: &BoundedRegex) -> bool {
    let Some(mut watch) = Watch::new(regex) else { return false };
    let zeros = vec![0; regex.length_bytes_max + 2];
    let view = View { text: &zeros, offset: 0 };
    watch.may_be_open(view, 1..zeros.len() as u64)
}
