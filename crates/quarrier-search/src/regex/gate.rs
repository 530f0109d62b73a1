//! Several regexes behind one packed filter: it finds where a run that every match contains
//! may stand; only there are the automata run, anchored at each start that the run allows.

use std::ops::Range;

use quarrier_core::isa::Isa;

use super::window::{ByteSet, Window};
use super::{BoundedRegex, TooLong};
use crate::arch::{ByteSets, Packed, WIDTH_MAX};
use crate::error::Result;
use crate::finding::Finding;
use crate::multi::{BLOCK_BYTES, Haystack};
use crate::sample::{KINDS, PerKind, Sample};
use crate::wanted::Wanted;

const WORDS: usize = BLOCK_BYTES / 64;

/// A run that lets through more than this is no gain over the automaton.
const PASSING_MAX: f32 = 0.004;

/// A failed try costs at most as many steps as a match may have bytes; past this length the
/// automaton is preferred after fewer tries.
const LONG_BYTES: usize = 4096;

/// Where a regex begins whose search has ended: nowhere.
const NOWHERE: usize = usize::MAX;

/// Nor is a gate that lets through more than this, all regexes together.
const PASSING_TOGETHER_MAX: f32 = 0.02;

/// The filter and what stands behind it.
pub(crate) struct Gate {
    filter: Packed,
    sets: Vec<ByteSets>,
    gated: Vec<Gated>,
    /// The furthest that a run lies behind its match's start.
    pub(crate) reach: usize,
}

/// Where a regex behind the gate may begin, and how often it has tried in this block.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    from: usize,
    tries: u32,
}

/// A regex behind the gate: its place in the list of all, its run, its bucket.
struct Gated {
    index: usize,
    window: Window,
    bucket: u8,
}

impl Gate {
    /// A gate for those of `regexes` that have a rare run, or `None` where none has or the CPU
    /// has no packed filter.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped)
    pub(crate) fn new(
        regexes: &[BoundedRegex],
        sample: &Sample,
        wanted: Wanted<'_>,
    ) -> Result<Option<Self>> {
        let isa = Isa::best();
        let mut gated = Vec::new();
        if isa == Isa::Portable {
            return Ok(None);
        }
        for (index, regex) in regexes.iter().enumerate() {
            wanted.check()?;
            if let Some(window) = rarest(regex, sample) {
                gated.push(Gated { index, window, bucket: 1 << (gated.len() % 8) });
            }
        }
        Ok(Self::before(isa, gated, sample))
    }

    /// A gate for these, where it lets through little enough.
    fn before(isa: Isa, gated: Vec<Gated>, sample: &Sample) -> Option<Self> {
        let width = gated.iter().map(|g| g.window.sets.len()).max()?;
        let mut sets: Vec<ByteSets> = vec![[0; 256]; width];
        for regex in &gated {
            for (place, set) in sets.iter_mut().enumerate() {
                let allowed = regex.window.sets.get(place).unwrap_or(&ByteSet::ALL);
                for byte in (0..=255u8).filter(|&byte| allowed.contains(byte)) {
                    set[byte as usize] |= regex.bucket;
                }
            }
        }
        let reach = gated.iter().map(|g| g.window.offset_max).max()?;
        let gate = Gate { filter: Packed::new(isa, &sets)?, sets, gated, reach };
        (gate.passing_share(sample.bytes()) <= PASSING_TOGETHER_MAX).then_some(gate)
    }

    /// The share of positions that pass the filter in fact.
    fn passing_share(&self, text: &[u8]) -> f32 {
        let mut masks = [0u64; WORDS];
        let mut passed = 0u64;
        for from in (0..text.len()).step_by(BLOCK_BYTES) {
            self.filter.run(text, from, &mut masks);
            passed += masks.iter().map(|mask| u64::from(mask.count_ones())).sum::<u64>();
        }
        passed as f32 / text.len().max(1) as f32
    }

    /// Whether regex number `index` stands behind the gate.
    pub(crate) fn holds(&self, index: usize) -> bool {
        self.gated.iter().any(|gated| gated.index == index)
    }

    /// How many regexes stand behind the gate.
    pub(crate) fn count(&self) -> usize {
        self.gated.len()
    }

    /// Where each regex begins to search: one place for each, to be kept between blocks.
    pub(crate) fn start(&self, from: usize) -> Vec<Start> {
        vec![Start { from, tries: 0 }; self.gated.len()]
    }

    /// Where a regex goes on by its automaton alone, if it has tried so many starts in one
    /// block that the gate is no gain: data that is all runs, or made to be.
    pub(crate) fn gives_up(
        &self,
        regexes: &[BoundedRegex],
        starts: &mut [Start],
    ) -> Vec<(usize, usize)> {
        let mut given_up = Vec::new();
        for (gated, start) in self.gated.iter().zip(starts) {
            let most = if regexes[gated.index].length_bytes_max > LONG_BYTES { 16 } else { 2048 };
            if start.tries > most && start.from != NOWHERE {
                given_up.push((gated.index, start.from));
                start.from = NOWHERE;
            }
            start.tries = 0;
        }
        given_up
    }

