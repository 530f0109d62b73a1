//! The gram filter: hashes a window of 1, 2 or 4 bytes at every s-th position and looks it up in a
//! bitmap. Portable, and equally fast for any number of needles; with AVX-512, 16 windows at a time.
//!
//! Wherever a needle of at least `s + 3` bytes begins, one of its 4-byte windows starts at a
//! multiple of s, so the engine examines only every s-th position. Each needle is entered s times:
//! once for each remainder, by its rarest window.

use std::ops::Range;

use super::assign::anchors_by_residue;
use super::verify::{Anchor, HASH_ADD, HASH_FACTOR, Verifier, fold_of, hash, key_bytes};
use super::{Haystack, verify};
use crate::arch::WindowSet;
use crate::error::Result;
use crate::finding::Finding;
use crate::pattern::{Needle, Needles};
use crate::sample::Sample;
use crate::wanted::Wanted;

/// A group of needles that share window and stride.
struct Group {
    key_mask: u32,
    stride: usize,
    /// A blocked Bloom filter: each window sets two bits of one 32-bit word.
    bitmap: Vec<u32>,
    shift: u32,
    verifier: Verifier,
    anchor_offset_max: usize,
    needles: usize,
}

/// Positions that the CPU looks up at a time.
const WORD: usize = 64;
/// Cycles to look up a window, one at a time and by lanes (Sapphire Rapids, see `arch::gather`).
const WINDOW_CYCLES: f64 = 4.0;
const WINDOW_CYCLES_LANES: f64 = 2.5;

/// All groups, and the needles that fit none.
pub(crate) struct GramEngine {
    groups: Vec<Group>,
    fold: u32,
    /// Needles without a single fixed byte: compared at every position.
    loose: Vec<u32>,
}

/// Windows more frequent than this in the sample do not serve as anchors at a stride. A needle with
/// such a window goes to a group that examines every position and needs only one rare window.
const FREQUENT: f32 = 1.0 / 512.0;

impl GramEngine {
    /// Builds the engine for these needles.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped)
    pub(crate) fn new(needles: &Needles, sample: &Sample, wanted: Wanted<'_>) -> Result<Self> {
        let fold = fold_of(needles);
        let rarity = GramRarity::new(sample, fold);
        let mut sorted: Vec<(usize, usize, Vec<Anchor>)> =
            vec![(4, 4, Vec::new()), (4, 1, Vec::new()), (2, 1, Vec::new()), (1, 1, Vec::new())];
        let mut counts = [0usize; 4];
        let mut loose = Vec::new();
        for (index, needle) in needles.iter().enumerate() {
            wanted.check()?;
            match place(needle, fold, &rarity) {
                Some((group, offsets)) => {
                    let needle = index as u32;
                    counts[group] += 1;
                    sorted[group].2.extend(offsets.iter().map(|&offset| Anchor { needle, offset }));
                }
                None => loose.push(index as u32),
            }
        }
        let mut groups = Vec::new();
        for ((bytes, stride, anchors), count) in sorted.into_iter().zip(counts) {
            wanted.check()?;
            if !anchors.is_empty() {
                groups.push(Group::new(needles, &anchors, bytes, stride, count, fold));
            }
        }
        Ok(GramEngine { groups, fold, loose })
    }

    /// Returns the greatest distance from a needle's start to its anchor.
    pub(crate) fn anchor_offset_max(&self) -> usize {
        self.groups.iter().map(|group| group.anchor_offset_max).max().unwrap_or(0)
    }

    /// Describes the groups for display.
    pub(crate) fn describe(&self) -> String {
        let mut parts: Vec<String> = self
            .groups
            .iter()
            .map(|g| {
                let bytes = g.key_mask.count_ones() / 8;
                format!("{} by {bytes}-byte windows at every {} byte(s)", g.needles, g.stride)
            })
            .collect();
        if !self.loose.is_empty() {
            parts.push(format!("{} without a fixed byte, compared everywhere", self.loose.len()));
        }
        parts.join("; ")
    }

