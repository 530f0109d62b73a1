//! The bytes of the source that belong to accepted files.

use std::collections::BTreeMap;

use crate::view::Extent;

/// Claimed ranges, which do not overlap; those that touch are joined.
#[derive(Debug, Default, Clone)]
pub struct Claims {
    /// The end of each range by its start, in bytes.
    ranges: BTreeMap<u64, u64>,
}

impl Claims {
    /// Claims all bytes of an extent.
    pub fn add(&mut self, extent: Extent) {
        let (mut start, mut end) = (extent.offset, extent.end());
        if start >= end {
            return;
        }
        while let Some((&at, &until)) = self.ranges.range(..=end).next_back() {
            if until < start {
                break;
            }
            start = start.min(at);
            end = end.max(until);
            self.ranges.remove(&at);
        }
        self.ranges.insert(start, end);
    }

    /// Whether the byte at `offset` is claimed.
    pub fn holds(&self, offset: u64) -> bool {
        self.end_of(offset).is_some()
    }

    /// Returns the end of the claimed range around `offset`.
    pub fn end_of(&self, offset: u64) -> Option<u64> {
        let (_, &end) = self.ranges.range(..=offset).next_back()?;
        (offset < end).then_some(end)
    }

    /// Whether a claimed range starts at `offset`.
    pub fn starts_at(&self, offset: u64) -> bool {
        self.ranges.contains_key(&offset)
    }

    /// Returns the start of the first claimed range at or after `offset`.
    pub fn next_after(&self, offset: u64) -> Option<u64> {
        self.ranges.range(offset..).next().map(|(&start, _)| start)
    }

    /// Yields all ranges as start and end, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&start, &end)| (start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_agree_with_a_list_of_bytes(
            extents in prop::collection::vec((0u64..200, 0u64..40), 0..30),
        ) {
            let mut claims = Claims::default();
            let mut bytes = [false; 256];
            for (offset, length) in extents {
                claims.add(Extent { offset, length });
                bytes[offset as usize..(offset + length) as usize].fill(true);
            }
            for (at, held) in bytes.iter().enumerate() {
                prop_assert_eq!(claims.holds(at as u64), *held, "byte {}", at);
                let starts = *held && !at.checked_sub(1).is_some_and(|before| bytes[before]);
                prop_assert_eq!(claims.starts_at(at as u64), starts, "byte {}", at);
            }
            let ranges: Vec<_> = claims.iter().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", ranges);
        }
    }
}
