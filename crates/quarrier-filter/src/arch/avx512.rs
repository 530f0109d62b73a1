//! AVX-512: a comparison is one instruction that returns a mask.
//!
//! `low <= v <= high` is one unsigned comparison of `high - v` with `high - low`, so that the
//! subtraction takes `v` from memory.

use std::arch::x86_64::{
    __m512i, _CMP_LE_OQ, _CMP_UNORD_Q, _mm256_loadu_si256, _mm512_add_epi32, _mm512_and_si512,
    _mm512_cmp_pd_mask, _mm512_cmple_epu8_mask, _mm512_cmple_epu16_mask, _mm512_cmple_epu32_mask,
    _mm512_cmple_epu64_mask, _mm512_cvtepu16_epi32, _mm512_loadu_pd, _mm512_loadu_si512,
    _mm512_mask_cmp_pd_mask, _mm512_mask_i32gather_epi32, _mm512_set1_epi8, _mm512_set1_epi16,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_set1_pd, _mm512_sllv_epi32, _mm512_srli_epi32,
    _mm512_sub_epi8, _mm512_sub_epi16, _mm512_sub_epi32, _mm512_sub_epi64, _mm512_test_epi32_mask,
};

use super::portable::Portable;
use super::{FloatRange, Packed, PackedFloats, Range, facade};

pub(crate) struct Avx512;

/// Implements `between` for one width.
macro_rules! between {
    ($lane:ty, $signed:ty, $set:ident, $sub:ident, $at_most:ident, $($at:literal)+) => {
        // # Safety: the contract of `Packed`.
        #[inline(always)]
        #[allow(clippy::cast_possible_wrap, reason = "bits, not numbers")]
        unsafe fn between(values: *const $lane, range: Range<$lane>) -> u64 {
            // SAFETY: the caller promises the features, and 64 values. Each offset in `$at` begins
            // a vector of the 64 bytes that the unaligned load reads, and together the vectors are
            // the 64 values.
            unsafe {
                let high = $set(range.high as $signed);
                let span = $set(range.high.wrapping_sub(range.low) as $signed);
                let mut found = 0;
                $(
                    let now = _mm512_loadu_si512(values.add($at).cast());
                    found |= u64::from($at_most($sub(high, now), span)) << $at;
                )+
                found
            }
        }
    };
}

impl Packed<u8> for Avx512 {
    between!(u8, i8, _mm512_set1_epi8, _mm512_sub_epi8, _mm512_cmple_epu8_mask, 0);

    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn member(values: *const u8, base: u32, table: &[u32]) -> u64 {
        // SAFETY: the contract of `Portable::member`, 64 readable values, is part of this
        // function's.
        unsafe { Portable::member(values, base, table) }
    }
}

impl Packed<u16> for Avx512 {
    between!(u16, i16, _mm512_set1_epi16, _mm512_sub_epi16, _mm512_cmple_epu16_mask, 0 32);

    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn member(values: *const u16, base: u32, table: &[u32]) -> u64 {
        // SAFETY: the caller promises the features, and 64 values of two bytes: the unaligned load
        // reads 16, at 0, 16, 32 and 48. `look_up` needs only the features.
        unsafe {
            let mut found = 0;
            let mut at = 0;
            while at < 64 {
                let codes = _mm512_cvtepu16_epi32(_mm256_loadu_si256(values.add(at).cast()));
                found |= look_up(codes, base, table) << at;
                at += 16;
            }
            found
        }
    }
}

impl Packed<u32> for Avx512 {
    between!(u32, i32, _mm512_set1_epi32, _mm512_sub_epi32, _mm512_cmple_epu32_mask, 0 16 32 48);

    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn member(values: *const u32, base: u32, table: &[u32]) -> u64 {
        // SAFETY: the caller promises the features, and 64 values of four bytes: the unaligned load
        // reads 16, at 0, 16, 32 and 48. `look_up` needs only the features.
        unsafe {
            let mut found = 0;
            let mut at = 0;
            while at < 64 {
                found |= look_up(_mm512_loadu_si512(values.add(at).cast()), base, table) << at;
                at += 16;
            }
            found
        }
    }
}

impl Packed<u64> for Avx512 {
    between!(u64, i64, _mm512_set1_epi64, _mm512_sub_epi64, _mm512_cmple_epu64_mask,
        0 8 16 24 32 40 48 56);

    // # Safety: the contract of `Packed`.
    #[inline(always)]
    unsafe fn member(values: *const u64, base: u32, table: &[u32]) -> u64 {
        // SAFETY: the contract of `Portable::member`, 64 readable values, is part of this
        // function's.
        unsafe { Portable::member(values, base, table) }
    }
}

impl PackedFloats for Avx512 {
    // # Safety: the contract of `PackedFloats`.
    #[inline(always)]
    unsafe fn between_floats(values: *const f64, range: FloatRange) -> u64 {
        // SAFETY: the caller promises the features, and 64 floats: the unaligned load reads 8, at
        // 0, 8, … 56.
        unsafe {
            let (low, high) = (_mm512_set1_pd(range.low), _mm512_set1_pd(range.high));
            let nan = if range.nan { !0 } else { 0 };
            let mut found = 0;
            let mut at = 0;
            while at < 64 {
                let now = _mm512_loadu_pd(values.add(at));
                let above = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(low, now);
                let within = _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(above, now, high);
                let none = _mm512_mask_cmp_pd_mask::<_CMP_UNORD_Q>(nan, now, now);
                found |= u64::from(within | none) << at;
                at += 8;
            }
            found
        }
    }
}

/// Returns the bits in `table` of 16 codes, each the sum of a lane and `base`.
///
/// # Safety
/// The features of [`Avx512`] are available.
#[inline(always)]
unsafe fn look_up(lanes: __m512i, base: u32, table: &[u32]) -> u64 {
    // SAFETY: the caller promises the features. The gather reads `table[place]` only for lanes in
    // `within`, where `place <= last < table.len()`; a place has 27 bits, so it is not negative as
    // an `i32`. A `u32` of the table is aligned to the 4 bytes that the gather reads.
    unsafe {
        let codes = _mm512_add_epi32(lanes, _mm512_set1_epi32(base.cast_signed()));
        let places = _mm512_srli_epi32::<5>(codes);
        let last = u32::try_from(table.len()).unwrap_or(u32::MAX).wrapping_sub(1);
        let within = if table.is_empty() {
            0
        } else {
            _mm512_cmple_epu32_mask(places, _mm512_set1_epi32(last.cast_signed()))
        };
        let words = _mm512_mask_i32gather_epi32::<4>(
            _mm512_set1_epi32(0),
            within,
            places,
            table.as_ptr().cast(),
        );
        let bit = _mm512_and_si512(codes, _mm512_set1_epi32(31));
        u64::from(_mm512_test_epi32_mask(words, _mm512_sllv_epi32(_mm512_set1_epi32(1), bit)))
    }
}

facade!(
    Avx512,
    Avx512,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vpopcntdq,bmi1,popcnt"
);
