//! The part of a source that is carved.

use std::ops::Range;

use crate::view::Extent;

/// A file that is spread over more ranges than this is not followed further.
const EXTENTS_MAX: usize = 256;

/// The ranges to carve, and the maximum length of a file.
#[derive(Debug, Clone)]
pub(super) struct CarvedRanges {
    /// In order, not touching each other, not empty.
    ranges: Vec<Range<u64>>,
    file_bytes_max: u64,
}

impl CarvedRanges {
    pub(super) fn new(mut ranges: Vec<Range<u64>>, file_bytes_max: u64) -> Self {
        ranges.retain(|range| range.start < range.end);
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        CarvedRanges { ranges: joined, file_bytes_max }
    }

    pub(super) fn as_slice(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// How many bytes are carved.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// From the first byte to the end of the last range.
    pub(super) fn span(&self) -> Range<u64> {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// How long a file may be, in bytes.
    pub(super) fn file_bytes_max(&self) -> u64 {
        self.file_bytes_max
    }

    /// The first carved byte at or after `offset`.
    pub(super) fn next(&self, offset: u64) -> Option<u64> {
        let index = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.get(index).map(|range| range.start.max(offset))
    }

    /// The places of a file that begins at `offset` and skips only bytes outside of the carved ranges.
    /// Empty if `offset` is outside.
    pub(super) fn extents_from(&self, offset: u64) -> Vec<Extent> {
        let index = self.ranges.partition_point(|range| range.end <= offset);
        let mut left = self.file_bytes_max;
        let mut extents = Vec::new();
        let mut from = offset;
        for range in self.ranges[index..].iter().take(EXTENTS_MAX) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_leaves_out_what_is_not_carved() {
        let ranges = CarvedRanges::new(vec![100..200, 0..10, 150..300, 400..500], 230);
        let extent = |offset, length| Extent { offset, length };
        assert_eq!(ranges.extents_from(180), [extent(180, 120), extent(400, 100)]);
        assert_eq!(ranges.extents_from(100), [extent(100, 200), extent(400, 30)]);
        assert_eq!(ranges.extents_from(50), []);
        assert_eq!(ranges.extents_from(600), []);
        assert_eq!(ranges.next(20), Some(100));
        assert_eq!(ranges.bytes(), 310);
    }
}
