//! Every instruction set selects the same values as plain comparisons.

use quarrier_core::isa::Isa;

use super::{Bits, FloatRange, Kernels, Lane, Range, kernels, lookup, ranges};

/// Draws values over the whole width, many of them near its ends.
fn values<T: Lane>(rows: usize, seed: u64) -> Vec<T> {
    let mut state = seed | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 8
    };
    (0..rows)
        .map(|_| {
            let value = next();
            match value % 4 {
                0 => T::cut(value >> 2 & 7),
                1 => T::cut(!(value >> 2 & 7)),
                _ => T::cut(value >> 2 | value << 50),
            }
        })
        .collect()
}

fn check<T: Lane>(kernels: &Kernels, rows: usize, seed: u64) {
    let values = values::<T>(rows, seed);
    let pick = |at: usize| values.get(at % rows.max(1)).copied().unwrap_or_default();
    let (a, b, c) = (pick(3), pick(11), pick(29));
    let ranges = [
        Range { low: a.min(b), high: a.max(b) },
        Range { low: c, high: c },
        Range { low: T::cut(0), high: T::cut(3) },
    ];
    for count in 1..=3 {
        for outside in [false, true] {
            for which in [!0, seed] {
                let before = Bits(std::array::from_fn(|at| seed.rotate_left(at as u32)));
                let mut out = before.clone();
                ranges::narrow(kernels, &values, (&ranges[..count], outside), which, &mut out);
                for (row, &value) in values.iter().enumerate() {
                    let within = ranges[..count].iter().any(|r| r.low <= value && value <= r.high)
                        != outside;
                    let was = before.0[row / 64] >> (row % 64) & 1 == 1;
                    let expected = was && (within || which >> (row / 64) & 1 == 0);
                    assert_eq!(out.0[row / 64] >> (row % 64) & 1 == 1, expected, "row {row}");
                }
            }
        }
    }
}

fn check_lookup<T: Lane>(kernels: &Kernels, rows: usize, seed: u64) {
    let codes = 200;
    let values: Vec<T> = values::<u64>(rows, seed).iter().map(|v| T::cut(v % codes)).collect();
    let table: Vec<u32> = values_of_table(seed);
    for left in [seed, seed & seed.rotate_left(9) & seed.rotate_left(31), !0] {
        let mut out = Bits([left; 64]);
        lookup::narrow(kernels, (&values, 20), &table, !0, &mut out);
        for (row, value) in values.iter().enumerate() {
            let place = value.place() + 20;
            let set = table.get(place / 32).is_some_and(|word| word >> (place % 32) & 1 == 1);
            let expected = left >> (row % 64) & 1 == 1 && set;
            assert_eq!(out.0[row / 64] >> (row % 64) & 1 == 1, expected, "row {row}");
        }
    }
}

/// Draws bits for 160 of 200 codes: a table may end before the last of them.
fn values_of_table(seed: u64) -> Vec<u32> {
    (0..5).map(|at| (seed >> (at * 7)) as u32 ^ 0x5A5A_1234).collect()
}

#[test]
fn every_instruction_set_finds_the_same_rows() {
    for isa in Isa::available() {
        let kernels = kernels(isa);
        for rows in [0, 64, 128, 1024, 4032, 4096] {
            for seed in [0x9E37_79B9_7F4A_7C15, 0x0123_4567_89AB_CDEF, 3] {
                check::<u8>(kernels, rows, seed);
                check::<u16>(kernels, rows, seed);
                check::<u32>(kernels, rows, seed);
                check::<u64>(kernels, rows, seed);
                check_lookup::<u8>(kernels, rows, seed);
                check_lookup::<u16>(kernels, rows, seed);
                check_lookup::<u32>(kernels, rows, seed);
                check_lookup::<u64>(kernels, rows, seed);
            }
        }
    }
}

#[test]
fn floats_are_found_with_nan_and_zeros_of_both_signs() {
    let special = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1.5];
    let values: Vec<f64> = (0..128).map(|at| special[at * 7 % 8] * (1 + at / 64) as f64).collect();
    let range = |low, high, nan| FloatRange { low, high, nan };
    let ranges = [range(0.0, 2.0, false), range(-1.5, -1.5, true), range(1.0, f64::INFINITY, true)];
    for isa in Isa::available() {
        for ranges in [&ranges[..1], &ranges[1..2], &ranges[..]] {
            let mut out = Bits([!0; 64]);
            ranges::narrow_floats(kernels(isa), &values, ranges, !0, &mut out);
            for (row, value) in values.iter().enumerate() {
                let within = ranges.iter().any(|range| {
                    (range.low <= *value && *value <= range.high) || (range.nan && value.is_nan())
                });
                assert_eq!(out.0[row / 64] >> (row % 64) & 1 == 1, within, "{value}");
            }
        }
    }
}

#[test]
fn bitmaps_are_joined_word_by_word() {
    let a = Bits(std::array::from_fn(|at| 0x9E37_79B9_7F4A_7C15u64.rotate_left(at as u32)));
    let b = Bits(std::array::from_fn(|at| if at % 3 == 0 { 0 } else { !0 << at }));
    for isa in Isa::available() {
        let bits = &kernels(isa).bits;
        let (mut all, mut any, mut without) = (a.clone(), a.clone(), a.clone());
        assert_eq!(bits.all(&mut all, &b), all.words());
        assert_eq!(bits.any(&mut any, &b), any.words());
        assert_eq!(bits.without(&mut without, &b), without.words());
        for at in 0..64 {
            assert_eq!(all.0[at], a.0[at] & b.0[at]);
            assert_eq!(any.0[at], a.0[at] | b.0[at]);
            assert_eq!(without.0[at], a.0[at] & !b.0[at]);
        }
        assert_eq!(bits.count(&all) as usize, all.rows().count());
    }
}
