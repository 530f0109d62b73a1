//! Packs integers: as differences from the least value, in lanes as narrow as possible, or in runs.

use quarrier_core::isa::Isa;

use super::zones::{Zones, zones_of};
use crate::column::packed::{Lanes, Packed};

/// Packs integers; ignores the numbers of rows without a value.
///
/// Plain loops, compiled for the machine's instruction set: without AVX-512, minimum, maximum and
/// narrowing of 64-bit numbers process one value at a time.
pub(crate) fn pack_whole<T: Copy + Into<i64>>(values: &[T], valid: &[u64]) -> (Packed, Zones) {
    pack_whole_by(Isa::best(), values, valid, Lanes::Constant)
}

/// Like [`pack_whole`], but reuses the memory of `old` if that has as many lanes of the same width:
/// the system provides new memory page by page.
pub(super) fn pack_whole_again<T: Copy + Into<i64>>(
    values: &[T],
    valid: &[u64],
    old: Lanes,
) -> (Packed, Zones) {
    pack_whole_by(Isa::best(), values, valid, old)
}

fn pack_whole_by<T: Copy + Into<i64>>(
    isa: Isa,
    values: &[T],
    valid: &[u64],
    old: Lanes,
) -> (Packed, Zones) {
    match isa.or_best() {
        // SAFETY: `or_best` returned this set, so all features of `Isa::Avx512` were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { pack_whole_avx512(values, valid, old) },
        // SAFETY: `or_best` returned this set, so all features of `Isa::Avx2` were detected.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { pack_whole_avx2(values, valid, old) },
        _ => pack_whole_on(values, valid, old),
    }
}

/// # Safety
/// [`Isa::Avx512`] is available.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
unsafe fn pack_whole_avx512<T: Copy + Into<i64>>(
    values: &[T],
    valid: &[u64],
    old: Lanes,
) -> (Packed, Zones) {
    const { assert!(Isa::Avx512.has("avx512f,avx512bw,bmi1,bmi2,popcnt")) };
    pack_whole_on(values, valid, old)
}

/// # Safety
/// [`Isa::Avx2`] is available.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn pack_whole_avx2<T: Copy + Into<i64>>(
    values: &[T],
    valid: &[u64],
    old: Lanes,
) -> (Packed, Zones) {
    const { assert!(Isa::Avx2.has("avx2,bmi1,bmi2,popcnt")) };
    pack_whole_on(values, valid, old)
}

#[inline(always)]
fn pack_whole_on<T: Copy + Into<i64>>(values: &[T], valid: &[u64], old: Lanes) -> (Packed, Zones) {
    let zones = zones_of(values, valid, |value| value.into());
    let (min, max) = zones.all.narrow().unwrap_or((0, 0));
    let rows = values.len();
    let packed = |base, lanes| Packed { base, lanes, rows: rows as u32 };
    if min == max {
        // Only one distinct value, or none.
        return (packed(min, Lanes::Constant), zones);
    }
    let range = max.abs_diff(min);
    if let Some(runs) = runs(values, valid, min, range) {
        return (packed(min, runs), zones);
    }
    let lane = |row: usize| -> u64 {
        let number: i64 = values[row].into();
        number.wrapping_sub(min) as u64
    };
    let lanes = match (range, old) {
        (0..=1, _) => Lanes::Bits(bits(rows, valid, lane)),
        (2..=0xff, Lanes::U8(old)) => Lanes::U8(narrow(values, valid, min, old, |lane| lane as u8)),
        (2..=0xff, _) => Lanes::U8(narrow(values, valid, min, Vec::new(), |lane| lane as u8)),
        (0x100..=0xffff, Lanes::U16(old)) => {
            Lanes::U16(narrow(values, valid, min, old, |lane| lane as u16))
        }
        (0x100..=0xffff, _) => {
            Lanes::U16(narrow(values, valid, min, Vec::new(), |lane| lane as u16))
        }
        (0x1_0000..=0xffff_ffff, Lanes::U32(old)) => {
            Lanes::U32(narrow(values, valid, min, old, |lane| lane as u32))
        }
        (0x1_0000..=0xffff_ffff, _) => {
            Lanes::U32(narrow(values, valid, min, Vec::new(), |lane| lane as u32))
        }
        _ => Lanes::U64(narrow(values, valid, min, Vec::new(), |lane| lane)),
    };
    (packed(min, lanes), zones)
}

