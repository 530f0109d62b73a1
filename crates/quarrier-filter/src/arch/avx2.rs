//! AVX2 has no unsigned comparison: a byte, short or int is in the range if `min(high - v, span)`
//! is `high - v` itself, and 64-bit values are compared as signed ones with the sign bit flipped.

use std::arch::x86_64::{
    __m256i, _CMP_LE_OQ, _CMP_UNORD_Q, _mm256_and_pd, _mm256_castsi256_pd, _mm256_cmp_pd,
    _mm256_cmpeq_epi8, _mm256_cmpeq_epi16, _mm256_cmpeq_epi32, _mm256_cmpgt_epi64, _mm256_loadu_pd,
    _mm256_loadu_si256, _mm256_min_epu8, _mm256_min_epu16, _mm256_min_epu32, _mm256_movemask_epi8,
    _mm256_movemask_pd, _mm256_or_pd, _mm256_packs_epi16, _mm256_packs_epi32,
    _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_setr_epi32, _mm256_sub_epi8,
    _mm256_sub_epi16, _mm256_sub_epi32, _mm256_sub_epi64, _mm256_xor_si256,
};

use super::portable::Portable;
use super::{FloatRange, Packed, PackedFloats, Range, facade};

pub(crate) struct Avx2;

/// `member` is the portable one: AVX2's gather instructions are no faster.
macro_rules! member {
    ($lane:ty) => {
        // # Safety: the contract of `Packed`.
        #[inline(always)]
        unsafe fn member(values: *const $lane, base: u32, table: &[u32]) -> u64 {
            // SAFETY: the contract of `Portable::member`, 64 readable values, is part of this
            // function's.
            unsafe { Portable::member(values, base, table) }
        }
    };
}

/// # Safety
/// AVX2 is available, and 32 bytes are readable at `values`.
#[inline(always)]
unsafe fn load<T>(values: *const T) -> __m256i {
    // SAFETY: the caller promises AVX2 and 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(values.cast()) }
}

/// Returns a bit for each of 32 bytes, which are 0 or -1.
///
/// # Safety
/// AVX2 is available.
#[inline(always)]
unsafe fn byte_mask(bytes: __m256i) -> u64 {
    // SAFETY: the caller promises AVX2, the only condition of this intrinsic.
    u64::from(unsafe { _mm256_movemask_epi8(bytes) }.cast_unsigned())
}

/// Returns -1 for each of 32 bytes that is at most `span` below `high`, else 0.
///
/// # Safety
/// AVX2 is available, and 32 values are readable.
#[inline(always)]
unsafe fn within8(values: *const u8, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller promises AVX2, and 32 values of a byte, the 32 bytes that `load` reads.
    unsafe {
        let under = _mm256_sub_epi8(high, load(values));
        _mm256_cmpeq_epi8(_mm256_min_epu8(under, span), under)
    }
}

/// Does the same for 16 values of two bytes.
///
/// # Safety
/// AVX2 is available, and 16 values are readable.
#[inline(always)]
unsafe fn within16(values: *const u16, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller promises AVX2, and 16 values of two bytes, the 32 bytes that `load` reads.
    unsafe {
        let under = _mm256_sub_epi16(high, load(values));
        _mm256_cmpeq_epi16(_mm256_min_epu16(under, span), under)
    }
}

/// Does the same for 32 values of two bytes, and narrows the results to a byte each.
///
/// # Safety
/// AVX2 is available, and 32 values are readable.
#[inline(always)]
unsafe fn half16(values: *const u16, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller promises AVX2, and 32 values: `within16` reads 16, at 0 and at 16.
    unsafe {
        let (a, b) = (within16(values, high, span), within16(values.add(16), high, span));
        // Packing works on halves of a vector: its quarters come out in the order 0 2 1 3.
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(a, b))
    }
}

/// Does the same for 8 values of four bytes.
///
/// # Safety
/// AVX2 is available, and 8 values are readable.
#[inline(always)]
unsafe fn within32(values: *const u32, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller promises AVX2, and 8 values of four bytes, the 32 bytes that `load` reads.
    unsafe {
        let under = _mm256_sub_epi32(high, load(values));
        _mm256_cmpeq_epi32(_mm256_min_epu32(under, span), under)
    }
}

