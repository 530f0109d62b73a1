//! Tests of calculated numbers, 64 rows at a time.

use quarrier_messages::Kind;
use quarrier_messages::column::{Data, Lanes, SegmentColumn};

use super::block::{Place, each};
use super::coarse::Products;
use crate::arch::numbers::{self, Words};
use crate::arch::{Bits, FloatRange, Kernels, Lane, Range, WORD_ROWS, WORDS, ranges};
use crate::predicate::{Calculation, STACK_MAX, Step, Within};

/// An upper bound of the relative rounding error of a product of a few floats.
const ROUNDING: f64 = 1.0 / (1_u64 << 48) as f64;

/// Keeps in `rows` those for which the calculation is true, and returns a mask of the words that
/// are not 0.
///
/// Floats that are stored as integers are divided by a power of ten only if their undivided product
/// is near a bound: 64 divisions cost more than all the rest together.
pub(crate) fn narrow(
    kernels: &Kernels,
    calculation: &Calculation,
    place: Place<'_>,
    products: &mut Products,
    (rows, words): (&mut Bits, u64),
) -> u64 {
    let words = products.narrow(kernels, calculation, place, (rows, words));
    let columns = place.table.columns();
    let undivided = undivided(calculation, place);
    let mut stack = [[0; WORD_ROWS]; STACK_MAX + 1];
    each(words, |at| {
        for &column in &calculation.columns {
            let valid = columns[column].segments()[place.segment].valid();
            if !valid.is_empty() {
                rows.0[at] &= valid[place.block * WORDS + at];
            }
        }
        if let Some(within) = undivided
            && rows.0[at] != 0
        {
            let numbers = calculated(kernels, (calculation, false), place, at, &mut stack);
            rows.0[at] &= inside(kernels, within, false, numbers);
        }
        if rows.0[at] != 0 {
            let numbers = calculated(kernels, (calculation, true), place, at, &mut stack);
            rows.0[at] &= inside(kernels, calculation.within, calculation.outside, numbers);
        }
    });
    kernels.bits.words(rows)
}

/// Returns a range that the product of undivided numbers must be in, for a calculation with divided
/// ones.
fn undivided(calculation: &Calculation, place: Place<'_>) -> Option<Within> {
    let Within::Float(low, high) = calculation.within else { return None };
    let mut power = 1.0;
    for step in &calculation.steps {
        match step {
            Step::Column(column) => {
                power *= power_of(&place.table.columns()[*column].segments()[place.segment]);
            }
            Step::Float(_) | Step::Multiply => {}
            Step::Whole(_) | Step::Add | Step::Subtract => return None,
        }
    }
    let (low, high) = (low * power, high * power);
    (power != 1.0 && !calculation.outside).then(|| {
        let away = |end: f64| if end.is_finite() { end.abs() * ROUNDING } else { 0.0 };
        Within::Float(low - away(low), high + away(high))
    })
}

fn inside(kernels: &Kernels, within: Within, outside: bool, numbers: &Words) -> u64 {
    let mut found = Bits::NONE;
    found.0[0] = !0;
    match within {
        // Differences wrap, so a range of signed numbers is one of unsigned numbers.
        Within::Whole(first, last) => {
            let range = Range { low: first as u64, high: last as u64 };
            ranges::narrow(kernels, numbers, (&[range], outside), 1, &mut found);
            found.0[0]
        }
        Within::Float(low, high) => {
            let floats = numbers.map(f64::from_bits);
            let range = FloatRange { low, high, nan: false };
            ranges::narrow_floats(kernels, &floats, &[range], 1, &mut found);
            found.0[0] ^ if outside { !0 } else { 0 }
        }
    }
}

/// Calculates the numbers of 64 rows; with `divide`, from the decimals that the stored integers
/// represent rather than from the integers.
fn calculated<'s>(
    kernels: &Kernels,
    (calculation, divide): (&Calculation, bool),
    place: Place<'_>,
    word: usize,
    stack: &'s mut [Words; STACK_MAX + 1],
) -> &'s Words {
    let float = matches!(calculation.within, Within::Float(..));
    let mut depth = 0;
    for step in &calculation.steps {
        let step = match step {
            Step::Column(column) => {
                let segment = &place.table.columns()[*column].segments()[place.segment];
                let first = place.first() + word * WORD_ROWS;
                let power = if divide { power_of(segment) } else { 1.0 };
                load(kernels, segment, first, float.then_some(power), &mut stack[depth]);
                depth += 1;
                continue;
            }
            Step::Whole(number) => {
                stack[depth].fill(*number as u64);
                depth += 1;
                continue;
            }
            Step::Float(number) => {
                stack[depth].fill(number.to_bits());
                depth += 1;
                continue;
            }
            Step::Add => numbers::Step::Add,
            Step::Subtract => numbers::Step::Subtract,
            Step::Multiply => numbers::Step::Multiply,
        };
        depth -= 1;
        let (below, above) = stack.split_at_mut(depth);
        if float {
            kernels.numbers.float_step(step, &mut below[depth - 1], &above[0]);
        } else {
            kernels.numbers.whole_step(step, &mut below[depth - 1], &above[0]);
        }
    }
    &stack[0]
}

/// Returns the divisor of a segment's integers.
fn power_of(segment: &SegmentColumn) -> f64 {
    match (segment.data(), segment.kind()) {
        (Data::Scaled { exponent, .. }, _) => 10_f64.powi((*exponent).into()),
        (Data::Whole(_), Kind::Decimal { scale }) => 10_f64.powi(scale.into()),
        _ => 1.0,
    }
}

/// Loads the numbers of 64 rows from row `first` of the segment; as floats, divided by a power of
/// ten.
fn load(
    kernels: &Kernels,
    segment: &SegmentColumn,
    first: usize,
    float: Option<f64>,
    out: &mut Words,
) {
    match segment.data() {
        Data::Float(floats) => {
            for (out, float) in out.iter_mut().zip(&floats[first..first + WORD_ROWS]) {
                *out = float.to_bits();
            }
            return;
        }
        Data::Whole(packed) | Data::Scaled { packed, .. } => {
            let base = packed.base();
            match packed.lanes() {
                Lanes::U8(lanes) => widen(kernels, lanes, base, first, out),
                Lanes::U16(lanes) => widen(kernels, lanes, base, first, out),
                Lanes::U32(lanes) => widen(kernels, lanes, base, first, out),
                Lanes::U64(lanes) => widen(kernels, lanes, base, first, out),
                _ => {
                    let rows = WORD_ROWS.min(segment.rows() - first);
                    let mut numbers = [0; WORD_ROWS];
                    packed.unpack(first, &mut numbers[..rows]);
                    *out = numbers.map(|number| number as u64);
                }
            }
        }
        // The plan has proven that all values to calculate fit 64 bits.
        Data::Null | Data::Codes(_) | Data::Text(_) | Data::Shifted { .. } | Data::Exact(_) => {
            out.fill(0);
        }
    }
    if let Some(power) = float {
        kernels.numbers.float(out, power);
    }
}

fn widen<T: Lane>(kernels: &Kernels, lanes: &[T], base: i64, first: usize, out: &mut Words) {
    if let Some(lanes) = lanes.get(first..).and_then(|lanes| lanes.first_chunk()) {
        T::of(kernels).widen(lanes, base, out);
    }
}
