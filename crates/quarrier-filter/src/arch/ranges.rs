//! Values within ranges.

use super::{Bits, Kernels, Lane, Packed, PackedFloats, WORD_ROWS, WORDS};

/// `low..=high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range<T> {
    pub(crate) low: T,
    pub(crate) high: T,
}

/// Floats from `low` to `high`, and perhaps NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FloatRange {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) nan: bool,
}

/// The input of a loop.
pub(crate) struct Work<'a, V, R> {
    /// A block's values, at most 4,096, a multiple of 64.
    values: &'a [V],
    /// At least one.
    ranges: &'a [R],
    /// All ones where the rows outside of the ranges are wanted.
    flip: u64,
    /// The words to work on.
    which: u64,
}

impl<'a, V, R> Work<'a, V, R> {
    /// Words after the last value are left out.
    fn of(values: &'a [V], ranges: &'a [R], outside: bool, which: u64) -> Self {
        let words = values.len() / WORD_ROWS;
        let within = if words >= WORDS { !0 } else { (1 << words) - 1 };
        Work { values, ranges, flip: if outside { !0 } else { 0 }, which: which & within }
    }
}

/// Keeps, in the words `which` of `out`, the rows whose value lies in one of `ranges`, or with
/// `outside` in none of them. `values` are padded to a multiple of 64. Returns the words that are not
/// 0.
pub(crate) fn narrow<T: Lane>(
    kernels: &Kernels,
    values: &[T],
    (ranges, outside): (&[Range<T>], bool),
    which: u64,
    out: &mut Bits,
) -> u64 {
    let work = Work::of(values, ranges, outside, which);
    // SAFETY: kernels are handed out for what the CPU has, and `of` keeps to the values.
    unsafe { (T::of(kernels).ranges)(&work, out) }
}

/// The same for floats.
pub(crate) fn narrow_floats(
    kernels: &Kernels,
    values: &[f64],
    ranges: &[FloatRange],
    which: u64,
    out: &mut Bits,
) -> u64 {
    let work = Work::of(values, ranges, false, which);
    // SAFETY: as above.
    unsafe { (kernels.floats)(&work, out) }
}

/// One range, or several. (Not closures: code that the compiler does not inline loses the features, and
/// a comparison then costs forty times as much.)
pub(super) trait Ranges<S, V> {
    /// # Safety
    /// As [`Packed`].
    unsafe fn found(&self, values: *const V) -> u64;
}

impl<S: Packed<T>, T: Lane> Ranges<S, T> for Range<T> {
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn found(&self, values: *const T) -> u64 {
        // SAFETY: the caller's promise, handed on.
        unsafe { S::between(values, *self) }
    }
}

impl<S: PackedFloats> Ranges<S, f64> for FloatRange {
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn found(&self, values: *const f64) -> u64 {
        // SAFETY: the caller's promise, handed on.
        unsafe { S::between_floats(values, *self) }
    }
}

impl<S, V, R: Ranges<S, V>> Ranges<S, V> for &[R] {
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn found(&self, values: *const V) -> u64 {
        let mut found = 0;
        for range in *self {
            // SAFETY: the caller's promise, handed on.
            found |= unsafe { range.found(values) };
        }
        found
    }
}

/// # Safety
/// The CPU has the features of `S`; 64 values stand at 64 times each word of `which`.
#[inline(always)]
pub(super) unsafe fn run<S, V, R: Ranges<S, V> + Copy>(
    work: &Work<'_, V, R>,
    out: &mut Bits,
) -> u64 {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match work.ranges {
            [one] => each::<S, V, R>(work, *one, out),
            several => each::<S, V, &[R]>(work, several, out),
        }
    }
    out.words()
}

/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn each<S, V, Q: Ranges<S, V>>(work: &Work<'_, V, impl Sized>, ranges: Q, out: &mut Bits) {
    let first = work.values.as_ptr();
    let flip = work.flip;
    if work.which == !0 {
        for at in 0..WORDS {
            // SAFETY: 64 values stand there.
            out.0[at] &= unsafe { ranges.found(first.add(at * WORD_ROWS)) } ^ flip;
        }
        return;
    }
    let mut which = work.which;
    while which != 0 {
        let at = which.trailing_zeros() as usize;
        which &= which - 1;
        // SAFETY: 64 values stand there.
        out.0[at] &= unsafe { ranges.found(first.add(at * WORD_ROWS)) } ^ flip;
    }
}
