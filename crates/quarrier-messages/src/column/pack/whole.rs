//! Whole numbers: what they are more than the least, as narrow as that is, or in runs.

use super::zones::{Zones, zones_of};
use crate::column::packed::{Lanes, Packed};

/// Packs whole numbers; where a row has no value, its number is not looked at.
pub(crate) fn pack_whole<T: Copy + Into<i64>>(values: &[T], valid: &[u64]) -> (Packed, Zones) {
    let zones = zones_of(values, valid, |value| value.into());
    let (min, max) = (zones.all.min, zones.all.max);
    let rows = values.len();
    let packed = |base, lanes| Packed { base, lanes, rows: rows as u32 };
    if min >= max {
        // One value, or none.
        return (packed(if min == max { min } else { 0 }, Lanes::Constant), zones);
    }
    let range = max.abs_diff(min);
    if let Some(runs) = runs(values, valid, min, range) {
        return (packed(min, runs), zones);
    }
    let lane = |row: usize| -> u64 {
        let number: i64 = values[row].into();
        number.wrapping_sub(min) as u64
    };
    let lanes = match range {
        0..=1 => Lanes::Bits(bits(rows, valid, lane)),
        2..=0xff => Lanes::U8(narrow(values, valid, min, |lane| lane as u8)),
        0x100..=0xffff => Lanes::U16(narrow(values, valid, min, |lane| lane as u16)),
        0x1_0000..=0xffff_ffff => Lanes::U32(narrow(values, valid, min, |lane| lane as u32)),
        _ => Lanes::U64(narrow(values, valid, min, |lane| lane)),
    };
    (packed(min, lanes), zones)
}

fn narrow<T: Copy + Into<i64>, L: Copy + Default>(
    values: &[T],
    valid: &[u64],
    base: i64,
    cut: impl Fn(u64) -> L,
) -> Vec<L> {
    let mut lanes = Vec::with_capacity(values.len().next_multiple_of(64));
    lanes.extend(values.iter().map(|&value| cut(value.into().wrapping_sub(base) as u64)));
    lanes.resize(values.len().next_multiple_of(64), L::default());
    for (word, lanes) in valid.iter().zip(lanes.chunks_mut(64)) {
        let mut missing = !word;
        while missing != 0 {
            lanes[missing.trailing_zeros() as usize] = L::default();
            missing &= missing - 1;
        }
    }
    lanes
}

fn bits(rows: usize, valid: &[u64], lane: impl Fn(usize) -> u64) -> Vec<u64> {
    let word = |at: usize| {
        let rows = at * 64..rows.min(at * 64 + 64);
        let bits = rows.fold(0, |word, row| word | (lane(row) & 1) << (row % 64));
        bits & valid.get(at).copied().unwrap_or(u64::MAX)
    };
    (0..rows.div_ceil(64)).map(word).collect()
}

/// How much smaller runs are than lanes before they are taken: a scan of lanes is simpler.
const RUNS_GAIN: usize = 4;

/// The values in runs, if that takes a quarter of the memory or less.
fn runs<T: Copy + Into<i64>>(values: &[T], valid: &[u64], base: i64, range: u64) -> Option<Lanes> {
    let bits = (64 - range.leading_zeros() as usize).next_power_of_two();
    let bits = if bits == 1 { 1 } else { bits.max(8) };
    let runs_max = values.len() * bits / 8 / RUNS_GAIN / 12;
    if !may_be_runs(values, runs_max) {
        return None;
    }
    let (mut ends, mut lanes) = (Vec::new(), Vec::new());
    for (row, &value) in values.iter().enumerate() {
        if !valid.is_empty() && valid[row / 64] >> (row % 64) & 1 == 0 {
            continue;
        }
        let lane = value.into().wrapping_sub(base) as u64;
        if lanes.last() != Some(&lane) {
            if lanes.len() == runs_max {
                return None;
            }
            // Rows without a value go on with what stood before them.
            if !lanes.is_empty() {
                ends.push(row as u32);
            }
            lanes.push(lane);
        }
    }
    ends.push(values.len() as u32);
    ends.shrink_to_fit();
    lanes.shrink_to_fit();
    Some(Lanes::Runs { ends, values: lanes })
}

/// A few neighbours tell that there are too many runs. Where rows without a value part them, it
/// says so too, and lanes are taken.
fn may_be_runs<T: Copy + Into<i64>>(values: &[T], runs_max: usize) -> bool {
    const PAIRS: usize = 64;
    if runs_max < 2 {
        return false;
    }
    let step = values.len() / PAIRS;
    let differ = (0..PAIRS)
        .map(|pair| pair * step)
        .filter(|&row| row + 1 < values.len() && values[row].into() != values[row + 1].into());
    differ.count() <= PAIRS / 4
}
