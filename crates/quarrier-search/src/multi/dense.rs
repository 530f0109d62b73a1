//! A few short needles in data where most positions pass the filter, such as eight zeros in zeros.
//!
//! Verification takes some 30 cycles per candidate. If nearly every position is one, it is cheaper
//! to compare all 64 positions of a word with every byte of the needle.

use super::Haystack;
use super::verify::Anchor;
use crate::finding::Finding;
use crate::pattern::Needles;

/// With more anchors than this, or longer needles, candidates are verified individually.
const ANCHORS_MAX: usize = 4;
const NEEDLE_BYTES_MAX: usize = 16;
/// Words with fewer candidates than this are verified individually, too.
const CANDIDATES_MIN: u32 = 24;

const WORD: usize = 64;

#[derive(Debug)]
pub(super) struct Dense {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    value: Vec<u8>,
    mask: Vec<u8>,
    pattern: u32,
    anchor_offset: usize,
}

impl Dense {
    /// Returns `None` if there are too many needles, or they are too long.
    pub(super) fn new(needles: &Needles, anchors: &[Anchor]) -> Option<Self> {
        let longest = needles.length_bytes_max();
        if anchors.len() > ANCHORS_MAX || longest > NEEDLE_BYTES_MAX {
            return None;
        }
        let entry = |anchor: &Anchor| {
            let needle = needles.get(anchor.needle as usize);
            Entry {
                value: needle.value.to_vec(),
                mask: needle.mask.to_vec(),
                pattern: needle.pattern,
                anchor_offset: anchor.offset as usize,
            }
        };
        Some(Dense { entries: anchors.iter().map(entry).collect() })
    }

    /// Adds all needles that have an anchor at one of the 64 positions from `base` on whose bit in
    /// `candidates` is set. Returns false, without adding any, if there are too few candidates.
    pub(super) fn scan(
        &self,
        hay: &Haystack<'_>,
        base: usize,
        candidates: u64,
        found: &mut Vec<Finding>,
    ) -> bool {
        if candidates.count_ones() < CANDIDATES_MIN {
            return false;
        }
        let mut matches = [0u64; ANCHORS_MAX];
        for (entry, matches) in self.entries.iter().zip(&mut matches) {
            let Some(first) = base.checked_sub(entry.anchor_offset) else { return false };
            let is_owned = hay.own.start <= first && first + WORD <= hay.own.end;
            let Some(text) = hay.text.get(first..first + WORD + entry.value.len()) else {
                return false;
            };
            if !is_owned {
                return false;
            }
            *matches = entry.matches(text) & candidates;
        }
        found.reserve(WORD * self.entries.len());
        for (entry, &matches) in self.entries.iter().zip(&matches) {
            let offset = hay.offset + (base - entry.anchor_offset) as u64;
            let (pattern, length) = (entry.pattern, entry.value.len() as u32);
            if matches == u64::MAX {
                let all = offset..offset + WORD as u64;
                found.extend(all.map(|offset| Finding { offset, pattern, length }));
                continue;
            }
            let mut left = matches;
            while left != 0 {
                let offset = offset + u64::from(left.trailing_zeros());
                found.push(Finding { offset, pattern, length });
                left &= left - 1;
            }
        }
        true
    }
}

impl Entry {
    /// Returns a mask of the first 64 positions of `text` at which the needle matches.
    fn matches(&self, text: &[u8]) -> u64 {
        let mut differs = [0u8; WORD];
        for (shift, (&value, &mask)) in self.value.iter().zip(&self.mask).enumerate() {
            let there = &text[shift..shift + WORD];
            differs.iter_mut().zip(there).for_each(|(d, &byte)| *d |= (byte ^ value) & mask);
        }
        differs.iter().enumerate().fold(0, |bits, (at, &d)| bits | u64::from(d == 0) << at)
    }
}