    /// Returns the expected cycles for 64 positions, from the windows of the sample that pass.
    pub(crate) fn cycles(&self, sample: &Sample) -> f64 {
        let text = sample.bytes();
        let by_lanes = WindowSet::is_available();
        let window = if by_lanes { WINDOW_CYCLES_LANES } else { WINDOW_CYCLES };
        let mut cycles = 0.0;
        for group in &self.groups {
            let mut passed = 0u32;
            for position in (0..text.len()).step_by(group.stride) {
                let key = verify::load_word(&text[position..]) as u32 & self.fold & group.key_mask;
                passed += u32::from(group.may_hold(hash(key)));
            }
            let share = f64::from(passed) / text.len().max(1) as f64;
            cycles += 64.0 * (window / group.stride as f64 + share * 18.0);
        }
        cycles + 64.0 * 4.0 * self.loose.len() as f64
    }

    /// Adds all needles with an anchor in `positions`.
    pub(crate) fn scan(
        &self,
        needles: &Needles,
        hay: &Haystack<'_>,
        positions: Range<usize>,
        found: &mut Vec<Finding>,
    ) {
        for group in &self.groups {
            group.scan(needles, hay, positions.clone(), self.fold, found);
        }
        for &index in &self.loose {
            let needle = needles.get(index as usize);
            for start in positions.clone() {
                if hay.own.contains(&start)
                    && let Some(there) = hay.text.get(start..start + needle.len())
                    && needle.matches(there)
                {
                    found.push(hay.finding(start, needle.pattern, needle.len()));
                }
            }
        }
    }
}

/// Returns the group of a needle and its anchors, or `None` without a fixed byte.
fn place(needle: Needle<'_>, fold: u32, rarity: &GramRarity) -> Option<(usize, Vec<u32>)> {
    let rate = |window: &[u8]| rarity.of(window);
    if let Some(offsets) = anchors_by_residue(needle, 4, 4, fold, rate)
        && offsets.iter().all(|&at| rate(&needle.value[at as usize..at as usize + 4]) < FREQUENT)
    {
        return Some((0, offsets));
    }
    [(1, 4), (2, 2), (3, 1)].into_iter().find_map(|(group, bytes)| {
        anchors_by_residue(needle, 1, bytes, fold, rate).map(|offsets| (group, offsets))
    })
}

impl Group {
    fn new(
        needles: &Needles,
        anchors: &[Anchor],
        bytes: usize,
        stride: usize,
        count: usize,
        fold: u32,
    ) -> Self {
        let key_mask = match bytes {
            4 => !0,
            2 => 0xFFFF,
            _ => 0xFF,
        };
        // At least 16 bits per window, at least 8 KiB, at most 8 MiB.
        let bits = (anchors.len() / 2).next_power_of_two().trailing_zeros().clamp(11, 21);
        let mut bitmap = vec![0u32; 1 << bits];
        let shift = 32 - bits;
        for anchor in anchors {
            let value = &needles.get(anchor.needle as usize).value[anchor.offset as usize..];
            debug_assert!(
                key_bytes(
                    &needles.get(anchor.needle as usize).mask[anchor.offset as usize..],
                    fold
                ) >= bytes
            );
            let hash =
                hash(verify::load_word(&value[..value.len().min(8)]) as u32 & fold & key_mask);
            bitmap[(hash >> shift) as usize] |= bits_of(hash, shift);
        }
        let offsets = anchors.iter().map(|anchor| anchor.offset as usize);
        Group {
            key_mask,
            stride,
            bitmap,
            shift,
            verifier: Verifier::new(needles, anchors),
            anchor_offset_max: offsets.max().unwrap_or(0),
            needles: count,
        }
    }

    #[inline(always)]
    fn may_hold(&self, hash: u32) -> bool {
        let word = self.bitmap[(hash >> self.shift) as usize];
        let (first, second) = (hash >> (self.shift - 5), hash >> (self.shift - 10));
        (word >> (first & 31)) & (word >> (second & 31)) & 1 != 0
    }

