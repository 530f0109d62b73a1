//! NEON: `tbl` looks up 16 half-bytes in a table of 16.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vpaddq_u8, vqtbl1q_u8,
    vreinterpretq_u64_u8, vshrq_n_u8, vtstq_u8,
};

use super::{ByteSets, Lanes, facade, half_byte_tables};

pub(crate) struct Neon;

/// Bit `i % 8` in byte `i`: ANDed with lanes of 0 or -1 and added up pairwise, the bytes become a
/// mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

impl Neon {
    /// Returns, for each of the 16 bytes at `p`, the bit of its lane if any bucket remains, else 0.
    ///
    /// # Safety
    /// NEON is available, and `16 + K - 1` bytes are readable at `p`.
    #[inline(always)]
    unsafe fn quarter<const K: usize>(
        tables: &[[[u8; 16]; 2]; K],
        bits: uint8x16_t,
        p: *const u8,
    ) -> uint8x16_t {
        // SAFETY: the caller promises NEON, which every intrinsic here needs. `place` is below `K`,
        // so `p.add(place)` has 16 of the `16 + K - 1` readable bytes, as `look` requires.
        unsafe {
            let mut left = look(&tables[0], p);
            for (place, table) in tables.iter().enumerate().skip(1) {
                left = vandq_u8(left, look(table, p.add(place)));
            }
            vandq_u8(vtstq_u8(left, left), bits)
        }
    }

    /// Returns, for each of the 16 bytes at `p`, the bit of its lane if these bytes are there, else 0.
    ///
    /// # Safety
    /// NEON is available, and `16 + K - 1` bytes are readable at `p`.
    #[inline(always)]
    unsafe fn quarter_equal<const K: usize>(
        bytes: &[u8; K],
        bits: uint8x16_t,
        p: *const u8,
    ) -> uint8x16_t {
        // SAFETY: the caller promises NEON, which every intrinsic here needs. `place` is below `K`, so
        // `p.add(place)` has 16 of the `16 + K - 1` readable bytes. Loads have no requirement on alignment.
        unsafe {
            let mut left = bits;
            for (place, byte) in bytes.iter().enumerate() {
                left = vandq_u8(left, vceqq_u8(vld1q_u8(p.add(place)), vdupq_n_u8(*byte)));
            }
            left
        }
    }

    /// Turns the bits of 64 lanes into a mask.
    ///
    /// # Safety
    /// NEON is available.
    #[inline(always)]
    unsafe fn mask(lanes: [uint8x16_t; 4]) -> u64 {
        let [first, second, third, fourth] = lanes;
        // SAFETY: the caller promises NEON, which every intrinsic here needs.
        unsafe {
            // Three pairwise additions turn each eight lanes into a byte of the mask.
            let halves = vpaddq_u8(vpaddq_u8(first, second), vpaddq_u8(third, fourth));
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)))
        }
    }
}

/// Looks up the buckets of the 16 bytes at `p`; a function for the same reason as in `avx2`.
///
/// # Safety
/// NEON is available, and 16 bytes are readable at `p`.
#[inline(always)]
unsafe fn look(table: &[[u8; 16]; 2], p: *const u8) -> uint8x16_t {
    // SAFETY: the caller promises NEON, and 16 readable bytes at `p`. Each half table is an array
    // of the 16 bytes that `vld1q_u8` reads, without a requirement on alignment.
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

    // # Safety: the contract of `Lanes::passing`.
    #[inline(always)]
    unsafe fn passing<const K: usize>(tables: &[Self::Table; K], p: *const u8) -> u64 {
        // SAFETY: the caller promises NEON, and `64 + K - 1` readable bytes: `quarter` needs `16 +
        // K - 1`, at each of the four offsets up to `p + 48`. `BITS` has the 16 bytes that
        // `vld1q_u8` reads.
        unsafe {
            let bits = vld1q_u8(BITS.as_ptr());
            let first = Self::quarter(tables, bits, p);
            let second = Self::quarter(tables, bits, p.add(16));
            let third = Self::quarter(tables, bits, p.add(32));
            let fourth = Self::quarter(tables, bits, p.add(48));
            Self::mask([first, second, third, fourth])
        }
    }

    // # Safety: the contract of `Lanes::equal`.
    #[inline(always)]
    unsafe fn equal<const K: usize>(bytes: &[u8; K], p: *const u8) -> u64 {
        // SAFETY: the caller promises NEON, and `64 + K - 1` readable bytes: `quarter_equal` needs `16 + K -
        // 1`, at each of the four offsets up to `p + 48`. `BITS` has the 16 bytes that `vld1q_u8` reads.
        unsafe {
            let bits = vld1q_u8(BITS.as_ptr());
            let first = Self::quarter_equal(bytes, bits, p);
            let second = Self::quarter_equal(bytes, bits, p.add(16));
            let third = Self::quarter_equal(bytes, bits, p.add(32));
            let fourth = Self::quarter_equal(bytes, bits, p.add(48));
            Self::mask([first, second, third, fourth])
        }
    }
}

facade!(Neon, Neon, "neon");
