//! Gates several regexes by filters: the filters find runs that matches must contain, and the automata run
//! only there, at the starts that the run allows.

use std::time::Instant;

use std::ops::Range;

use super::factors::{Factor, Rates, RegexFactors, Run, hit_ns, span, take_apart};
use super::spot::{Hit, Spotter, occurs_in};
use super::{BoundedRegex, TooLong};
use crate::error::Result;
use crate::finding::Finding;
use crate::multi::{BLOCK_BYTES, Haystack};
use crate::sample::Sample;
use crate::wanted::Wanted;

/// If the hits of a regex would take more nanoseconds per byte of data, it is not gated.
const GATED_NS_MAX: f32 = 2.0;

/// Maximum number of rounds that replace runs which are more frequent in the sample than the byte frequencies
/// predicted.
const ROUNDS: usize = 3;

/// The next start of a regex whose search has ended.
const NOWHERE: usize = usize::MAX;

/// Failed attempts in a block count towards the time limit only beyond this number.
const TRIES_FREE: u32 = 16;
/// Maximum time of failed attempts in a block: a few times the automaton's time without a gate.
const IN_VAIN_NS_MAX: u64 = 400_000;

/// If a run allows many starts, a regex whose matches are at most this long is searched for in one
/// pass.
const SHORT_BYTES: usize = 4096;
const STARTS_MANY: usize = 4;

/// The filters, and the regexes that they gate.
pub(crate) struct Gate {
    spotter: Spotter,
    gated: Vec<Gated>,
    /// For each run, the index in `gated` of its regex.
    owners: Vec<u32>,
    /// For each regex, its index in `gated`.
    slots: Vec<Option<u32>>,
    /// The greatest distance of a run from the start of a match.
    pub(crate) reach: usize,
}

/// The next possible start of a gated regex, and the time wasted on it in this block.
#[derive(Clone, Copy)]
struct Start {
    from: usize,
    tries: u32,
    in_vain_ns: u64,
}

/// The gate's state in a chunk, from block to block.
pub(crate) struct Passage {
    starts: Vec<Start>,
    /// In order, complete up to some position.
    hits: Vec<Hit>,
    needles: Vec<Finding>,
}

/// A gated regex: its index in the list of all, and its runs.
struct Gated {
    index: usize,
    offset_min: usize,
    offset_max: usize,
    /// Another factor of every match, nearby; searched for before the automaton runs.
    also: Option<Also>,
    /// A description for display.
    description: String,
}

/// A second factor of every match, relative to the position of the first.
struct Also {
    /// The runs, each with the index of its rarest byte.
    runs: Vec<(Run, usize)>,
    /// The distances from the first and the last start that a run allows.
    offset_min: usize,
    offset_max: usize,
}

/// Maximum number of runs of a second factor, and maximum length of the stretch that contains them.
const ALSO_RUNS_MAX: usize = 4;
const ALSO_BYTES_MAX: usize = 512;
/// A second factor must occur there less often than this to be worth checking.
const ALSO_SHARE_MAX: f32 = 0.3;

/// The factors of a regex, and which is in use.
struct Candidate {
    index: usize,
    factors: Vec<Factor>,
    used: usize,
}

impl Candidate {
    /// Returns whether the factor in use is rare enough, by the frequencies of its bytes.
    fn is_rare(&self) -> bool {
        self.factors.get(self.used).is_some_and(|factor| factor.cost <= GATED_NS_MAX)
    }
}

