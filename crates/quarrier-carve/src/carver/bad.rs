//! The unreadable ranges of a source.

use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of ranges to remember: a source with more is nearly unreadable.
const RANGES_MAX: usize = 1 << 16;

/// Ranges that could not be read: the end of each by its start. The ranges do not touch.
#[derive(Debug, Default)]
pub(super) struct Bad(BTreeMap<u64, u64>);

impl Bad {
    /// Returns the first range that overlaps `range`.
    pub(super) fn within(&self, range: Range<u64>) -> Option<Range<u64>> {
        let before = self.0.range(..=range.start).next_back();
        let mut near = before.into_iter().chain(self.0.range(range.clone()));
        near.find(|(_, end)| **end > range.start).map(|(start, end)| *start..*end)
    }

    /// Adds a range that touches none after it, unless there are too many. Returns whether it did.
    pub(super) fn add(&mut self, range: Range<u64>) -> bool {
        if let Some((_, end)) = self.0.range_mut(..=range.start).next_back()
            && *end >= range.start
        {
            *end = range.end.max(*end);
            return true;
        }
        let has_room = self.0.len() < RANGES_MAX;
        if has_room {
            self.0.insert(range.start, range.end);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_added_ranges_are_found() {
        let mut bad = Bad::default();
        for start in [1024, 512, 4096, 1536, 4096] {
            assert!(bad.add(start..start + 512));
        }
        for (range, found) in [
            (0..512, None),
            (0..513, Some(512..1024)),
            (1023..1024, Some(512..1024)),
            (1024..1025, Some(1024..2048)),
            (2047..4096, Some(1024..2048)),
            (2048..4096, None),
            (2048..4097, Some(4096..4608)),
            (4608..u64::MAX, None),
        ] {
            assert_eq!(bad.within(range.clone()), found, "{range:?}");
        }
    }

    #[test]
    fn no_more_is_remembered_than_may_be() {
        let mut bad = Bad::default();
        let ranges = RANGES_MAX as u64;
        assert!((0..ranges).all(|at| bad.add(2 * at..2 * at + 1)));
        assert!(!bad.add(2 * ranges..2 * ranges + 1));
        assert!(bad.add(2 * ranges - 1..2 * ranges), "an adjacent range is not another one");
        assert_eq!(bad.within(0..u64::MAX), Some(0..1));
    }
}
