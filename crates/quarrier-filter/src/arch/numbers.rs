//! Calculations with 64 rows at once, as the compiler makes them of plain loops.

use super::{Lane, WORD_ROWS};

/// 64 rows of integers or floats, one on top of another.
pub(crate) type Words = [u64; WORD_ROWS];

/// The loops, for the bits of `i64` (`whole`) or `f64`.
pub(crate) struct NumberKernels {
    pub(super) float: unsafe fn(&mut Words, f64),
    pub(super) whole_step: unsafe fn(Step, &mut Words, &Words),
    pub(super) float_step: unsafe fn(Step, &mut Words, &Words),
}

/// An operation on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Add,
    Subtract,
    Multiply,
}

impl NumberKernels {
    /// Integers into floats, divided by `power`.
    pub(crate) fn float(&self, numbers: &mut Words, power: f64) {
        // SAFETY: kernels are handed out for what the CPU has.
        unsafe { (self.float)(numbers, power) }
    }

    /// `into = into step with`, of integers. Wraps.
    pub(crate) fn whole_step(&self, step: Step, into: &mut Words, with: &Words) {
        // SAFETY: as above.
        unsafe { (self.whole_step)(step, into, with) }
    }

    /// The same of floats.
    pub(crate) fn float_step(&self, step: Step, into: &mut Words, with: &Words) {
        // SAFETY: as above.
        unsafe { (self.float_step)(step, into, with) }
    }
}

/// Lanes into integers.
#[inline(always)]
pub(super) fn widen<T: Lane>(lanes: &[T; WORD_ROWS], base: i64, out: &mut Words) {
    for (out, &lane) in out.iter_mut().zip(lanes) {
        *out = (base as u64).wrapping_add(lane.into());
    }
}

/// Multiplies floats, by their bits, with lanes and `base`.
#[inline(always)]
pub(super) fn scale<T: Lane>(lanes: &[T; WORD_ROWS], base: f32, into: &mut [u32; WORD_ROWS]) {
    for (into, &lane) in into.iter_mut().zip(lanes) {
        *into = (f32::from_bits(*into) * (lane.near() + base)).to_bits();
    }
}

#[inline(always)]
pub(super) fn float(numbers: &mut Words, power: f64) {
    if power == 1.0 {
        for number in numbers {
            *number = (*number as i64 as f64).to_bits();
        }
    } else {
        for number in numbers {
            *number = (*number as i64 as f64 / power).to_bits();
        }
    }
}

#[inline(always)]
pub(super) fn whole_step(step: Step, into: &mut Words, with: &Words) {
    let pairs = into.iter_mut().zip(with);
    match step {
        Step::Add => pairs.for_each(|(a, b)| *a = a.wrapping_add(*b)),
        Step::Subtract => pairs.for_each(|(a, b)| *a = a.wrapping_sub(*b)),
        Step::Multiply => pairs.for_each(|(a, b)| *a = a.wrapping_mul(*b)),
    }
}

#[inline(always)]
pub(super) fn float_step(step: Step, into: &mut Words, with: &Words) {
    let pairs = into.iter_mut().zip(with);
    let f = f64::from_bits;
    match step {
        Step::Add => pairs.for_each(|(a, b)| *a = (f(*a) + f(*b)).to_bits()),
        Step::Subtract => pairs.for_each(|(a, b)| *a = (f(*a) - f(*b)).to_bits()),
        Step::Multiply => pairs.for_each(|(a, b)| *a = (f(*a) * f(*b)).to_bits()),
    }
}
