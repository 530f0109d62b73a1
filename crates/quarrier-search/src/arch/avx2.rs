//! AVX2: `vpshufb` looks up 32 half-bytes in a table of 16.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16,
};

use super::{ByteSets, Lanes, facade, half_byte_tables};

pub(crate) struct Avx2;

impl Avx2 {
    /// Returns a mask of the positions, of the 32 bytes at `p`, where any bucket remains.
    ///
    /// # Safety
    /// AVX2 is available, and `32 + K - 1` bytes are readable at `p`.
    #[inline(always)]
    unsafe fn half<const K: usize>(tables: &[[[u8; 16]; 2]; K], p: *const u8) -> u32 {
        // SAFETY: the caller promises AVX2, which every intrinsic here needs. `place` is below `K`,
        // so `p.add(place)` has 32 of the `32 + K - 1` readable bytes, as `look` requires.
        unsafe {
            let mut left = look(&tables[0], p);
            for (place, table) in tables.iter().enumerate().skip(1) {
                left = _mm256_and_si256(left, look(table, p.add(place)));
            }
            let none = _mm256_cmpeq_epi8(left, _mm256_setzero_si256());
            !(_mm256_movemask_epi8(none) as u32)
        }
    }

    /// Returns a mask of the positions, of the 32 bytes at `p`, where these bytes are.
    ///
    /// # Safety
    /// AVX2 is available, and `32 + K - 1` bytes are readable at `p`.
    #[inline(always)]
    unsafe fn half_equal<const K: usize>(bytes: &[u8; K], p: *const u8) -> u32 {
        // SAFETY: the caller promises AVX2, which every intrinsic here needs. `place` is below `K`, so
        // `p.add(place)` has 32 of the `32 + K - 1` readable bytes. All loads are unaligned.
        unsafe {
            let mut left = _mm256_set1_epi8(-1);
            for (place, byte) in bytes.iter().enumerate() {
                let text = _mm256_loadu_si256(p.add(place).cast());
                let same = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(*byte as i8));
                left = _mm256_and_si256(left, same);
            }
            _mm256_movemask_epi8(left) as u32
        }
    }
}

/// Looks up the buckets of the 32 bytes at `p`.
///
/// A function rather than a closure, because a closure cannot be `#[inline(always)]`: outlined, it
/// would be compiled without AVX2, and each intrinsic would be a call.
///
/// # Safety
/// AVX2 is available, and 32 bytes are readable at `p`.
#[inline(always)]
unsafe fn look(table: &[[u8; 16]; 2], p: *const u8) -> __m256i {
    // SAFETY: the caller promises AVX2, and 32 readable bytes at `p`. Each half table is an array
    // of the 16 bytes that `_mm_loadu_si128` reads. All loads are unaligned.
    unsafe {
        let nibble = _mm256_set1_epi8(0x0F);
        let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(table[0].as_ptr().cast()));
        let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(table[1].as_ptr().cast()));
        let bytes = _mm256_loadu_si256(p.cast());
        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
        let lower = _mm256_and_si256(bytes, nibble);
        _mm256_and_si256(_mm256_shuffle_epi8(low, lower), _mm256_shuffle_epi8(high, upper))
    }
}

impl Lanes for Avx2 {
    type Table = [[u8; 16]; 2];

    fn table(sets: &ByteSets) -> Self::Table {
        half_byte_tables(sets)
    }

    // # Safety: the contract of `Lanes::passing`.
    #[inline(always)]
    unsafe fn passing<const K: usize>(tables: &[Self::Table; K], p: *const u8) -> u64 {
        // SAFETY: the caller promises AVX2, and `64 + K - 1` readable bytes: `half` needs `32 + K -
        // 1`, at `p` and at `p + 32`.
        unsafe {
            let low = Self::half(tables, p);
            let high = Self::half(tables, p.add(32));
            u64::from(low) | u64::from(high) << 32
        }
    }

    // # Safety: the contract of `Lanes::equal`.
    #[inline(always)]
    unsafe fn equal<const K: usize>(bytes: &[u8; K], p: *const u8) -> u64 {
        // SAFETY: the caller promises AVX2, and `64 + K - 1` readable bytes: `half_equal` needs `32 + K - 1`,
        // at `p` and at `p + 32`.
        unsafe {
            let low = Self::half_equal(bytes, p);
            let high = Self::half_equal(bytes, p.add(32));
            u64::from(low) | u64::from(high) << 32
        }
    }
}

facade!(Avx2, Avx2, "avx2");
