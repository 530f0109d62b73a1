//! AVX2: no unsigned comparison, so that `v` is in the range where `min(high - v, span)` is
//! `high - v` itself; 64-bit values are compared as signed ones with the sign turned.

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

/// `member` as everywhere: what AVX2 gathers is no faster.
macro_rules! member {
    ($lane:ty) => {
        // # Safety: as the trait says.
        #[inline(always)]
        unsafe fn member(values: *const $lane, base: u32, table: &[u32]) -> u64 {
            // SAFETY: the caller's promise, handed on.
            unsafe { Portable::member(values, base, table) }
        }
    };
}

/// # Safety
/// The features are there, and 32 bytes at `values`.
#[inline(always)]
unsafe fn load<T>(values: *const T) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(values.cast()) }
}

/// One bit for each of 32 bytes, 0 or -1.
///
/// # Safety
/// The features are there.
#[inline(always)]
unsafe fn byte_mask(bytes: __m256i) -> u64 {
    // SAFETY: the caller's promise.
    u64::from(unsafe { _mm256_movemask_epi8(bytes) }.cast_unsigned())
}

/// -1 for each of 32 bytes that is at most `span` below `high`.
///
/// # Safety
/// The features are there, and 32 values.
#[inline(always)]
unsafe fn within8(values: *const u8, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let under = _mm256_sub_epi8(high, load(values));
        _mm256_cmpeq_epi8(_mm256_min_epu8(under, span), under)
    }
}

/// The same for 16 values of two bytes.
///
/// # Safety
/// The features are there, and 16 values.
#[inline(always)]
unsafe fn within16(values: *const u16, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let under = _mm256_sub_epi16(high, load(values));
        _mm256_cmpeq_epi16(_mm256_min_epu16(under, span), under)
    }
}

/// The same for 32 values of two bytes, a byte each.
///
/// # Safety
/// The features are there, and 32 values.
#[inline(always)]
unsafe fn half16(values: *const u16, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let (a, b) = (within16(values, high, span), within16(values.add(16), high, span));
        // Packing works on halves: the quarters come out as 0 2 1 3.
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(a, b))
    }
}

/// The same for 8 values of four bytes.
///
/// # Safety
/// The features are there, and 8 values.
#[inline(always)]
unsafe fn within32(values: *const u32, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let under = _mm256_sub_epi32(high, load(values));
        _mm256_cmpeq_epi32(_mm256_min_epu32(under, span), under)
    }
}

/// The same for 32 values of four bytes, a byte each.
///
/// # Safety
/// The features are there, and 32 values.
#[inline(always)]
unsafe fn half32(values: *const u32, high: __m256i, span: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let (a, b) = (within32(values, high, span), within32(values.add(8), high, span));
        let (c, d) = (within32(values.add(16), high, span), within32(values.add(24), high, span));
        // Packing twice works on halves: four rows at a time, 0 2 4 6 1 3 5 7.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        _mm256_permutevar8x32_epi32(bytes, order)
    }
}

impl Packed<u8> for Avx2 {
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn between(values: *const u8, range: Range<u8>) -> u64 {
        // SAFETY: the caller promised the features and 64 values, two vectors.
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
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn between(values: *const u16, range: Range<u16>) -> u64 {
        // SAFETY: the caller promised the features and 64 values, four vectors.
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
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn between(values: *const u32, range: Range<u32>) -> u64 {
        // SAFETY: the caller promised the features and 64 values, eight vectors.
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
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn between(values: *const u64, range: Range<u64>) -> u64 {
        // SAFETY: the caller promised the features and 64 values, sixteen vectors.
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
    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn between_floats(values: *const f64, range: FloatRange) -> u64 {
        // SAFETY: the caller promised the features and 64 values, sixteen vectors.
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
