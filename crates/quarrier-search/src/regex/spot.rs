//! Finds the runs of all regexes in one pass.
//!
//! Runs with a few adjacent fixed bytes are needles of the engine for literals. Runs of classes
//! (`\d\d:\d\d`, 32 hexadecimal digits) have a separate packed filter, with the exact sets of six
//! of their bytes. Both are then compared byte by byte.

use std::collections::HashMap;
use std::ops::Range;

use quarrier_core::isa::Isa;

use super::byteset::{ByteSet, is_word_byte};
use super::factors::{FIXED_MIN, RUN_BYTES_MAX, Rates, Run};
use crate::arch::{ByteSets, Packed, WIDTH_MAX};
use crate::error::Result;
use crate::finding::Finding;
use crate::multi::{BLOCK_BYTES, Haystack};
use crate::pattern::Needles;
use crate::sample::Sample;
use crate::strategy::{EngineName, Literals, choose};
use crate::wanted::Wanted;

const WORDS: usize = BLOCK_BYTES / 64;
const BUCKETS: usize = 8;

/// Maximum number of adjacent fixed bytes of a needle. A needle with fewer than the filter's width
/// is extended to that width.
const NEEDLE_BYTES_MAX: usize = 32;

/// An occurrence of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub(super) at: usize,
    pub(super) run: u32,
}

/// Searches for runs.
pub(super) struct Spotter {
    runs: Vec<Run>,
    fixed: Option<Fixed>,
    classes: Option<Classes>,
    /// The greatest distance from a run's start that the filters examine.
    pub(super) reach: usize,
}

/// Runs with fixed bytes, as needles.
struct Fixed {
    needles: Needles,
    engine: Literals,
    /// For each needle, the runs that contain it, and its offset in them.
    users: Vec<Vec<(u32, usize)>>,
}

/// Runs of classes, found by a packed filter.
struct Classes {
    /// `None` if this CPU has no packed filter.
    filter: Option<Packed>,
    /// For each offset and byte value, the groups that allow it.
    groups: Vec<[u64; 256]>,
    entries: Vec<Vec<Entry>>,
}

/// Bits of the tables that distinguish candidates; if there are more runs, some share a bit.
const GROUPS: usize = 64;

/// A run, and the offset of the bytes that the filter sees.
#[derive(Clone, Copy)]
struct Entry {
    run: u32,
    skip: usize,
}

impl Spotter {
    /// Builds a spotter for these runs.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped)
    pub(super) fn new(
        runs: Vec<Run>,
        sample: &Sample,
        rates: &Rates<'_>,
        wanted: Wanted<'_>,
    ) -> Result<Self> {
        let mut fixed = Vec::new();
        let mut classes = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            match streak(&run.sets) {
                Some(place) => fixed.push((index as u32, place)),
                None => classes.push(index as u32),
            }
        }
        let fixed = Fixed::new(&runs, &fixed, sample, wanted)?;
        let classes = Classes::new(&runs, &classes, rates);
        Ok(Spotter { runs, fixed, classes, reach: RUN_BYTES_MAX })
    }

    /// Returns the name of the engine for runs with fixed bytes, for display.
    pub(super) fn engine(&self) -> &'static str {
        match self.fixed.as_ref().map(|fixed| &fixed.engine) {
            Some(Literals::Gram(_)) => "regex-gram",
            _ => "regex-packed",
        }
    }

    /// Adds the runs that the filters find in `positions` (at most [`BLOCK_BYTES`]). A run may
    /// start up to `reach` bytes before. `is_wanted` decides whether a run at a position is useful.
    pub(super) fn scan(
        &self,
        text: &[u8],
        positions: Range<usize>,
        found: &mut Vec<Finding>,
        is_wanted: impl Fn(u32, usize) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        if let Some(fixed) = &self.fixed {
            found.clear();
            let hay = Haystack { text, own: 0..text.len(), offset: 0 };
            fixed.engine.scan(&fixed.needles, &hay, positions.clone(), found);
            for needle in found.iter() {
                for &(run, lead) in &fixed.users[needle.pattern as usize] {
                    if let Some(at) = (needle.offset as usize).checked_sub(lead)
                        && is_wanted(run, at)
                        && occurs_at(&self.runs[run as usize], text, at)
                    {
                        hits.push(Hit { at, run });
                    }
                }
            }
        }
        if let Some(classes) = &self.classes {
            classes.scan(&self.runs, text, positions, is_wanted, hits);
        }
    }
}

