//! The ranges of lanes that represent a set of values in a segment.

use std::ops::Range;
use std::sync::Arc;

use quarrier_messages::Table;
use quarrier_messages::column::{Data, SegmentColumn};

use super::bytes_of;
use crate::error::{Error, Result};
use crate::predicate::{Set, Share};
use crate::scan::nearest;

/// Must match the kernel.
const TAKES_NULLS: u32 = 1;
const TAKES_OTHERS: u32 = 2;

/// A set in one segment.
struct SetRanges {
    /// Ranges of lanes: first and last, in ascending order.
    ranges: Vec<(u64, u64)>,
    /// Whether the set is the values outside the ranges.
    takes_others: bool,
}

/// Returns, for each segment and test, the index of its ranges and its flags; and all ranges.
pub(super) fn of(
    table: &Table,
    segments: Range<usize>,
    tests: &[(usize, Arc<Set>)],
) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut rows, mut ranges) = (Vec::<[u32; 4]>::new(), Vec::<[u32; 4]>::new());
    for segment in segments {
        for (column, set) in tests {
            let bound = bind(&table.columns()[*column].segments()[segment], set);
            let first = u32::try_from(ranges.len()).map_err(|_| {
                let what = "too many ranges of values for a device".to_string();
                Error::Device(quarrier_gpu::Error::Arguments(what))
            })?;
            let flags = if set.nulls { TAKES_NULLS } else { 0 }
                | if bound.takes_others { TAKES_OTHERS } else { 0 };
            rows.push([first, bound.ranges.len() as u32, flags, *column as u32]);
            ranges.extend(bound.ranges.into_iter().map(|(first, last)| {
                [first as u32, (first >> 32) as u32, last as u32, (last >> 32) as u32]
            }));
        }
    }
    Ok((bytes_of(rows.into_iter().flatten()), bytes_of(ranges.into_iter().flatten())))
}

fn bind(column: &SegmentColumn, set: &Set) -> SetRanges {
    let zone = column.zone();
    let none = SetRanges { ranges: Vec::new(), takes_others: false };
    if zone.is_without_values() {
        return none;
    }
    match set.share(zone.min, zone.max) {
        Share::None => return none,
        Share::All => return SetRanges { takes_others: true, ..none },
        Share::Some => {}
    }
    let within = set.within(zone.min, zone.max);
    let others = set.complement().within(zone.min, zone.max);
    let takes_others = others.len() < within.len();
    let ranges = if takes_others { others } else { within };
    SetRanges { ranges: lanes(column, ranges), takes_others }
}

/// Converts ranges of keys to ranges of lanes.
fn lanes(column: &SegmentColumn, ranges: Vec<(i128, i128)>) -> Vec<(u64, u64)> {
    let shift = match column.data() {
        Data::Shifted { shift, .. } => *shift,
        _ => 0,
    };
    // Between the column's least and greatest value, so that they fit.
    let ranges = ranges.into_iter();
    let ranges: Vec<(i64, i64)> =
        ranges.map(|(a, b)| ((a - shift) as i64, (b - shift) as i64)).collect();
    match column.data() {
        // The zone maps of plain strings are not exact, so sets cannot test their values. Sets of
        // 128-bit numbers are refused.
        Data::Null | Data::Text(_) | Data::Exact(_) => Vec::new(),
        Data::Float(_) => {
            ranges.into_iter().map(|(first, last)| (float_lane(first), float_lane(last))).collect()
        }
        Data::Whole(packed) | Data::Codes(packed) | Data::Shifted { packed, .. } => {
            let lane = |number: i64| number.wrapping_sub(packed.base()) as u64;
            ranges.into_iter().map(|(first, last)| (lane(first), lane(last))).collect()
        }
        Data::Scaled { exponent, packed } => {
            let lane = |number: i64| number.wrapping_sub(packed.base()) as u64;
            let ends = |key| nearest(key, *exponent);
            let whole = ranges.into_iter().map(|(first, last)| (ends(first).0, ends(last).1));
            // Some adjacent numbers have floats between them that no number of the column equals.
            let whole = whole.filter(|(first, last)| first <= last);
            whole.map(|(first, last)| (lane(first), lane(last))).collect()
        }
    }
}

/// Converts the key of a float to a lane of 64 bits with the same order.
pub(super) fn float_lane(key: i64) -> u64 {
    key as u64 ^ 1 << 63
}
