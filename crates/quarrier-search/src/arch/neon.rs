//! NEON: `tbl` looks up 16 half-bytes in a table of 16.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vpaddq_u8, vqtbl1q_u8,
    vreinterpretq_u64_u8, vshrq_n_u8, vtstq_u8,
};

use super::{ByteSets, Lanes, facade, half_byte_tables};

pub(crate) struct Neon;

/// Bit `i % 8` in byte `i`: ANDed with lanes of 0 or -1 and added up, they become a bit mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

impl Neon {
    /// The bit of its lane in every byte that has a bucket left, of 16 at `p`.
    ///
    /// # Safety
    /// NEON is there, and `16 + K - 1` bytes are readable at `p`.
    #[inline(always)]
    unsafe fn quarter<const K: usize>(
        tables: &[[[u8; 16]; 2]; K],
        bits: uint8x16_t,
        p: *const u8,
    ) -> uint8x16_t {
        // SAFETY: the caller promised NEON and the readable bytes.
        unsafe {
            let mut left = look(&tables[0], p);
            for (place, table) in tables.iter().enumerate().skip(1) {
                left = vandq_u8(left, look(table, p.add(place)));
            }
            vandq_u8(vtstq_u8(left, left), bits)
        }
    }
}

/// The buckets of 16 bytes at `p`; a function for the reason that AVX2's has.
///
/// # Safety
/// NEON is there, and 16 bytes are readable at `p`.
#[inline(always)]
unsafe fn look(table: &[[u8; 16]; 2], p: *const u8) -> uint8x16_t {
    // SAFETY: the caller promised NEON and the readable bytes; the tables are 16 bytes each.
    unsafe {
        let (low, high) = (vld1q_u8(table[0].as_ptr()), vld1q_u8(table[1].as_ptr()));
        let bytes = vld1q_u8(p);
        let lower = vandq_u8(bytes, vdupq_n_u8(0x0F));
        vandq_u8(vqtbl1q_u8(low, lower), vqtbl1q_u8(high, vshrq_n_u8::<4>(bytes)))
    }
}

impl Lanes for Neon {
    type Table = [[u8; 16]; 2];

    fn table(sets: &ByteSets) -> Self::Table {
        half_byte_tables(sets)
    }

    // # Safety: as the trait says.
    #[inline(always)]
    unsafe fn passing<const K: usize>(tables: &[Self::Table; K], p: *const u8) -> u64 {
        // SAFETY: the caller promised NEON and 64 + K - 1 readable bytes; `BITS` has 16.
        unsafe {
            let bits = vld1q_u8(BITS.as_ptr());
            let first = Self::quarter(tables, bits, p);
            let second = Self::quarter(tables, bits, p.add(16));
            let third = Self::quarter(tables, bits, p.add(32));
            let fourth = Self::quarter(tables, bits, p.add(48));
            // Three times neighbours are added: eight lanes become a byte.
            let halves = vpaddq_u8(vpaddq_u8(first, second), vpaddq_u8(third, fourth));
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)))
        }
    }
}

facade!(Neon, Neon, "neon");
