//! Finds the place of a gap in a file by the distribution of bytes, for content without a
//! structure.

use crate::view::View;

/// The gap between two fragments. Only its length is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The earliest start, in bytes of the view; the bytes before it belong to the file.
    pub(crate) first: u64,
    /// The latest start.
    pub(crate) last: u64,
    /// Its length.
    pub(crate) bytes: u64,
}

/// Maximum number of bytes on each side that represent the file.
const KNOWN_BYTES_MAX: u64 = 4096;
/// Minimum number of bytes for a comparison.
const KNOWN_BYTES_MIN: u64 = 256;
/// Maximum number of blocks to compare.
const BLOCKS_MAX: u64 = 4096;
/// The most similar block of the gap must be less similar to the file than the least similar block
/// of the file, by this factor and this difference.
const MARGIN: (f32, f32) = (1.3, 0.06);

/// Returns the start of the gap, if all of its blocks differ from the file, and all others resemble
/// it. The content that continues across the gap begins at `known_from.start`, and ends after the
/// gap at `known_to`.
pub(crate) fn likely_gap(
    view: &mut View<'_>,
    gap: Gap,
    known: std::ops::Range<u64>,
    block: u64,
) -> Option<u64> {
    let end = gap.last.checked_add(gap.bytes)?;
    let count = (end - gap.first) / block;
    if count > BLOCKS_MAX || known.start > gap.first || known.end < end {
        return None;
    }
    let before = known.start.max(gap.first.saturating_sub(KNOWN_BYTES_MAX))..gap.first;
    let after = end..known.end.min(end + KNOWN_BYTES_MAX);
    let mut samples = Vec::new();
    for range in [before, after] {
        if range.end - range.start >= KNOWN_BYTES_MIN {
            samples.push(shares(view, range)?);
        }
    }
    if samples.is_empty() {
        return None;
    }
    let mut unlike = Vec::with_capacity(count as usize);
    for index in 0..count {
        let from = gap.first + index * block;
        let block = shares(view, from..from + block)?;
        let nearest = samples.iter().map(|sample| difference(sample, &block));
        unlike.push(nearest.fold(f32::MAX, f32::min));
    }
    let gap_blocks = (gap.bytes / block) as usize;
    let places = 0..=unlike.len().checked_sub(gap_blocks)?;
    let place = places.into_iter().find(|start| stands_out(&unlike, *start, gap_blocks))?;
    Some(gap.first + place as u64 * block)
}

fn stands_out(unlike: &[f32], start: usize, blocks: usize) -> bool {
    let inside = &unlike[start..start + blocks];
    let outside = unlike[..start].iter().chain(&unlike[start + blocks..]);
    let most = outside.fold(0.0, |most: f32, value| most.max(*value));
    inside.iter().all(|value| *value > most * MARGIN.0 + MARGIN.1)
}

/// Returns the frequency of each byte value; the sum is 1.
fn shares(view: &mut View<'_>, range: std::ops::Range<u64>) -> Option<[f32; 256]> {
    let mut counts = [0u32; 256];
    let seen = view.each(range.clone(), |bytes| {
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    });
    (seen == range.end - range.start).then(|| counts.map(|count| count as f32 / seen as f32))
}

/// Returns 0 if both are equal, and 1 if they have no byte in common.
fn difference(one: &[f32; 256], other: &[f32; 256]) -> f32 {
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).sum::<f32>() / 2.0
}