/// Returns whether a run occurs at any of `places`. `probe` is the index of its rarest byte.
pub(super) fn occurs_in(run: &Run, probe: usize, text: &[u8], places: Range<usize>) -> bool {
    let set = &run.sets[probe];
    let (from, to) = (places.start + probe, text.len().min(places.end + probe));
    let Some(there) = text.get(from..to) else { return false };
    let mut at = places.start;
    while let Some(ahead) = there[at - places.start..].iter().position(|&byte| set.contains(byte)) {
        at += ahead;
        let differs = match differs_at(run, text, at) {
            None => return false,
            Some(None) if is_at_edges(run, text, at) => return true,
            Some(differs) => differs.unwrap_or(0),
        };
        // If no earlier set contains the mismatched byte, no start up to it can match.
        let byte = text[at + differs];
        let is_apart = run.sets[..differs].iter().all(|set| !set.contains(byte));
        at += if is_apart { differs + 1 } else { 1 };
        if at >= places.start + there.len() {
            return false;
        }
    }
    false
}

/// Returns the last byte at which the text differs from a run at `at`; `None` if the text ends
/// before.
#[inline]
fn differs_at(run: &Run, text: &[u8], at: usize) -> Option<Option<usize>> {
    let there = text.get(at..at + run.sets.len())?;
    Some(there.iter().zip(&run.sets).rposition(|(&byte, set)| !set.contains(byte)))
}

/// Whether a run occurs at `at`.
#[inline]
fn occurs_at(run: &Run, text: &[u8], at: usize) -> bool {
    // Compare the last bytes first: in a stretch shorter than the run, they differ.
    differs_at(run, text, at) == Some(None) && is_at_edges(run, text, at)
}

/// Whether the run at `at` is at word boundaries, if it begins or ends a word.
#[inline]
fn is_at_edges(run: &Run, text: &[u8], at: usize) -> bool {
    let end = at + run.sets.len();
    let is_word = |at: usize| text.get(at).is_some_and(|&byte| is_word_byte(byte));
    let begins_inside = run.begins_word && at.checked_sub(1).is_some_and(is_word);
    let ends_inside = run.ends_word && is_word(end);
    !begins_inside && !ends_inside
}

/// Returns the longest stretch of fixed bytes, if it is long enough for a needle.
fn streak(sets: &[ByteSet]) -> Option<Range<usize>> {
    let (mut best, mut start) = (0..0, 0);
    for (place, set) in sets.iter().enumerate() {
        if !set.is_fixed() {
            start = place + 1;
        } else if place + 1 - start > best.len() {
            best = start..place + 1;
        }
    }
    if best.len() < FIXED_MIN {
        return None;
    }
    best.end = best.end.min(best.start + NEEDLE_BYTES_MAX);
    best.end = best.end.max((best.start + WIDTH_MAX).min(sets.len()));
    best.start = best.start.min(best.end.saturating_sub(WIDTH_MAX));
    Some(best)
}

impl Fixed {
    fn new(
        runs: &[Run],
        places: &[(u32, Range<usize>)],
        sample: &Sample,
        wanted: Wanted<'_>,
    ) -> Result<Option<Self>> {
        let mut known: HashMap<(Vec<u8>, Vec<u8>), usize> = HashMap::new();
        let (mut needles, mut users) = (Needles::default(), Vec::new());
        for (run, place) in places {
            let covers = runs[*run as usize].sets[place.clone()].iter().map(ByteSet::cover);
            let (value, mask): (Vec<u8>, Vec<u8>) = covers.unzip();
            let index = match known.get(&(value.clone(), mask.clone())) {
                Some(&index) => index,
                None => {
                    needles.push(users.len() as u32, &value, &mask)?;
                    known.insert((value, mask), users.len());
                    users.push(Vec::new());
                    users.len() - 1
                }
            };
            users[index].push((*run, place.start));
        }
        if users.is_empty() {
            return Ok(None);
        }
        let (engine, _) = choose(&needles, EngineName::Auto, sample, wanted)?;
        Ok(Some(Fixed { needles, engine, users }))
    }
}

