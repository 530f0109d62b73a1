//! AVX2: two vectors of 32 bytes at a time.

use std::arch::x86_64::{
    __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_max_epu8, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_sub_epi8,
};

use super::{Lanes, Short, Text, digits};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2;

/// Returns the top bits of 64 bytes.
///
/// # Safety
/// AVX2 is available.
#[inline(always)]
unsafe fn mask(low: __m256i, high: __m256i) -> u64 {
    // SAFETY: the caller promises AVX2, the only condition of these intrinsics.
    unsafe {
        let low = _mm256_movemask_epi8(low) as u32;
        u64::from(low) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
    }
}

impl Lanes for Avx2 {
    type Ahead = [__m256i; 2];

    const TEXT_BYTES: usize = 64;

    #[inline(always)]
    unsafe fn look(p: *const u8) -> [__m256i; 2] {
        // SAFETY: the caller promises AVX2, and AHEAD_BYTES (64) readable bytes at `p`: two
        // unaligned loads of 32.
        unsafe { [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())] }
    }

    #[inline(always)]
    unsafe fn starts_with([low, high]: [__m256i; 2], text: &Short) -> bool {
        // SAFETY: the caller promises AVX2. `text.bytes` is an array of the AHEAD_BYTES that `look`
        // reads.
        unsafe {
            let [own_low, own_high] = Self::look(text.bytes.as_ptr());
            let same = mask(_mm256_cmpeq_epi8(low, own_low), _mm256_cmpeq_epi8(high, own_high));
            (!same).trailing_zeros() as usize >= text.len
        }
    }

    const HAS_DIGITS: bool = true;

    #[inline(always)]
    unsafe fn digits([low, high]: [__m256i; 2], skip: usize) -> u64 {
        // SAFETY: the caller promises AVX2, the only condition of these calls.
        unsafe {
            let is_digit = |bytes| {
                let values = _mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0' as i8));
                let at_most_nine = _mm256_min_epu8(values, _mm256_set1_epi8(9));
                _mm256_cmpeq_epi8(values, at_most_nine)
            };
            mask(is_digit(low), is_digit(high)) >> skip
        }
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: the caller promises AVX2, and 17 readable bytes at `p`, of which `digits::value`
        // needs 16.
        unsafe { digits::value(p, whole, digits) }
    }

    #[inline(always)]
    unsafe fn checked(p: *const u8, len: usize) -> Option<u64> {
        // SAFETY: the caller promises AVX2, and AHEAD_BYTES at `p`, of which `digits::checked`
        // needs 16.
        unsafe { digits::checked(p, len) }
    }

    #[inline(always)]
    unsafe fn text([low, high]: [__m256i; 2], skip: usize) -> Text {
        // SAFETY: the caller promises AVX2, the only condition of these calls.
        unsafe {
            let is_stop = |bytes| {
                let quote = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'"' as i8));
                let back = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\\' as i8));
                let last = _mm256_set1_epi8(0x1F);
                let control = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, last), last);
                _mm256_or_si256(_mm256_or_si256(quote, back), control)
            };
            Text { stops: mask(is_stop(low), is_stop(high)) >> skip, wide: mask(low, high) >> skip }
        }
    }
}
