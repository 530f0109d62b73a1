//! Converts up to sixteen decimal digits at once, for all instruction sets that include AVX2.

use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi128_si64, _mm_loadu_si128,
    _mm_madd_epi16, _mm_maddubs_epi16, _mm_min_epu8, _mm_movemask_epi8, _mm_packus_epi32,
    _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32, _mm_setr_epi8, _mm_shuffle_epi8, _mm_sub_epi8,
};

/// Returns the number that `digits` digits at `p` form, `whole` of which precede a byte to skip.
/// Moves the digits to the right end of a vector, with zeros before them, then adds them up in
/// pairs, fours and eights.
///
/// # Safety
/// AVX2 is available, and 16 bytes are readable at `p`.
#[inline(always)]
pub(super) unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
    // SAFETY: the caller promises AVX2, which includes the SSE sets of these intrinsics, and the 16
    // bytes that the unaligned load reads.
    unsafe {
        let from = from(digits);
        // True is -1: from the skipped byte on, take the byte one place later.
        let is_after = _mm_cmpgt_epi8(from, _mm_set1_epi8(whole as i8 - 1));
        let from = _mm_sub_epi8(from, is_after);
        let values = _mm_sub_epi8(_mm_loadu_si128(p.cast()), _mm_set1_epi8(b'0' as i8));
        // The shuffle turns negative indexes into zeros.
        sum(_mm_shuffle_epi8(values, from))
    }
}

/// Parses the first `len` bytes at `p`, at most 16, as a number; `None` if one of them is not a
/// digit.
///
/// # Safety
/// AVX2 is available, and 16 bytes are readable at `p`.
#[inline(always)]
pub(super) unsafe fn checked(p: *const u8, len: usize) -> Option<u64> {
    // SAFETY: the caller promises AVX2, which includes the SSE sets of these intrinsics, and the 16
    // bytes that the unaligned load reads.
    unsafe {
        let values = _mm_sub_epi8(_mm_loadu_si128(p.cast()), _mm_set1_epi8(b'0' as i8));
        let values = _mm_shuffle_epi8(values, from(len));
        let at_most_nine = _mm_min_epu8(values, _mm_set1_epi8(9));
        let are_digits = _mm_movemask_epi8(_mm_cmpeq_epi8(values, at_most_nine)) == 0xFFFF;
        if are_digits { Some(sum(values)) } else { None }
    }
}

/// Returns the indexes that move `digits` bytes to the right end of a vector.
///
/// # Safety
/// AVX2 is available.
#[inline(always)]
unsafe fn from(digits: usize) -> __m128i {
    // SAFETY: the caller promises AVX2, the only condition of these intrinsics.
    unsafe {
        let places = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        _mm_add_epi8(places, _mm_set1_epi8(digits as i8 - 16))
    }
}

/// Returns the number that sixteen digits form, the last digit in the last byte.
///
/// # Safety
/// AVX2 is available.
#[inline(always)]
unsafe fn sum(values: __m128i) -> u64 {
    // SAFETY: the caller promises AVX2, the only condition of these intrinsics.
    unsafe {
        let pairs = _mm_maddubs_epi16(values, _mm_set1_epi16(0x010A));
        let fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x0001_0064));
        let fours = _mm_packus_epi32(fours, fours);
        let eights = _mm_cvtsi128_si64(_mm_madd_epi16(fours, _mm_set1_epi32(0x0001_2710))) as u64;
        (eights & 0xFFFF_FFFF) * 100_000_000 + (eights >> 32)
    }
}
