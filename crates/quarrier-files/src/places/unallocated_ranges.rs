//! The bytes that no allocated file has.
//!
//! ```text
//!  all bytes ── minus those of allocated files ──→ unallocated: free clusters, slack, deleted files,
//!      file-system structures, bytes outside of file systems, and unreadable parts
//!         └── minus slack and structures ──→ clusters that new files would get, in order
//! ```

use std::ops::Range;

use quarrier_core::ranges::merged;

use super::{Places, Rank};
use crate::systems::SkippedPartition;

impl Places {
    /// The bytes that no allocated file owns, sorted, with adjacent ranges merged: free clusters,
    /// slack, deleted files, file-system structures, bytes outside of file systems, and parts that
    /// could not be read.
    pub fn unallocated(&self) -> Vec<Range<u64>> {
        let is_allocated = |rank: Rank| matches!(rank, Rank::Inline | Rank::Allocated);
        let allocated = self.pieces.iter().filter(|piece| is_allocated(piece.rank));
        complement(allocated.map(|piece| piece.start..piece.end), self.source_bytes)
    }

    /// The [unallocated](Places::unallocated) clusters in which deleted files may continue: free
    /// clusters, and everything outside of file systems. Excludes slack and file-system structures.
    pub fn unallocated_clusters(&self) -> Vec<Range<u64>> {
        let unjudged = complement(self.judged.iter().cloned(), self.source_bytes);
        let clusters = merged(self.free.iter().cloned().chain(unjudged).collect());
        shared(&clusters, &self.unallocated())
    }

    /// Notices about the partition table, and messages about skipped partitions, which count as
    /// unallocated.
    pub fn unallocated_notices(&self) -> Vec<String> {
        let skipped_partitions =
            self.skipped_partitions.iter().map(|SkippedPartition { range, what }| {
                let Range { start, end } = range;
                format!("bytes {start}..{end} count as unallocated: a partition with {what}")
            });
        self.notices.iter().cloned().chain(skipped_partitions).collect()
    }

    /// Messages about unreadable parts of file systems, which count as unallocated.
    pub fn unallocated_damages(&self) -> Vec<String> {
        let damages = self.damages.iter().map(|damage| {
            format!("{damage}; the bytes of files that could not be listed count as unallocated")
        });
        damages.collect()
    }
}

/// The bytes of `0..length` outside of `ranges`, which must be sorted and disjoint.
fn complement(ranges: impl Iterator<Item = Range<u64>>, length: u64) -> Vec<Range<u64>> {
    let mut outside = Vec::new();
    let mut at = 0;
    for range in ranges {
        if at < range.start.min(length) {
            outside.push(at..range.start.min(length));
        }
        at = at.max(range.end);
    }
    if at < length {
        outside.push(at..length);
    }
    outside
}

/// The intersection of two lists, each sorted and disjoint.
fn shared(one: &[Range<u64>], other: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut both = Vec::new();
    let (mut at, mut beside) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (at.peek(), beside.peek()) {
        let range = a.start.max(b.start)..a.end.min(b.end);
        if !range.is_empty() {
            both.push(range);
        }
        if a.end <= b.end {
            at.next();
        } else {
            beside.next();
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::{complement, merged, shared};

    fn ranges(pairs: &[(u64, u64)]) -> Vec<Range<u64>> {
        merged(pairs.iter().map(|(start, length)| *start..start + length).collect())
    }

    fn has(ranges: &[Range<u64>], at: u64) -> bool {
        ranges.iter().any(|range| range.contains(&at))
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_bytes(
            one in prop::collection::vec((0..60u64, 0..9u64), 0..12),
            other in prop::collection::vec((0..60u64, 0..9u64), 0..12),
        ) {
            let (a, b) = (ranges(&one), ranges(&other));
            let both = shared(&a, &b);
            let outside = complement(a.iter().cloned(), 64);
            for at in 0..64 {
                let is_in = one.iter().any(|(start, length)| (*start..start + length).contains(&at));
                prop_assert_eq!(has(&a, at), is_in);
                prop_assert_eq!(has(&both, at), has(&a, at) && has(&b, at));
                prop_assert_eq!(has(&outside, at), !has(&a, at));
            }
            for list in [&a, &both, &outside] {
                prop_assert!(list.iter().all(|range| !range.is_empty()));
                prop_assert!(list.windows(2).all(|pair| pair[0].end <= pair[1].start));
            }
            prop_assert!(outside.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