impl Gate {
    /// Makes a gate for those of `regexes` that have a rare factor; `None` if none has.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped)
    pub(crate) fn new(
        regexes: &mut [BoundedRegex],
        sample: &Sample,
        wanted: Wanted<'_>,
    ) -> Result<Option<Self>> {
        let rates = Rates::new(sample);
        let mut candidates = Vec::new();
        for (index, regex) in regexes.iter_mut().enumerate() {
            wanted.check()?;
            let RegexFactors { factors, first } = take_apart(regex.ends.hir(), &rates);
            regex.first = first;
            candidates.push(Candidate { index, factors, used: 0 });
        }
        for _ in 0..ROUNDS {
            candidates.retain(Candidate::is_rare);
            let Some(gate) = Self::of(regexes, &candidates, sample, &rates, wanted)? else {
                return Ok(None);
            };
            if !gate.choose_others(&mut candidates, sample) {
                return Ok(Some(gate));
            }
        }
        candidates.retain(Candidate::is_rare);
        Self::of(regexes, &candidates, sample, &rates, wanted)
    }

    fn of(
        regexes: &[BoundedRegex],
        candidates: &[Candidate],
        sample: &Sample,
        rates: &Rates<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Option<Self>> {
        if candidates.is_empty() {
            return Ok(None);
        }
        let (mut gated, mut runs, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots = vec![None; regexes.len()];
        for candidate in candidates {
            let factor = &candidate.factors[candidate.used];
            slots[candidate.index] = Some(gated.len() as u32);
            owners.extend(factor.runs.iter().map(|_| gated.len() as u32));
            runs.extend(factor.runs.iter().cloned());
            let (offset_min, offset_max) = span(&factor.runs);
            let longest = regexes[candidate.index].length_bytes_max;
            let offset_max = offset_max.map_or(longest, |max| max.min(longest));
            let description = describe(&factor.runs, offset_min, offset_max);
            let also = Also::of(candidate, (offset_min, offset_max), rates);
            gated.push(Gated { index: candidate.index, offset_min, offset_max, also, description });
        }
        let spotter = Spotter::new(runs, sample, rates, wanted)?;
        let reach = gated.iter().map(|g| g.offset_max).max().unwrap_or(0) + spotter.reach;
        Ok(Some(Gate { spotter, gated, owners, slots, reach }))
    }

    /// Switches to the next factor of each regex whose hits in the sample take too long. Returns whether
    /// there is any such regex.
    fn choose_others(&self, candidates: &mut [Candidate], sample: &Sample) -> bool {
        let mut counts = vec![0u32; self.gated.len()];
        let (mut hits, mut needles) = (Vec::new(), Vec::new());
        let text = sample.bytes();
        for from in (0..text.len()).step_by(BLOCK_BYTES) {
            hits.clear();
            let block = from..text.len().min(from + BLOCK_BYTES);
            self.spotter.scan(text, block, &mut needles, |_, _| true, &mut hits);
            hits.iter().for_each(|hit| counts[self.owners[hit.run as usize] as usize] += 1);
        }
        let mut is_changed = false;
        for (candidate, count) in candidates.iter_mut().zip(counts) {
            let (min, max) = span(&candidate.factors[candidate.used].runs);
            let cost = count as f32 * hit_ns(min, max) / text.len().max(1) as f32;
            if cost > GATED_NS_MAX {
                candidate.used += 1;
                is_changed = true;
            }
        }
        is_changed
    }

    /// Returns whether regex number `index` is gated.
    pub(crate) fn holds(&self, index: usize) -> bool {
        self.slots[index].is_some()
    }

    /// Returns the number of gated regexes.
    pub(crate) fn count(&self) -> usize {
        self.gated.len()
    }

    /// Returns the name of the engine that filters.
    pub(crate) fn engine(&self) -> &'static str {
        self.spotter.engine()
    }

    /// Describes the gate of regex number `index` for display.
    pub(crate) fn description(&self, index: usize) -> Option<&str> {
        Some(&self.gated[self.slots[index]? as usize].description)
    }

    /// Begins a chunk in which matches may start at `from` or later.
    pub(crate) fn start(&self, from: usize) -> Passage {
        let start = Start { from, tries: 0, in_vain_ns: 0 };
        let starts = vec![start; self.gated.len()];
        Passage { starts, hits: Vec::new(), needles: Vec::new() }
    }

    /// Returns the regexes that continue by their automata alone, and where. These had so many
    /// failed attempts in one block that the gate does not pay: the data consists of runs, or was
    /// made to defeat it.
    pub(crate) fn gives_up(&self, passage: &mut Passage) -> Vec<(usize, usize)> {
        let mut given_up = Vec::new();
        for (gated, start) in self.gated.iter().zip(&mut passage.starts) {
            if start.in_vain_ns > IN_VAIN_NS_MAX && start.from != NOWHERE {
                given_up.push((gated.index, start.from));
                start.from = NOWHERE;
            }
            (start.tries, start.in_vain_ns) = (0, 0);
        }
        given_up
    }

    /// Gates regex number `index` again; it may begin at `from`.
    pub(crate) fn takes_back(&self, index: usize, from: usize, passage: &mut Passage) {
        if let Some(slot) = self.slots[index] {
            passage.starts[slot as usize].from = from;
        }
    }

    /// Adds all matches whose run begins in `positions` (at most [`BLOCK_BYTES`]) or before, and whose
    /// first byte is owned. A match that is too long ends the search for its regex. Runs near the end
    /// of `positions` wait for the next ones, unless these are the last.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a chunk, and the destinations of its results"
    )]
    pub(crate) fn scan(
        &self,
        regexes: &[BoundedRegex],
        hay: &Haystack<'_>,
        positions: Range<usize>,
        is_last: bool,
        passage: &mut Passage,
        found: &mut Vec<Finding>,
        too_long: &mut Vec<TooLong>,
    ) {
        let Passage { starts, hits, needles } = passage;
        let is_wanted = |run: u32, at: usize| {
            let slot = self.owners[run as usize] as usize;
            // The last start that the run allows.
            at.checked_sub(self.gated[slot].offset_min).is_some_and(|at| at >= starts[slot].from)
        };
        self.spotter.scan(hay.text, positions.clone(), needles, is_wanted, hits);
        hits.sort_unstable();
        let known_until = positions.end.saturating_sub(self.spotter.reach);
        let known = match is_last {
            true => hits.len(),
            false => hits.partition_point(|hit| hit.at < known_until),
        };
        for hit in hits.drain(..known) {
            let slot = self.owners[hit.run as usize] as usize;
            let (gated, start) = (&self.gated[slot], &mut starts[slot]);
            if let Err(end) = gated.confirm(&regexes[gated.index], hay, hit.at, start, found) {
                too_long.push(end);
                start.from = NOWHERE;
            }
        }
    }
}