    /// Adds all matches whose run begins in `positions` (at most [`BLOCK_BYTES`]) and whose
    /// first byte is owned. `starts` say where each regex may begin, and move on; a match
    /// that is too long ends the search for its regex.
    pub(crate) fn scan(
        &self,
        regexes: &[BoundedRegex],
        hay: &Haystack<'_>,
        positions: Range<usize>,
        starts: &mut [Start],
        found: &mut Vec<Finding>,
        too_long: &mut Vec<TooLong>,
    ) {
        let text = hay.text;
        let mut masks = [0u64; WORDS];
        let words = positions.len().div_ceil(64).min(WORDS);
        self.filter.run(text, positions.start, &mut masks[..words]);
        for (word, &mask) in masks[..words].iter().enumerate() {
            let mut left = mask;
            while left != 0 {
                let position = positions.start + word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if position >= positions.end {
                    return;
                }
                let buckets = self.buckets(text, position);
                for (gated, start) in self.gated.iter().zip(&mut *starts) {
                    if gated.bucket & buckets != 0 && gated.stands_at(text, position) {
                        let regex = &regexes[gated.index];
                        let ran = gated.run(regex, hay, position, start, found);
                        if let Err(end) = ran {
                            too_long.push(end);
                            start.from = NOWHERE;
                        }
                    }
                }
            }
        }
    }

    /// The buckets that pass at a position, exactly.
    fn buckets(&self, text: &[u8], position: usize) -> u8 {
        self.sets.iter().enumerate().fold(!0, |left, (place, set)| {
            // Past the text's end no run can go on, but a shorter one may have ended.
            text.get(position + place).map_or(left, |&byte| left & set[byte as usize])
        })
    }
}

impl Gated {
    fn stands_at(&self, text: &[u8], position: usize) -> bool {
        text.get(position..position + self.window.sets.len())
            .is_some_and(|run| run.iter().zip(&self.window.sets).all(|(&b, set)| set.contains(b)))
    }

    /// Runs the automaton at each start that a run at `position` allows.
    fn run(
        &self,
        regex: &BoundedRegex,
        hay: &Haystack<'_>,
        position: usize,
        begin: &mut Start,
        found: &mut Vec<Finding>,
    ) -> std::result::Result<(), TooLong> {
        let Some(last) = position.checked_sub(self.window.offset_min) else { return Ok(()) };
        let mut start = begin.from.max(position.saturating_sub(self.window.offset_max));
        while start <= last && start < hay.own.end {
            let is_first = hay.text.get(start).is_some_and(|&byte| regex.first.contains(byte));
            begin.tries += u32::from(is_first);
            match if is_first { regex.at(hay.text, start) } else { None } {
                None => start += 1,
                Some(Ok(range)) => {
                    found.push(hay.finding(range.start, regex.pattern, range.len()));
                    start = range.end;
                }
                Some(Err(start)) => {
                    let offset = hay.offset + start as u64;
                    return Err(TooLong { pattern: regex.pattern, offset });
                }
            }
        }
        begin.from = start.max(begin.from);
        Ok(())
    }
}

/// The part of a regex's runs that costs least: rare, and certain of its place.
fn rarest(regex: &BoundedRegex, sample: &Sample) -> Option<Window> {
    let mut best: Option<(f32, Window)> = None;
    for window in &regex.windows {
        for skip in 0..window.sets.len() {
            let sets = &window.sets[skip..window.sets.len().min(skip + WIDTH_MAX)];
            let starts = (window.offset_max - window.offset_min + 1) as f32;
            let passing = passing(sets, sample);
            let cost = passing * starts.min(16.0);
            if passing <= PASSING_MAX && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                let window = Window {
                    sets: sets.to_vec(),
                    offset_min: window.offset_min + skip,
                    offset_max: window.offset_max + skip,
                };
                best = Some((cost, window));
            }
        }
    }
    best.map(|(_, window)| window)
}

/// The expected share of positions where the run stands.
fn passing(sets: &[ByteSet], sample: &Sample) -> f32 {
    let mut product: PerKind = sample.share;
    for set in sets {
        let mut sum = [0.0; KINDS];
        for byte in (0..=255u8).filter(|&byte| set.contains(byte)) {
            let frequency = &sample.frequency[byte as usize];
            sum.iter_mut().zip(frequency).for_each(|(s, f)| *s += f);
        }
        product.iter_mut().zip(sum).for_each(|(p, s)| *p *= s);
    }
    product.iter().sum()
}
