//! Mends broken files: searches for the place where each continues.

mod foreign;
mod gaps;
mod in_order;
mod indirect;
mod likeness;
mod marks;
mod pairs;
mod streams;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::claims::Claims;
pub(crate) use foreign::{text_sector, text_sectors};
pub(crate) use gaps::{Alien, Rest, without_gaps};
pub use in_order::{Reading, Step, in_order};
pub(crate) use indirect::{Listed, listed};
pub(crate) use likeness::{Gap, likely_gap};
pub(crate) use marks::Marks;
pub(crate) use pairs::{Whole, pairs};
pub(crate) use streams::streams;

use crate::view::Extent;

/// Fuel for all broken files together: a multiple of the carved bytes, and a minimum.
const SHARE_OF_SOURCE: u64 = 4;
const SHARED_BYTES: u64 = 8 << 30;
/// If fewer files than this are broken, each gets more fuel.
const FEW: u64 = 128;
/// Maximum factor by which the fuel grows.
const MORE_MAX: u64 = 16;
/// Minimum fuel in bytes for a search to find anything.
const FUEL_BYTES_MIN: u64 = 1 << 20;

/// The place where a candidate breaks; see [`Verdict::Broken`](crate::Verdict::Broken).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The bytes before this one certainly belong to the file.
    pub sure: u64,
    /// The byte at which the break was detected.
    pub at: u64,
}

/// The effort of the search for the rest of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effort {
    /// Maximum bytes to read for one file.
    pub fuel_bytes: u64,
    /// Maximum gap between two fragments, in bytes.
    pub gap_bytes_max: u64,
    /// Maximum distance in bytes from the actual end of a fragment to the byte at which the break was
    /// detected.
    pub back_bytes_max: u64,
    /// Maximum number of fragments.
    pub fragments_max: usize,
}

impl Effort {
    /// About a tenth of a second for each broken file; up to 16 times as long if few are broken.
    pub const NORMAL: Effort = Effort {
        fuel_bytes: 32 << 20,
        gap_bytes_max: 16 << 20,
        back_bytes_max: 1 << 20,
        fragments_max: 3,
    };

    /// Several seconds for each broken file.
    pub const THOROUGH: Effort = Effort {
        fuel_bytes: 4 << 30,
        gap_bytes_max: 4 << 30,
        back_bytes_max: 16 << 20,
        fragments_max: 6,
    };

    /// Returns the share of each of `count` broken files in `bytes` bytes of a source, and the
    /// number of files that get one. A disk has space for only so many files; further headers only
    /// waste time.
    pub(crate) fn shared(self, bytes: u64, count: u64) -> (Effort, u64) {
        let thorough = self.fuel_bytes / Self::NORMAL.fuel_bytes;
        let all = bytes.saturating_mul(SHARE_OF_SOURCE).saturating_add(SHARED_BYTES);
        let all = all.saturating_mul(thorough.max(1));
        let tried = count.min(all / FUEL_BYTES_MIN);
        let is_normal = self == Self::NORMAL;
        let more = if is_normal { (FEW / tried.max(1)).clamp(1, MORE_MAX) } else { 1 };
        let fuel_bytes = self.fuel_bytes.saturating_mul(more).min(all / tried.max(1));
        (Effort { fuel_bytes, ..self }, tried)
    }
}

/// The state of the source during mending, when all whole files have been found.
pub struct MendContext<'y> {
    /// Fragments begin at multiples of this many bytes from the file's own start.
    pub block_bytes: u64,
    /// The bytes of whole files.
    pub claims: &'y Claims,
    /// The effort to spend.
    pub effort: Effort,
    pub(crate) ranges: &'y [Range<u64>],
    pub(crate) stop: &'y AtomicBool,
    /// The ends of archives.
    pub(crate) archive_ends: Marks,
}

impl<'y> MendContext<'y> {
    /// Makes a context over `ranges` of the source, in order, for tests and for callers that mend
    /// files themselves.
    pub fn new(
        block_bytes: u64,
        claims: &'y Claims,
        effort: Effort,
        ranges: &'y [Range<u64>],
        stop: &'y AtomicBool,
    ) -> Self {
        let (block_bytes, archive_ends) = (block_bytes.max(1), Marks::new(b"PK\x05\x06"));
        MendContext { block_bytes, claims, effort, ranges, stop, archive_ends }
    }

    /// Returns whether the user has cancelled the run.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the places where a file interrupted at `offset` of the source may continue: later offsets that
    /// are multiples of the block size, nearest first, within the carved ranges, outside of whole files, and
    /// within the maximum gap.
    pub fn continuations(&self, offset: u64) -> impl Iterator<Item = u64> + '_ {
        let block = self.block_bytes;
        let end = offset.saturating_add(self.effort.gap_bytes_max);
        let mut at = offset;
        std::iter::from_fn(move || {
            loop {
                at = at.checked_add(block)?;
                let carved = self.next_carved(at)?;
                let free = self.claims.end_of(carved).unwrap_or(carved);
                if free == at {
                    return (at <= end).then_some(at);
                }
                // Step back to the last place of the grid before the free range, so that the next one is in
                // it.
                at += (free - at).div_ceil(block) * block - block;
                if at > end {
                    return None;
                }
            }
        })
    }

    /// Returns the extents of a file whose first `left_at` bytes are in `extents`, and which continues at
    /// `offset` to the end of the carved ranges.
    pub fn continued(&self, extents: &[Extent], left_at: u64, offset: u64) -> Vec<Extent> {
        let mut continued = crate::view::cut(extents, left_at);
        for range in self.ranges {
            let start = range.start.max(offset);
            if start < range.end {
                let more = Extent { offset: start, length: range.end - start };
                match continued.last_mut() {
                    Some(last) if last.end() == more.offset => last.length += more.length,
                    _ => continued.push(more),
                }
                if continued.len() > 256 {
                    break;
                }
            }
        }
        continued
    }

    /// Returns the source offset that byte `at` of the file would have if the file continued directly after
    /// its byte `at - 1`.
    pub fn left_offset(extents: &[Extent], at: u64) -> Option<u64> {
        let mut left = at;
        for extent in extents {
            if left <= extent.length {
                return Some(extent.offset + left);
            }
            left -= extent.length;
        }
        None
    }

    fn next_carved(&self, offset: u64) -> Option<u64> {
        let index = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.get(index).map(|range| range.start.max(offset))
    }
}
