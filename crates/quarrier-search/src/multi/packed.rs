//! The packed filter with verification: from one needle to tens of thousands.

use std::ops::Range;

use quarrier_core::isa::Isa;

use super::assign::{Assignment, assign};
use super::dense::Dense;
use super::verify::Verifier;
use super::{BLOCK_BYTES, Haystack};
use crate::arch::{Packed, WIDTH_MAX, only_bytes};
use crate::error::Result;
use crate::finding::Finding;
use crate::pattern::Needles;
use crate::sample::Sample;
use crate::wanted::Wanted;

const WORDS: usize = BLOCK_BYTES / 64;

/// Cycles to filter 64 positions, by width 1, 2 … (Zen 4, see `arch::avx512`).
const FILTER_CYCLES: [f64; WIDTH_MAX] = [6.5, 6.5, 6.5, 7.0, 8.2, 9.6];
/// The same where bytes are compared: an estimate, since this loop waits for memory at any width.
const EQUAL_CYCLES: f64 = 3.5;
/// Cycles to verify a candidate, if the tables of anchors fit in the L1 cache, and if they do not: of some 6,000 anchors,
/// a quarter of the candidates meet a bucket that is not empty.
const CANDIDATE_CYCLES: f64 = 18.0;
const CANDIDATE_CYCLES_MANY: f64 = 45.0;
/// With more anchors, their tables do not fit.
const ANCHORS_NEAR: usize = 1024;

/// A packed filter, its tables of needles, and the expected share of positions that pass.
pub(crate) struct PackedEngine {
    filter: Packed,
    verifier: Verifier,
    dense: Option<Dense>,
    /// The greatest distance from a needle's start to its anchor.
    anchor_offset_max: usize,
    anchors: usize,
    pub(crate) isa: Isa,
    pub(crate) width: usize,
    /// Whether bytes are compared instead of looked up.
    compares: bool,
    /// Share of positions of the sample that pass the filter.
    pub(crate) passing: f64,
}

impl PackedEngine {
    /// Builds the best engine on `isa` for these needles: with the width that costs least on the
    /// sample. `None` if the CPU lacks the instruction set, or the set has no packed filter.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped)
    pub(crate) fn new(
        needles: &Needles,
        isa: Isa,
        sample: &Sample,
        wanted: Wanted<'_>,
    ) -> Result<Option<Self>> {
        if !isa.is_available() || isa == Isa::Portable || needles.is_empty() {
            return Ok(None);
        }
        let longest = needles.length_bytes_max().min(WIDTH_MAX);
        let widths = match needles.len() {
            0..=4 => 2..=4,
            5..=500 => 3..=WIDTH_MAX,
            _ => WIDTH_MAX..=WIDTH_MAX,
        };
        let mut engines = Vec::new();
        for width in widths.map(|width| width.min(longest)) {
            let assignment = assign(needles, width, sample, wanted)?;
            engines.extend(Self::of(needles, isa, &assignment, sample));
        }
        Ok(engines.into_iter().min_by(|a, b| a.cycles().total_cmp(&b.cycles())))
    }

    fn of(needles: &Needles, isa: Isa, assignment: &Assignment, sample: &Sample) -> Option<Self> {
        let offsets = assignment.anchors.iter().map(|anchor| anchor.offset as usize);
        let mut engine = PackedEngine {
            filter: Packed::new(isa, &assignment.sets)?,
            verifier: Verifier::new(needles, &assignment.anchors),
            dense: Dense::new(needles, &assignment.anchors),
            anchor_offset_max: offsets.max().unwrap_or(0),
            anchors: assignment.anchors.len(),
            isa,
            width: assignment.sets.len(),
            compares: only_bytes(&assignment.sets).is_some(),
            passing: 0.0,
        };
        engine.passing = engine.passing_share(sample.bytes());
        Some(engine)
    }

    /// Returns the expected cycles for 64 positions.
    pub(crate) fn cycles(&self) -> f64 {
        let candidate =
            if self.anchors > ANCHORS_NEAR { CANDIDATE_CYCLES_MANY } else { CANDIDATE_CYCLES };
        let filter = if self.compares { EQUAL_CYCLES } else { FILTER_CYCLES[self.width - 1] };
        filter + 64.0 * self.passing * candidate
    }

    fn passing_share(&self, text: &[u8]) -> f64 {
        let mut masks = [0u64; WORDS];
        let mut passed = 0u64;
        for from in (0..text.len()).step_by(BLOCK_BYTES) {
            self.filter.run(text, from, &mut masks);
            passed += masks.iter().map(|mask| u64::from(mask.count_ones())).sum::<u64>();
        }
        passed as f64 / text.len().max(1) as f64
    }

    /// Returns the greatest distance from a needle's start to its anchor.
    pub(crate) fn anchor_offset_max(&self) -> usize {
        self.anchor_offset_max
    }

    /// Adds all needles with an anchor in `positions` (at most [`BLOCK_BYTES`]).
    pub(crate) fn scan(
        &self,
        needles: &Needles,
        hay: &Haystack<'_>,
        positions: Range<usize>,
        found: &mut Vec<Finding>,
    ) {
        let mut masks = [0u64; WORDS];
        let words = positions.len().div_ceil(64).min(WORDS);
        let masks = &mut masks[..words];
        self.filter.run(hay.text, positions.start, masks);
        if let Some(last) = masks.last_mut()
            && !positions.len().is_multiple_of(64)
        {
            *last &= (1 << (positions.len() % 64)) - 1;
        }
        // Eight words at a time: in most data, most are empty.
        for (group, eight) in masks.chunks(8).enumerate() {
            if eight.iter().fold(0, |any, mask| any | mask) == 0 {
                continue;
            }
            for (index, &mask) in eight.iter().enumerate() {
                let base = positions.start + (group * 8 + index) * 64;
                if let Some(dense) = &self.dense
                    && dense.scan(hay, base, mask, found)
                {
                    continue;
                }
                let mut left = mask;
                while left != 0 {
                    let position = base + left.trailing_zeros() as usize;
                    left &= left - 1;
                    self.verifier.check(needles, hay, position, found);
                }
            }
        }
    }
}
