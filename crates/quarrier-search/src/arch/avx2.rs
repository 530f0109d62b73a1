//! AVX2: `vpshufb` looks up 32 half-bytes in a table of 16.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16,
};

use super::{ByteSets, Lanes, facade, half_byte_tables};

pub(crate) struct Avx2;

impl Avx2 {
    /// # Safety
    /// AVX2 is there, and `32 + K - 1` bytes are readable at `p`.
    #[inline(always)]
    unsafe fn half<const K: usize>(tables: &[[[u8; 16]; 2]; K], p: *const u8) -> u32 {
        // SAFETY: the caller promised AVX2 and the readable bytes.
        unsafe {
            let mut left = look(&tables[0], p);
            for (place, table) in tables.iter().enumerate().skip(1) {
                left = _mm256_and_si256(left, look(table, p.add(place)));
            }
            let none = _mm256_cmpeq_epi8(left, _mm256_setzero_si256());
            !(_mm256_movemask_epi8(none) as u32)
        }
    }
}

/// The buckets of 32 bytes at `p`. A function, since the attribute is not allowed on a closure: left
/// out of line, it has no AVX2, and every instruction becomes a call.
///
/// # Safety
/// AVX2 is there, and 32 bytes are readable at `p`.
#[inline(always)]
unsafe fn look(table: &[[u8; 16]; 2], p: *const u8) -> __m256i {
    // SAFETY: the caller promised AVX2 and the readable bytes; the tables are 16 bytes each.
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

    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn passing<const K: usize>(tables: &[Self::Table; K], p: *const u8) -> u64 {
        // SAFETY: the caller promised AVX2 and 64 + K - 1 readable bytes.
        unsafe {
            let low = Self::half(tables, p);
            let high = Self::half(tables, p.add(32));
            u64::from(low) | u64::from(high) << 32
        }
    }
}

facade!(Avx2, Avx2, "avx2");