    /// Adds the needles with an anchor from `position` on, 64 positions at a time, if the CPU can. Returns the first
    /// position that is left.
    fn scan_lanes(
        &self,
        needles: &Needles,
        hay: &Haystack<'_>,
        mut position: usize,
        end: usize,
        key_mask: u32,
        found: &mut Vec<Finding>,
    ) -> usize {
        let set = WindowSet::new(&self.bitmap, self.shift, key_mask, HASH_ADD, HASH_FACTOR);
        let Some(set) = set else { return position };
        let mut masks = [0u64; 256];
        while position + WORD <= end && position + WindowSet::BYTES <= hay.text.len() {
            let last = end.min(hay.text.len() + WORD - WindowSet::BYTES);
            let words = ((last - position) / WORD).min(masks.len());
            let masks = &mut masks[..words];
            for (word, mask) in masks.iter_mut().enumerate() {
                *mask = set.may_have(hay.text, position + word * WORD, self.stride);
            }
            for (word, mask) in masks.iter().enumerate() {
                let mut left = *mask;
                while left != 0 {
                    let at = position + word * WORD + left.trailing_zeros() as usize;
                    left &= left - 1;
                    self.verifier.check(needles, hay, at, found);
                }
            }
            position += words * WORD;
        }
        position
    }

    fn scan(
        &self,
        needles: &Needles,
        hay: &Haystack<'_>,
        positions: Range<usize>,
        fold: u32,
        found: &mut Vec<Finding>,
    ) {
        let key_mask = fold & self.key_mask;
        // Multiples of the stride, counted from the start of the text.
        let mut position = positions.start.next_multiple_of(self.stride);
        let bulk_end = positions.end.min(hay.text.len().saturating_sub(7));
        position = self.scan_lanes(needles, hay, position, bulk_end, key_mask, found);
        // Collect hits first and verify them later, so that the loop has no branch that depends on
        // the data.
        let mut hits = [0u32; 1024];
        while position < bulk_end {
            let base = position;
            let steps = ((bulk_end - position).div_ceil(self.stride)).min(hits.len());
            let mut count = 0;
            for step in 0..steps {
                let at = base + step * self.stride;
                let window = &hay.text[at..at + 4];
                let key = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
                hits[count] = (at - base) as u32;
                count += usize::from(self.may_hold(hash(key & key_mask)));
            }
            position = base + steps * self.stride;
            for &hit in &hits[..count] {
                self.verifier.check(needles, hay, base + hit as usize, found);
            }
        }
        while position < positions.end.min(hay.text.len()) {
            self.verifier.check(needles, hay, position, found);
            position += self.stride;
        }
    }
}

/// Returns the two bits of a word that represent a hash. They are just below the bits that choose
/// the word, since the lowest bits of a product depend only on the lowest bits of the key.
fn bits_of(hash: u32, shift: u32) -> u32 {
    1 << (hash >> (shift - 5) & 31) | 1 << (hash >> (shift - 10) & 31)
}

/// The frequency of a window: counted in the sample, or estimated from its bytes.
pub(crate) struct GramRarity<'s> {
    sample: &'s Sample,
    counts: Vec<u16>,
    fold: u32,
}

impl<'s> GramRarity<'s> {
    const BITS: u32 = 16;

    pub(crate) fn new(sample: &'s Sample, fold: u32) -> Self {
        let mut counts = vec![0u16; 1 << Self::BITS];
        for window in sample.bytes().windows(4) {
            let key = u32::from_le_bytes([window[0], window[1], window[2], window[3]]) & fold;
            let count = &mut counts[(hash(key) >> (32 - Self::BITS)) as usize];
            *count = count.saturating_add(1);
        }
        GramRarity { sample, counts, fold }
    }

    pub(crate) fn of(&self, window: &[u8]) -> f32 {
        let mut product = self.sample.share;
        for &byte in window {
            let frequency = &self.sample.frequency[byte as usize];
            product.iter_mut().zip(frequency).for_each(|(p, f)| *p *= f);
        }
        let expected: f32 = product.iter().sum();
        let counted = window.first_chunk::<4>().map_or(0.0, |window| {
            let key = u32::from_le_bytes(*window) & self.fold;
            let count = self.counts[(hash(key) >> (32 - Self::BITS)) as usize];
            f32::from(count) / self.sample.bytes().len().max(1) as f32
        });
        expected + counted
    }
}
