//! Packs numbers of up to 38 digits, as differences from the least value if possible.

use super::whole::pack_whole;
use super::zones::{Zones, wide_zones};
use crate::column::segment::Data;
use crate::exact::MANTISSA_MAX;

/// The least number of 64 bits.
const LEAST: i128 = i64::MIN as i128;

/// Packs numbers; ignores those of rows without a value.
pub(super) fn pack_wide(values: &[i128], valid: &[u64]) -> (Data, Zones) {
    let zones = wide_zones(values, valid);
    if zones.all.is_without_values() {
        return (Data::Null, zones);
    }
    let (min, max) = (zones.all.min, zones.all.max);
    assert!(-MANTISSA_MAX <= min && max <= MANTISSA_MAX, "numbers of more than 38 digits");
    let is_narrow = zones.all.narrow().is_some();
    if is_narrow || u64::try_from(max.abs_diff(min)).is_ok() {
        // The least value becomes `i64::MIN`. Numbers of rows without a value may wrap.
        let shift = if is_narrow { 0 } else { min - LEAST };
        let numbers: Vec<i64> =
            values.iter().map(|value| value.wrapping_sub(shift) as i64).collect();
        let (packed, _) = pack_whole(&numbers, valid);
        let data = if is_narrow { Data::Whole(packed) } else { Data::Shifted { shift, packed } };
        return (data, zones);
    }
    let mut kept = Vec::with_capacity(values.len().next_multiple_of(64));
    kept.extend_from_slice(values);
    kept.resize(values.len().next_multiple_of(64), 0);
    (Data::Exact(kept), zones)
}
