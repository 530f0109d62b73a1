//! The part of a source that is carved.

use std::ops::Range;

use quarrier_core::ranges::merged;

use crate::view::Extent;

/// Maximum number of extents of a file; it is not followed further.
const EXTENTS_MAX: usize = 256;

/// The ranges to carve, and the maximum length of a file.
#[derive(Debug, Clone)]
pub(super) struct CarvedRanges {
    /// In order; none touch, and none are empty.
    ranges: Vec<Range<u64>>,
    /// The parts of `ranges` in which files that begin there continue, in order; `None` for all.
    clusters: Option<Vec<Range<u64>>>,
    file_bytes_max: u64,
}

impl CarvedRanges {
    pub(super) fn new(
        ranges: Vec<Range<u64>>,
        clusters: Option<Vec<Range<u64>>>,
        file_bytes_max: u64,
    ) -> Self {
        CarvedRanges { ranges: merged(ranges), clusters: clusters.map(merged), file_bytes_max }
    }

    /// Returns the ranges in which files continue.
    pub(super) fn clusters(&self) -> &[Range<u64>] {
        self.clusters.as_ref().unwrap_or(&self.ranges)
    }

    /// Whether the carved ranges contain all of `extents`.
    pub(super) fn hold_all(&self, extents: &[Extent]) -> bool {
        extents.iter().all(|extent| {
            let range = around(&self.ranges, extent.offset);
            range.is_some_and(|range| extent.end() <= range.end)
        })
    }

    /// Returns the total length of the carved ranges in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the range from the first byte to the end of the last range.
    pub(super) fn span(&self) -> Range<u64> {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// Returns the maximum length of a file in bytes.
    pub(super) fn file_bytes_max(&self) -> u64 {
        self.file_bytes_max
    }

    /// Returns the first carved byte at or after `offset`.
    pub(super) fn next(&self, offset: u64) -> Option<u64> {
        let index = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.get(index).map(|range| range.start.max(offset))
    }

    /// Returns the extents of a file that begins at `offset` and skips only bytes outside of the
    /// clusters. If `offset` is outside of the clusters, they are the rest of its range. Empty if
    /// `offset` is not carved.
    pub(super) fn extents_from(&self, offset: u64) -> Vec<Extent> {
        let clusters = self.clusters();
        let alone = around(&self.ranges, offset).filter(|_| around(clusters, offset).is_none());
        let ranges = alone.map_or(clusters, std::slice::from_ref);
        let index = ranges.partition_point(|range| range.end <= offset);
        let mut left = self.file_bytes_max;
        let mut extents = Vec::new();
        let mut from = offset;
        for range in ranges[index..].iter().take(EXTENTS_MAX) {
            if extents.is_empty() && range.start > offset {
                break;
            }
            from = from.max(range.start);
            let length = (range.end - from).min(left);
            if length == 0 {
                break;
            }
            extents.push(Extent { offset: from, length });
            left -= length;
        }
        extents
    }
}

/// Returns the range that contains `offset`, of `ranges` in order.
fn around(ranges: &[Range<u64>], offset: u64) -> Option<&Range<u64>> {
    let index = ranges.partition_point(|range| range.end <= offset);
    ranges.get(index).filter(|range| range.start <= offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_skips_bytes_that_are_not_carved() {
        let ranges = CarvedRanges::new(vec![100..200, 0..10, 150..300, 400..500], None, 230);
        let extent = |offset, length| Extent { offset, length };
        assert_eq!(ranges.extents_from(180), [extent(180, 120), extent(400, 100)]);
        assert_eq!(ranges.extents_from(100), [extent(100, 200), extent(400, 30)]);
        assert_eq!(ranges.extents_from(50), []);
        assert_eq!(ranges.extents_from(600), []);
        assert_eq!(ranges.next(20), Some(100));
        assert_eq!(ranges.bytes(), 310);
        assert!(ranges.hold_all(&[extent(100, 200), extent(0, 10)]));
        assert!(!ranges.hold_all(&[extent(290, 11)]) && !ranges.hold_all(&[extent(50, 1)]));
    }

    #[test]
    fn a_file_continues_in_clusters_and_not_in_slack() {
        // Clusters of 100 bytes; slack at 150..200 and 370..400.
        let carved = vec![0..100, 150..300, 370..400, 500..600];
        let clusters = Some(vec![0..100, 200..300, 500..600]);
        let ranges = CarvedRanges::new(carved, clusters, 1000);
        let extent = |offset, length| Extent { offset, length };
        assert_eq!(ranges.extents_from(20), [extent(20, 80), extent(200, 100), extent(500, 100)]);
        assert_eq!(ranges.extents_from(160), [extent(160, 140)]);
        assert_eq!(ranges.extents_from(380), [extent(380, 20)]);
        assert_eq!(ranges.extents_from(110), []);
        assert_eq!(ranges.bytes(), 380);
    }
}
