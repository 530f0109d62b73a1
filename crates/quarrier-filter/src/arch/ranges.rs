//! Values within ranges.

use super::{Bits, Kernels, Lane, Packed, WORD_ROWS, WORDS};

/// `low..=high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range<T> {
    pub(crate) low: T,
    pub(crate) high: T,
}

/// What a loop is to do.
pub(crate) struct Work<'a, T> {
    /// A block's values, at most 4,096.
    values: &'a [T],
    /// At least one.
    ranges: &'a [Range<T>],
    /// All ones where the rows outside of the ranges are wanted.
    flip: u64,
    /// The words to work on.
    which: u64,
    /// Whether a word is narrowed by what is found, rather than set to it.
    narrow: bool,
}

/// For the words `which`: sets in `out` (or, where `narrow`, leaves of it) the rows whose value
/// lies in one of `ranges`, or in none of them where `outside`. Bits behind the last row are 0.
pub(crate) fn select<T: Lane>(
    kernels: &Kernels,
    values: &[T],
    (ranges, outside): (&[Range<T>], bool),
    (which, narrow): (u64, bool),
    out: &mut Bits,
) {
    let whole = values.len() / WORD_ROWS;
    let rest = values.len() % WORD_ROWS;
    let flip = if outside { !0 } else { 0 };
    let run = T::of(kernels).ranges;
    let within = if whole >= 64 { !0 } else { (1 << whole) - 1 };
    if which & within != 0 {
        let work = Work { values, ranges, flip, which: which & within, narrow };
        // SAFETY: kernels are handed out for what the CPU has, and the words are whole.
        unsafe { run(&work, out) };
    }
    if rest > 0 && which >> whole & 1 == 1 {
        let mut copy = [T::default(); WORD_ROWS];
        copy[..rest].copy_from_slice(&values[whole * WORD_ROWS..]);
        let mut last = Bits::NONE;
        let work = Work { values: &copy, ranges, flip, which: 1, narrow: false };
        // SAFETY: as above: 64 values, one word.
        unsafe { run(&work, &mut last) };
        let found = last.0[0] & ((1 << rest) - 1);
        out.0[whole] = if narrow { out.0[whole] & found } else { found };
    }
}

/// # Safety
/// The CPU has the features of `S`; 64 values stand at 64 times each word of `which`.
#[inline(always)]
pub(super) unsafe fn run<S: Packed<T>, T: Lane>(work: &Work<'_, T>, out: &mut Bits) {
    // SAFETY: the caller's promise, handed on.
    unsafe {
        match work.ranges {
            [one] => each::<S, T, _>(work, *one, out),
            several => each::<S, T, _>(work, several, out),
        }
    }
}

/// One range, or several of them. (No closures here: what the compiler does not inline loses the
/// features, and a comparison then costs forty times as much.)
trait Ranges<T> {
    /// # Safety
    /// As [`Packed`].
    unsafe fn found<S: Packed<T>>(&self, values: *const T) -> u64
    where
        T: Lane;
}

impl<T> Ranges<T> for Range<T> {
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn found<S: Packed<T>>(&self, values: *const T) -> u64
    where
        T: Lane,
    {
        // SAFETY: the caller's promise, handed on.
        unsafe { S::between(values, *self) }
    }
}

impl<T> Ranges<T> for &[Range<T>] {
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn found<S: Packed<T>>(&self, values: *const T) -> u64
    where
        T: Lane,
    {
        let mut found = 0;
        for range in *self {
            // SAFETY: the caller's promise, handed on.
            found |= unsafe { S::between(values, *range) };
        }
        found
    }
}

/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn each<S: Packed<T>, T: Lane, R: Ranges<T>>(work: &Work<'_, T>, ranges: R, out: &mut Bits) {
    let first = work.values.as_ptr();
    let flip = work.flip;
    if work.which == !0 && !work.narrow {
        for at in 0..WORDS {
            // SAFETY: 64 values stand there.
            out.0[at] = unsafe { ranges.found::<S>(first.add(at * WORD_ROWS)) } ^ flip;
        }
        return;
    }
    let kept = if work.narrow { 0 } else { !0 };
    let mut which = work.which;
    while which != 0 {
        let at = which.trailing_zeros() as usize;
        which &= which - 1;
        // SAFETY: 64 values stand there.
        let found = unsafe { ranges.found::<S>(first.add(at * WORD_ROWS)) } ^ flip;
        out.0[at] = found & (out.0[at] | kept);
    }
}