/// Does the same for 32 values of four bytes, and narrows the results to a byte each.
///
/// # Safety
/// AVX2 is available, and 32 values are readable.
#[inline(always)]
unsafe fn half32(values: *const u32, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller promises AVX2, and 32 values: `within32` reads 8, at 0, 8, 16 and 24.
    unsafe {
        let (a, b) = (within32(values, high, span), within32(values.add(8), high, span));
        let (c, d) = (within32(values.add(16), high, span), within32(values.add(24), high, span));
        // Packing twice works on halves of a vector: groups of four rows come out in the order 0 2
        // 4 6 1 3 5 7.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        _mm256_permutevar8x32_epi32(bytes, order)
    }
}

impl Packed<u8> for Avx2 {
    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn between(values: *const u8, range: Range<u8>) -> u64 {
        // SAFETY: the caller promises AVX2, and 64 values: `within8` reads 32, at 0 and at 32.
        unsafe {
            let high = _mm256_set1_epi8(range.high.cast_signed());
            let span = _mm256_set1_epi8(range.high.wrapping_sub(range.low).cast_signed());
            let low = within8(values, high, span);
            byte_mask(low) | byte_mask(within8(values.add(32), high, span)) << 32
        }
    }

    member!(u8);
}

impl Packed<u16> for Avx2 {
    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn between(values: *const u16, range: Range<u16>) -> u64 {
        // SAFETY: the caller promises AVX2, and 64 values: `half16` reads 32, at 0 and at 32.
        unsafe {
            let high = _mm256_set1_epi16(range.high.cast_signed());
            let span = _mm256_set1_epi16(range.high.wrapping_sub(range.low).cast_signed());
            let low = half16(values, high, span);
            byte_mask(low) | byte_mask(half16(values.add(32), high, span)) << 32
        }
    }

    member!(u16);
}

impl Packed<u32> for Avx2 {
    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn between(values: *const u32, range: Range<u32>) -> u64 {
        // SAFETY: the caller promises AVX2, and 64 values: `half32` reads 32, at 0 and at 32.
        unsafe {
            let high = _mm256_set1_epi32(range.high.cast_signed());
            let span = _mm256_set1_epi32(range.high.wrapping_sub(range.low).cast_signed());
            let low = half32(values, high, span);
            byte_mask(low) | byte_mask(half32(values.add(32), high, span)) << 32
        }
    }

    member!(u32);
}

impl Packed<u64> for Avx2 {
    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn between(values: *const u64, range: Range<u64>) -> u64 {
        // SAFETY: the caller promises AVX2, and 64 values of eight bytes: `load` reads 4, at 0, 4,
        // … 60.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            let high = _mm256_set1_epi64x(range.high.cast_signed());
            let span = range.high.wrapping_sub(range.low).cast_signed();
            let span = _mm256_xor_si256(_mm256_set1_epi64x(span), sign);
            let mut found = 0;
            let mut at = 0;
            while at < 64 {
                let under = _mm256_sub_epi64(high, load(values.add(at)));
                let over = _mm256_cmpgt_epi64(_mm256_xor_si256(under, sign), span);
                let mask = _mm256_movemask_pd(_mm256_castsi256_pd(over)).cast_unsigned();
                found |= u64::from(mask ^ 15) << at;
                at += 4;
            }
            found
        }
    }

    member!(u64);
}

impl PackedFloats for Avx2 {
    // # Safety: the contract of `PackedFloats`.
    #[inline(always)]
    unsafe fn between_floats(values: *const f64, range: FloatRange) -> u64 {
        // SAFETY: the caller promises AVX2, and 64 floats: the unaligned load reads 4, at 0, 4, …
        // 60.
        unsafe {
            let (low, high) = (_mm256_set1_pd(range.low), _mm256_set1_pd(range.high));
            let nan = _mm256_castsi256_pd(_mm256_set1_epi64x(if range.nan { -1 } else { 0 }));
            let mut found = 0;
            let mut at = 0;
            while at < 64 {
                let now = _mm256_loadu_pd(values.add(at));
                let above = _mm256_cmp_pd::<_CMP_LE_OQ>(low, now);
                let within = _mm256_and_pd(above, _mm256_cmp_pd::<_CMP_LE_OQ>(now, high));
                let none = _mm256_and_pd(nan, _mm256_cmp_pd::<_CMP_UNORD_Q>(now, now));
                let mask = _mm256_movemask_pd(_mm256_or_pd(within, none));
                found |= u64::from(mask.cast_unsigned()) << at;
                at += 4;
            }
            found
        }
    }
}

facade!(Avx2, Avx2, "avx2,bmi1,popcnt");
