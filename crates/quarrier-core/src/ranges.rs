//! Sorted lists of ranges of a source that neither overlap nor touch.

use std::ops::Range;

/// Appends a range to a sorted list, and merges it with the last range if they overlap or touch. It must
/// not start before the last range. An empty range is ignored.
///
/// ```
/// let mut list = vec![0..512];
/// quarrier_core::ranges::push_merged(&mut list, 512..1024);
/// quarrier_core::ranges::push_merged(&mut list, 2048..2560);
/// assert_eq!(list, [0..1024, 2048..2560]);
/// ```
pub fn push_merged(list: &mut Vec<Range<u64>>, range: Range<u64>) {
    match list.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ if range.is_empty() => {}
        _ => list.push(range),
    }
}

/// Sorts ranges, merges those that overlap or touch, and drops empty ones.
pub fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive twin: a range for each run of offsets that are in any of the ranges.
    fn runs(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for at in 0..64 {
            if !ranges.iter().any(|range| range.contains(&at)) {
                continue;
            }
            match runs.last_mut() {
                Some(last) if last.end == at => last.end = at + 1,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn a_merged_list_has_a_range_for_each_run_of_offsets(
            starts in prop::collection::vec((0u64..48, 0u64..12), 0..12),
        ) {
            let mut ranges: Vec<Range<u64>> =
                starts.into_iter().map(|(start, bytes)| start..start + bytes).collect();
            let expected = runs(&ranges);
            prop_assert_eq!(&merged(ranges.clone()), &expected);
            ranges.sort_by_key(|range| range.start);
            let mut list = Vec::new();
            ranges.into_iter().for_each(|range| push_merged(&mut list, range));
            prop_assert_eq!(&list, &expected);
        }
    }
}
