//! Columns of numbers, dates and timestamps.

use crate::draw::Draw;
use crate::value::{Value, whole};

/// Ranges of values, which need lanes of different widths when packed.
const RANGES: [(i64, i64); 9] = [
    (0, 0),
    (0, 1),
    (-3, 10),
    (0, 255),
    (-40_000, 40_000),
    (0, 1 << 33),
    (i64::MIN, i64::MAX),
    (i64::MAX - 3, i64::MAX),
    (i64::MIN, i64::MIN + 3),
];

/// Calls `value` for every row, with a new `range` from some rows on.
fn in_stretches<R: Copy>(
    draw: &mut Draw,
    rows: usize,
    range: impl Fn(&mut Draw) -> R,
    value: impl Fn(&mut Draw, R, usize) -> Value,
) -> Vec<Value> {
    let mut values = Vec::with_capacity(rows);
    let stretches = *draw.of(&[1, 1, 1, 2, 5]);
    for _ in 0..stretches {
        let range = range(draw);
        let run = *draw.of(&[1, 1, 1, 50, 10_000]);
        let until = values.len() + rows.div_ceil(stretches);
        while values.len() < until.min(rows) {
            let drawn = value(draw, range, values.len());
            let again = until.min(rows).min(values.len() + run);
            values.resize(again, drawn);
        }
    }
    values
}

/// 64-bit integers.
pub(super) fn whole_numbers(draw: &mut Draw, rows: usize) -> Vec<Value> {
    let is_serial = draw.chance(15);
    in_stretches(
        draw,
        rows,
        |draw| *draw.of(&RANGES),
        |draw, (low, high), row| {
            if is_serial { whole(row as i64 / 3) } else { whole(draw.between(low, high)) }
        },
    )
}

/// Integers of up to 38 digits.
pub(super) fn wide(draw: &mut Draw, rows: usize) -> Vec<Value> {
    let unit = 10_i128.pow(20);
    let limit = 10_i128.pow(38) - 1;
    in_stretches(
        draw,
        rows,
        |draw| draw.below(5),
        |draw, range, _| {
            whole(match range {
                0 => i128::from(draw.bits()),
                1 => i128::from(u64::MAX) - draw.below(4) as i128,
                2 => i128::from(i64::MAX) + draw.between(-2, 2) as i128,
                3 => limit - draw.below(3) as i128,
                _ => i128::from(draw.between(-1_000_000, 1_000_000)) * unit + draw.below(9) as i128,
            })
        },
    )
}

/// Decimals of up to 38 digits; in JSON lines their numbers of digits differ.
pub(super) fn decimals(draw: &mut Draw, rows: usize) -> Vec<Value> {
    let scale_max = *draw.of(&[2, 2, 2, 4, 9, 18, 25]);
    let range = |draw: &mut Draw| (*draw.of(&RANGES[..6]), draw.chance(20));
    let wide = scale_max > 12 || draw.chance(10);
    in_stretches(draw, rows, range, |draw, ((low, high), is_whole), _| {
        let scale = if is_whole { 0 } else { draw.below(scale_max as usize + 1) as u8 };
        let mut mantissa = i128::from(draw.between(low, high));
        if wide && draw.chance(30) {
            // At most 10 digits before the point, so that with the scale all fit in 38 digits.
            mantissa = (mantissa % 1_000_000_000) * 10_i128.pow(u32::from(scale)) + 7;
        }
        Value::Exact { mantissa, scale }
    })
}

/// Floats, with NaN and infinities only if the files can hold them.
pub(super) fn floats(draw: &mut Draw, rows: usize, is_columnar: bool) -> Vec<Value> {
    const ODD: [f64; 8] = [0.0, -0.0, 1e300, -1e300, 5e-324, 0.1, 12_345_678.9, 1e15];
    const BEYOND: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    in_stretches(
        draw,
        rows,
        |draw| draw.below(4),
        |draw, range, _| {
            Value::Float(match range {
                0 => draw.between(-400, 400) as f64 / 4.0,
                1 => draw.between(-100_000, 100_000) as f64 / 100.0,
                2 if is_columnar && draw.chance(20) => *draw.of(&BEYOND),
                2 => *draw.of(&ODD),
                _ => loop {
                    let number = f64::from_bits(draw.bits());
                    if number.is_finite() {
                        break number;
                    }
                },
            })
        },
    )
}

/// Dates from 1677 to 2262, many of them before 1970.
pub(super) fn days(draw: &mut Draw, rows: usize) -> Vec<Value> {
    let range = |draw: &mut Draw| *draw.of(&[(-3, 3), (-106_000, 106_000), (18_000, 19_000)]);
    in_stretches(draw, rows, range, |draw, (low, high), _| {
        Value::Day(draw.between(low, high) as i32)
    })
}

/// Timestamps of the same years.
pub(super) fn moments(draw: &mut Draw, rows: usize) -> Vec<Value> {
    const SECOND: i64 = 1_000_000_000;
    let range = |draw: &mut Draw| {
        *draw.of(&[(-5, 5, SECOND), (-5, 5, 1), (-9_100_000_000, 9_100_000_000, SECOND)])
    };
    in_stretches(draw, rows, range, |draw, (low, high, unit), _| {
        Value::Moment(draw.between(low, high) * unit)
    })
}