impl Also {
    /// Returns the rarest other factor near the runs of the one in use, if it helps.
    fn of(candidate: &Candidate, offsets: (usize, usize), rates: &Rates<'_>) -> Option<Self> {
        let used = &candidate.factors[candidate.used];
        let bytes = used.runs.iter().map(|run| run.sets.len()).min()?;
        let others = candidate.factors.iter().filter(|factor| factor.runs.len() <= ALSO_RUNS_MAX);
        let rated = others.filter_map(|factor| {
            let (min, max) = span(&factor.runs);
            let stretch = (max? - min).saturating_add(offsets.1 - offsets.0 + 1);
            let is_apart = min >= offsets.0 + bytes && stretch <= ALSO_BYTES_MAX;
            let share: f32 = factor.runs.iter().map(|run| rates.of(&run.sets)).sum();
            let runs = factor.runs.iter().map(|run| (run.clone(), rates.rarest(&run.sets)));
            let also = Also { runs: runs.collect(), offset_min: min, offset_max: max? };
            is_apart.then_some((share * stretch as f32, also))
        });
        let (share, also) = rated.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (share <= ALSO_SHARE_MAX).then_some(also)
    }

    /// Returns whether one of the runs is where a match that begins at `first` to `last` requires it.
    fn occurs(&self, text: &[u8], first: usize, last: usize) -> bool {
        let places = first + self.offset_min..last + self.offset_max + 1;
        self.runs.iter().any(|(run, probe)| occurs_in(run, *probe, text, places.clone()))
    }
}

