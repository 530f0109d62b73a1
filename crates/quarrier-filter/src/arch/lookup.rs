//! Selects the codes whose bit is set in a table.
//!
//! If few rows of a word are left, each is looked up separately; otherwise all 64 at once.

use super::{Bits, Kernels, Lane, Packed, WORD_ROWS, WORDS};

/// From this number of rows left in a word, all 64 are looked up at once.
const TOGETHER_ROWS: u32 = 24;

/// The input of a loop.
pub(crate) struct Work<'a, T> {
    /// A block's values, at most 4,096, a multiple of 64.
    values: &'a [T],
    /// The difference between every value and its lane.
    base: u32,
    /// Bit `value % 32` of word `value / 32`.
    table: &'a [u32],
    /// A mask of the words to process; each of them has values.
    which: u64,
}

/// Keeps, in the words `which` of `out`, the rows whose value (`base` plus its lane) has its bit
/// set in `table`. `values` are padded to a multiple of 64. Returns a mask of the words that are
/// not 0.
pub(crate) fn narrow<T: Lane>(
    kernels: &Kernels,
    (values, base): (&[T], u32),
    table: &[u32],
    which: u64,
    out: &mut Bits,
) -> u64 {
    let words = values.len() / WORD_ROWS;
    let within = if words >= WORDS { !0 } else { (1 << words) - 1 };
    let work = Work { values, base, table, which: which & within };
    // SAFETY: `kernels` only returns loops whose features the CPU has. `within` has only words with
    // 64 values, as the loop requires of `which`.
    unsafe { (T::of(kernels).lookup)(&work, out) }
}

/// # Safety
/// The CPU has the features of `S`.
#[inline(always)]
pub(super) unsafe fn run<S: Packed<T>, T: Lane>(work: &Work<'_, T>, out: &mut Bits) -> u64 {
    let mut which = work.which;
    while which != 0 {
        let at = which.trailing_zeros() as usize;
        which &= which - 1;
        let word = &mut out.0[at];
        let values = &work.values[at * WORD_ROWS..][..WORD_ROWS];
        *word = if word.count_ones() < TOGETHER_ROWS {
            alone(values, (work.table, work.base), *word)
        } else {
            // SAFETY: the caller promises the features of `S`, and `values` is a slice of 64
            // values.
            *word & unsafe { S::member(values.as_ptr(), work.base, work.table) }
        };
    }
    out.words()
}

/// Looks up the rows of `left` one by one, and returns those whose value has its bit set.
#[inline(always)]
fn alone<T: Lane>(values: &[T], (table, base): (&[u32], u32), mut left: u64) -> u64 {
    let mut found = 0;
    while left != 0 {
        let row = left.trailing_zeros() as usize;
        left &= left - 1;
        found |= bit(table, values[row].place() + base as usize) << row;
    }
    found
}

/// Returns the bit of one value; 0 past the end of the table.
#[inline(always)]
pub(crate) fn bit(table: &[u32], place: usize) -> u64 {
    u64::from(table.get(place / 32).is_some_and(|word| word >> (place % 32) & 1 == 1))
}
