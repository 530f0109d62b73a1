//! The portable implementation, without special instructions.

use super::lookup::bit;
use super::{FloatRange, Lane, Packed, PackedFloats, Range, WORD_ROWS, facade};

pub(crate) struct Portable;

impl<T: Lane> Packed<T> for Portable {
    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn between(values: *const T, range: Range<T>) -> u64 {
        // SAFETY: the caller promises 64 readable values, which nobody changes while the function
        // runs.
        let values = unsafe { std::slice::from_raw_parts(values, WORD_ROWS) };
        let (low, high): (u64, u64) = (range.low.into(), range.high.into());
        // Wraps as the vectors do: a range may extend past the greatest value.
        let span = T::cut(high.wrapping_sub(low));
        let mut found = 0;
        for (at, value) in values.iter().enumerate() {
            let under = T::cut(high.wrapping_sub((*value).into()));
            found |= u64::from(under <= span) << at;
        }
        found
    }

    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn member(values: *const T, base: u32, table: &[u32]) -> u64 {
        // SAFETY: the caller promises 64 readable values, which nobody changes while the function
        // runs.
        let values = unsafe { std::slice::from_raw_parts(values, WORD_ROWS) };
        let mut found = 0;
        for (at, value) in values.iter().enumerate() {
            found |= bit(table, value.place() + base as usize) << at;
        }
        found
    }
}

impl PackedFloats for Portable {
    // # Safety: the contract of `PackedFloats`.
    #[inline(always)]
    unsafe fn between_floats(values: *const f64, range: FloatRange) -> u64 {
        // SAFETY: the caller promises 64 readable values, which nobody changes while the function
        // runs.
        let values = unsafe { std::slice::from_raw_parts(values, WORD_ROWS) };
        let mut found = 0;
        for (at, value) in values.iter().enumerate() {
            let within = (range.low <= *value) & (*value <= range.high);
            found |= u64::from(within | (range.nan & value.is_nan())) << at;
        }
        found
    }
}

facade!(Portable);
