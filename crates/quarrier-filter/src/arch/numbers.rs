//! Arithmetic on 64 rows at once, as plain loops that the compiler vectorises.

use super::{Lane, WORD_ROWS};

/// The bits of the numbers of 64 rows, integers or floats.
pub(crate) type Words = [u64; WORD_ROWS];

/// The loops, on the bits of `i64` (`whole`) or `f64`.
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
    /// Converts integers to floats, divided by `power`.
    pub(crate) fn float(&self, numbers: &mut Words, power: f64) {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.float)(numbers, power) }
    }

    /// Computes `into = into step with` on integers. Wraps.
    pub(crate) fn whole_step(&self, step: Step, into: &mut Words, with: &Words) {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.whole_step)(step, into, with) }
    }

    /// Computes `into = into step with` on floats.
    pub(crate) fn float_step(&self, step: Step, into: &mut Words, with: &Words) {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.float_step)(step, into, with) }
    }
}

/// Converts lanes to integers.
#[inline(always)]
pub(super) fn widen<T: Lane>(lanes: &[T; WORD_ROWS], base: i64, out: &mut Words) {
    for (out, &lane) in out.iter_mut().zip(lanes) {
        *out = (base as u64).wrapping_add(lane.into());
    }
}

/// Multiplies floats, given as bits, by lanes plus `base`.
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
