//! Selects values within ranges.

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
    /// All ones to select the rows outside the ranges.
    flip: u64,
    /// A mask of the words to process; each of them has values.
    which: u64,
}

impl<'a, V, R> Work<'a, V, R> {
    /// Excludes from `which` the words past the last value.
    fn of(values: &'a [V], ranges: &'a [R], outside: bool, which: u64) -> Self {
        let words = values.len() / WORD_ROWS;
        let within = if words >= WORDS { !0 } else { (1 << words) - 1 };
        Work { values, ranges, flip: if outside { !0 } else { 0 }, which: which & within }
    }
}

/// Keeps, in the words `which` of `out`, the rows whose value is in one of `ranges`, or with
/// `outside` in none of them. `values` are padded to a multiple of 64. Returns a mask of the words
/// that are not 0.
pub(crate) fn narrow<T: Lane>(
    kernels: &Kernels,
    values: &[T],
    (ranges, outside): (&[Range<T>], bool),
    which: u64,
    out: &mut Bits,
) -> u64 {
    let work = Work::of(values, ranges, outside, which);
    // SAFETY: `kernels` only returns loops whose features the CPU has. `Work::of` leaves in `which`
    // only words with 64 values, as the loop requires.
    unsafe { (T::of(kernels).ranges)(&work, out) }
}

/// As [`narrow`], for floats.
pub(crate) fn narrow_floats(
    kernels: &Kernels,
    values: &[f64],
    ranges: &[FloatRange],
    which: u64,
    out: &mut Bits,
) -> u64 {
    let work = Work::of(values, ranges, false, which);
    // SAFETY: `kernels` only returns loops whose features the CPU has. `Work::of` leaves in `which`
    // only words with 64 values, as the loop requires.
    unsafe { (kernels.floats)(&work, out) }
}

/// One range, or several. (A trait rather than closures: code that the compiler does not inline is
/// compiled without the features, and a comparison then costs forty times as much.)
pub(super) trait Ranges<S, V> {
    /// Returns a mask of the values in the range or ranges.
    ///
    /// # Safety
    /// The contract of [`Packed`].
    unsafe fn found(&self, values: *const V) -> u64;
}

impl<S: Packed<T>, T: Lane> Ranges<S, T> for Range<T> {
    // # Safety: the contract of `Ranges::found`.
    #[inline(always)]
    unsafe fn found(&self, values: *const T) -> u64 {
        // SAFETY: the contract of `S::between` is the caller's, with the same `values`.
        unsafe { S::between(values, *self) }
    }
}

impl<S: PackedFloats> Ranges<S, f64> for FloatRange {
    // # Safety: the contract of `Ranges::found`.
    #[inline(always)]
    unsafe fn found(&self, values: *const f64) -> u64 {
        // SAFETY: the contract of `S::between_floats` is the caller's, with the same `values`.
        unsafe { S::between_floats(values, *self) }
    }
}

impl<S, V, R: Ranges<S, V>> Ranges<S, V> for &[R] {
    // # Safety: the contract of `Ranges::found`.
    #[inline(always)]
    unsafe fn found(&self, values: *const V) -> u64 {
        let mut found = 0;
        for range in *self {
            // SAFETY: the contract of the element's `found` is the caller's, with the same
            // `values`.
            found |= unsafe { range.found(values) };
        }
        found
    }
}

/// # Safety
/// The CPU has the features of `S`. For each bit `at` in `which`, `work.values` has 64 values from
/// index `64 * at` on.
#[inline(always)]
pub(super) unsafe fn run<S, V, R: Ranges<S, V> + Copy>(
    work: &Work<'_, V, R>,
    out: &mut Bits,
) -> u64 {
    // SAFETY: `each` has the same contract, and gets the same `work`.
    unsafe {
        match work.ranges {
            [one] => each::<S, V, R>(work, *one, out),
            several => each::<S, V, &[R]>(work, several, out),
        }
    }
    out.words()
}

/// # Safety
/// The contract of [`run`].
#[inline(always)]
unsafe fn each<S, V, Q: Ranges<S, V>>(work: &Work<'_, V, impl Sized>, ranges: Q, out: &mut Bits) {
    let first = work.values.as_ptr();
    let flip = work.flip;
    if work.which == !0 {
        for at in 0..WORDS {
            // SAFETY: all bits of `which` are set, so the caller promises 64 values from each of
            // the indexes, and the features of `S`.
            out.0[at] &= unsafe { ranges.found(first.add(at * WORD_ROWS)) } ^ flip;
        }
        return;
    }
    let mut which = work.which;
    while which != 0 {
        let at = which.trailing_zeros() as usize;
        which &= which - 1;
        // SAFETY: bit `at` of `which` is set, so the caller promises 64 values from this index, and
        // the features of `S`.
        out.0[at] &= unsafe { ranges.found(first.add(at * WORD_ROWS)) } ^ flip;
    }
}