impl Gated {
    /// Runs the automaton at each start that a run at `position` allows.
    fn confirm(
        &self,
        regex: &BoundedRegex,
        hay: &Haystack<'_>,
        position: usize,
        begin: &mut Start,
        found: &mut Vec<Finding>,
    ) -> std::result::Result<(), TooLong> {
        let Some(last) = position.checked_sub(self.offset_min) else { return Ok(()) };
        let first = begin.from.max(position.saturating_sub(self.offset_max));
        let last = last.min(hay.own.end.saturating_sub(1));
        if first > last || hay.own.is_empty() {
            return Ok(());
        }
        if self.also.as_ref().is_some_and(|also| !also.occurs(hay.text, first, last)) {
            begin.from = begin.from.max(last + 1);
            return Ok(());
        }
        begin.tries += 1;
        let clock = (begin.tries > TRIES_FREE).then(Instant::now);
        let before = found.len();
        let in_one_go = last - first >= STARTS_MANY
            && regex.endless.is_none()
            && regex.length_bytes_max <= SHORT_BYTES;
        let from = match in_one_go {
            true => regex.all_in(hay, first..last + 1, found),
            false => regex.all_at(hay, first..last + 1, found)?,
        };
        begin.from = from.max(begin.from);
        if let (Some(clock), true) = (clock, found.len() == before) {
            begin.in_vain_ns += clock.elapsed().as_nanos() as u64;
        }
        Ok(())
    }
}

impl BoundedRegex {
    /// Adds the matches that begin in `starts`, trying each start. Returns where the next may
    /// begin.
    fn all_at(
        &self,
        hay: &Haystack<'_>,
        starts: Range<usize>,
        found: &mut Vec<Finding>,
    ) -> std::result::Result<usize, TooLong> {
        let mut start = starts.start;
        while start < starts.end {
            let is_first = hay.text.get(start).is_some_and(|&byte| self.first.contains(byte));
            match if is_first { self.at(hay.text, start) } else { None } {
                None => start += 1,
                Some(Ok(range)) => {
                    found.push(hay.finding(range.start, self.pattern, range.len()));
                    start = range.end;
                }
                Some(Err(start)) => {
                    let offset = hay.offset + start as u64;
                    return Err(TooLong { pattern: self.pattern, offset });
                }
            }
        }
        Ok(start)
    }

    /// As `all_at`, but in one pass, for a regex whose matches are always short.
    fn all_in(&self, hay: &Haystack<'_>, starts: Range<usize>, found: &mut Vec<Finding>) -> usize {
        let mut from = starts.start;
        let end = hay.text.len().min(starts.end + self.length_bytes_max);
        while from < starts.end {
            match self.first_in(hay.text, from..end) {
                Some(range) if range.start < starts.end => {
                    from = range.end;
                    found.push(hay.finding(range.start, self.pattern, range.len()));
                }
                _ => return starts.end,
            }
        }
        from
    }
}

/// Describes the runs of a factor for display.
fn describe(runs: &[Run], offset_min: usize, offset_max: usize) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = runs.iter().take(SHOWN).map(show).collect();
    let more = match runs.len() {
        0..=SHOWN => String::new(),
        count => format!(" or {} more", count - SHOWN),
    };
    let place = match offset_max {
        max if max == offset_min => format!("{max} bytes from the start"),
        max => format!("{offset_min} to {max} bytes from the start"),
    };
    format!("{}{more}, {place}", shown.join(" or "))
}

/// Formats a run as a regex, shortened.
fn show(run: &Run) -> String {
    const BYTES: usize = 24;
    let mut text = String::new();
    let mut left = run.sets.as_slice();
    while let Some(set) = left.first() {
        let count = left.iter().take_while(|other| *other == set).count();
        text.push_str(&set.to_string());
        if count > 1 {
            text.push_str(&format!("{{{count}}}"));
        }
        left = &left[count..];
        if text.len() > BYTES && !left.is_empty() {
            text.push('…');
            break;
        }
    }
    text
}