impl Classes {
    fn new(runs: &[Run], indexes: &[u32], rates: &Rates<'_>) -> Option<Self> {
        let width = indexes.iter().map(|&run| runs[run as usize].sets.len()).max()?.min(WIDTH_MAX);
        let mut entries: Vec<(f32, Entry)> = indexes
            .iter()
            .map(|&run| {
                let (_, window, skip) = rates.of_run(&runs[run as usize].sets);
                (window, Entry { run, skip })
            })
            .collect();
        entries.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut allowed = [[ByteSet::EMPTY; WIDTH_MAX]; BUCKETS];
        let mut passing = [0.0f32; BUCKETS];
        let mut groups: Vec<[u64; 256]> = vec![[0; 256]; width];
        let mut members: Vec<Vec<Entry>> = vec![Vec::new(); GROUPS.min(entries.len())];
        for (index, (_, entry)) in entries.into_iter().enumerate() {
            let sets = &runs[entry.run as usize].sets[entry.skip..];
            let set_at = |place: usize| sets.get(place).unwrap_or(&ByteSet::ALL);
            let joined = |bucket: usize| -> [ByteSet; WIDTH_MAX] {
                std::array::from_fn(|place| allowed[bucket][place].union(set_at(place)))
            };
            let (bucket, with, share) = (0..BUCKETS)
                .map(|bucket| {
                    let with = joined(bucket);
                    (bucket, with, rates.of(&with[..width]))
                })
                .min_by(|a, b| (a.2 - passing[a.0]).total_cmp(&(b.2 - passing[b.0])))?;
            (allowed[bucket], passing[bucket]) = (with, share);
            let group = index % members.len();
            for (place, table) in groups.iter_mut().enumerate() {
                set_at(place).iter().for_each(|byte| table[byte as usize] |= 1 << group);
            }
            members[group].push(entry);
        }
        let mut sets: Vec<ByteSets> = vec![[0; 256]; width];
        for (bucket, allowed) in allowed.iter().enumerate() {
            for (set, allowed) in sets.iter_mut().zip(allowed) {
                allowed.iter().for_each(|byte| set[byte as usize] |= 1 << bucket);
            }
        }
        let filter = Packed::new(Isa::best(), &sets);
        Some(Classes { filter, groups, entries: members })
    }

    fn scan(
        &self,
        runs: &[Run],
        text: &[u8],
        positions: Range<usize>,
        is_wanted: impl Fn(u32, usize) -> bool,
        hits: &mut Vec<Hit>,
    ) {
        let mut masks = [0u64; WORDS];
        let masks = &mut masks[..positions.len().div_ceil(64).min(WORDS)];
        match &self.filter {
            Some(filter) => filter.run(text, positions.start, masks),
            None => self.run_portably(text, &positions, masks),
        }
        for (word, &mask) in masks.iter().enumerate() {
            let mut left = mask;
            while left != 0 {
                let position = positions.start + word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if position >= positions.end {
                    return;
                }
                let mut groups = self.groups_at(text, position);
                while groups != 0 {
                    let group = groups.trailing_zeros() as usize;
                    groups &= groups - 1;
                    for entry in &self.entries[group] {
                        if let Some(at) = position.checked_sub(entry.skip)
                            && is_wanted(entry.run, at)
                            && occurs_at(&runs[entry.run as usize], text, at)
                        {
                            hits.push(Hit { at, run: entry.run });
                        }
                    }
                }
            }
        }
    }

    /// Returns the groups that allow the bytes at a position.
    #[inline]
    fn groups_at(&self, text: &[u8], position: usize) -> u64 {
        self.groups.iter().enumerate().fold(!0, |left, (place, table)| {
            // A run does not continue past the end of the text, but a shorter one may have ended
            // before.
            text.get(position + place).map_or(left, |&byte| left & table[byte as usize])
        })
    }

    fn run_portably(&self, text: &[u8], positions: &Range<usize>, masks: &mut [u64]) {
        for (word, mask) in masks.iter_mut().enumerate() {
            let first = positions.start + word * 64;
            let last = positions.end.min(first + 64);
            *mask = (first..last).fold(0, |mask, position| {
                mask | u64::from(self.groups_at(text, position) != 0) << (position - first)
            });
        }
    }
}