#[inline(always)]
fn narrow<T: Copy + Into<i64>, L: Copy + Default>(
    values: &[T],
    valid: &[u64],
    base: i64,
    old: Vec<L>,
    cut: impl Fn(u64) -> L,
) -> Vec<L> {
    let places = values.len().next_multiple_of(64);
    let mut lanes = if old.len() == places { old } else { vec![L::default(); places] };
    let (own, padding) = lanes.split_at_mut(values.len());
    for (lane, &value) in own.iter_mut().zip(values) {
        *lane = cut(value.into().wrapping_sub(base) as u64);
    }
    padding.fill(L::default());
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

/// Runs must be this many times smaller than lanes to be used: a scan of lanes is simpler.
const RUNS_GAIN: usize = 4;

/// Returns the values in runs, if that takes a quarter of the memory or less.
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
            // Rows without a value repeat the number before them.
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

/// Samples adjacent values, and returns false if there are too many runs. Rows without a value that
/// separate runs count as well.
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

#[cfg(test)]
mod tests {
    use super::{Isa, Lanes, pack_whole_by, pack_whole_on};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_instruction_set_packs_alike(
            (low, high) in (any::<i64>(), any::<i64>()),
            values in proptest::collection::vec(any::<i64>(), 1..9000),
            bits in 0u32..64,
            words in proptest::collection::vec(any::<u64>(), 150),
            has_nulls in any::<bool>(),
        ) {
            let (low, high) = (low.min(high) >> bits, low.max(high) >> bits);
            let range = i128::from(high) - i128::from(low) + 1;
            let within = |value: i64| (i128::from(low) + i128::from(value).rem_euclid(range)) as i64;
            let values: Vec<i64> = values.into_iter().map(within).collect();
            let valid = if has_nulls { &words[..values.len().div_ceil(64)] } else { &[] };
            let mut valid = valid.to_vec();
            if let Some(last) = valid.last_mut().filter(|_| !values.len().is_multiple_of(64)) {
                *last &= (1 << (values.len() % 64)) - 1;
            }
            let (expected, zones) = pack_whole_on(&values, &valid, Lanes::Constant);
            for isa in Isa::available() {
                let (packed, own) = pack_whole_by(isa, &values, &valid, Lanes::Constant);
                prop_assert_eq!(format!("{packed:?}"), format!("{expected:?}"));
                prop_assert_eq!((own.all, own.blocks), (zones.all, zones.blocks.clone()));
            }
        }

        #[test]
        fn old_lanes_do_not_show(
            rows in 1usize..300,
            before in proptest::collection::vec(any::<u32>(), 300),
            after in proptest::collection::vec(any::<u32>(), 300),
            bits in 0u32..32,
            bits_before in 0u32..32,
            words in proptest::collection::vec(any::<u64>(), 5),
            has_nulls in any::<bool>(),
        ) {
            let values = |all: &[u32], bits| -> Vec<u32> {
                all[..rows].iter().map(|value| value >> bits).collect()
            };
            let valid = if has_nulls { &words[..rows.div_ceil(64)] } else { &[] };
            let mut valid = valid.to_vec();
            if let Some(last) = valid.last_mut().filter(|_| !rows.is_multiple_of(64)) {
                *last &= (1 << (rows % 64)) - 1;
            }
            let values_before = values(&before, bits_before);
            let values = values(&after, bits);
            let (old, _) = pack_whole_on(&values_before, &[], Lanes::Constant);
            let (expected, zones) = pack_whole_on(&values, &valid, Lanes::Constant);
            let (packed, own) = pack_whole_on(&values, &valid, old.lanes);
            prop_assert_eq!(packed, expected);
            prop_assert_eq!((own.all, own.blocks), (zones.all, zones.blocks));
        }
    }
}
