//! NEON: four vectors of 16 bytes at a time.

use std::arch::aarch64::{
    uint8x16_t, vaddq_u8, vandq_u8, vceqq_u8, vcgeq_s8, vcgeq_u8, vcleq_u8, vcltq_u8, vdupq_n_s8,
    vdupq_n_u8, vget_low_u8, vget_low_u16, vget_low_u32, vgetq_lane_u64, vld1_u8, vld1_u16,
    vld1_u32, vld1q_u8, vld1q_u16, vld1q_u32, vmaxvq_u8, vmull_high_u8, vmull_high_u16,
    vmull_high_u32, vmull_u8, vmull_u16, vmull_u32, vorrq_u8, vpaddq_u8, vpaddq_u16, vpaddq_u32,
    vpaddq_u64, vqtbl1q_u8, vreinterpretq_s8_u8, vreinterpretq_u64_u8, vsubq_u8,
};

use super::{Lanes, Short, Text};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon;

/// Bit `i % 8` in byte `i`: ANDed with lanes of 0 or -1 and added up pairwise, the bytes become a
/// mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// The indexes of the bytes of a vector.
const PLACES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Returns a bit for each of 64 bytes, which are 0 or -1.
///
/// # Safety
/// NEON is available.
#[inline(always)]
pub(super) unsafe fn mask([a, b, c, d]: [uint8x16_t; 4]) -> u64 {
    // SAFETY: the caller promises NEON. `BITS` has the 16 bytes that `vld1q_u8` reads.
    unsafe {
        let bits = vld1q_u8(BITS.as_ptr());
        let low = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
        let high = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
        let halves = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)))
    }
}

/// Bit i is set if byte i is `byte`.
///
/// # Safety
/// NEON is available.
#[inline(always)]
pub(super) unsafe fn equal([a, b, c, d]: [uint8x16_t; 4], byte: u8) -> u64 {
    // SAFETY: the caller promises NEON, the only condition of these calls.
    unsafe {
        let byte = vdupq_n_u8(byte);
        mask([vceqq_u8(a, byte), vceqq_u8(b, byte), vceqq_u8(c, byte), vceqq_u8(d, byte)])
    }
}

/// Returns -1 for each of 16 bytes that ends plain text, else 0.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn is_stop(bytes: uint8x16_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, the only condition of these intrinsics.
    unsafe {
        let quote = vceqq_u8(bytes, vdupq_n_u8(b'"'));
        let back = vceqq_u8(bytes, vdupq_n_u8(b'\\'));
        vorrq_u8(vorrq_u8(quote, back), vcltq_u8(bytes, vdupq_n_u8(0x20)))
    }
}

/// Returns -1 for each of 16 bytes that is not ASCII, else 0.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn is_wide(bytes: uint8x16_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, the only condition of these intrinsics.
    unsafe { vcgeq_u8(bytes, vdupq_n_u8(0x80)) }
}

/// Returns -1 for each of 16 bytes that is a decimal digit, else 0.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn is_digit(bytes: uint8x16_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, the only condition of these intrinsics.
    unsafe { vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(b'0')), vdupq_n_u8(9)) }
}

/// Returns the indexes that move `digits` bytes to the right end of a vector. Those of the bytes
/// before them are negative, so out of range for a lookup, which turns them into zeros.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn from(digits: usize) -> uint8x16_t {
    // SAFETY: the caller promises NEON. `PLACES` has the 16 bytes that `vld1q_u8` reads.
    unsafe { vaddq_u8(vld1q_u8(PLACES.as_ptr()), vdupq_n_u8((digits as u8).wrapping_sub(16))) }
}

/// Returns the number that sixteen digits form, the last digit in the last byte: adds them up in
/// pairs, fours and eights.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn sum(values: uint8x16_t) -> u64 {
    const TENS: [u8; 16] = [10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1];
    const HUNDREDS: [u16; 8] = [100, 1, 100, 1, 100, 1, 100, 1];
    const MYRIADS: [u32; 4] = [10_000, 1, 10_000, 1];
    // SAFETY: the caller promises NEON. Each array has the 16 bytes that a `vld1q` reads, and so
    // the 8 that a `vld1` reads.
    unsafe {
        let low = vmull_u8(vget_low_u8(values), vld1_u8(TENS.as_ptr()));
        let pairs = vpaddq_u16(low, vmull_high_u8(values, vld1q_u8(TENS.as_ptr())));
        let low = vmull_u16(vget_low_u16(pairs), vld1_u16(HUNDREDS.as_ptr()));
        let fours = vpaddq_u32(low, vmull_high_u16(pairs, vld1q_u16(HUNDREDS.as_ptr())));
        let low = vmull_u32(vget_low_u32(fours), vld1_u32(MYRIADS.as_ptr()));
        let eights = vpaddq_u64(low, vmull_high_u32(fours, vld1q_u32(MYRIADS.as_ptr())));
        vgetq_lane_u64::<0>(eights) * 100_000_000 + vgetq_lane_u64::<1>(eights)
    }
}

impl Lanes for Neon {
    type Ahead = [uint8x16_t; 4];

    const TEXT_BYTES: usize = 64;

    #[inline(always)]
    unsafe fn look(p: *const u8) -> [uint8x16_t; 4] {
        // SAFETY: the caller promises NEON, and AHEAD_BYTES (64) at `p`: `vld1q_u8` reads 16, at 0,
        // 16, 32 and 48.
        unsafe { [vld1q_u8(p), vld1q_u8(p.add(16)), vld1q_u8(p.add(32)), vld1q_u8(p.add(48))] }
    }

    #[inline(always)]
    unsafe fn starts_with([a, b, c, d]: [uint8x16_t; 4], text: &Short) -> bool {
        // SAFETY: the caller promises NEON. `text.bytes` is an array of the AHEAD_BYTES that `look`
        // reads.
        unsafe {
            let own = Self::look(text.bytes.as_ptr());
            let same = [
                vceqq_u8(a, own[0]),
                vceqq_u8(b, own[1]),
                vceqq_u8(c, own[2]),
                vceqq_u8(d, own[3]),
            ];
            (!mask(same)).trailing_zeros() as usize >= text.len
        }
    }

    const HAS_DIGITS: bool = true;

    #[inline(always)]
    unsafe fn digits([a, b, c, d]: [uint8x16_t; 4], skip: usize) -> u64 {
        // SAFETY: the caller promises NEON, the only condition of these calls.
        unsafe { mask([is_digit(a), is_digit(b), is_digit(c), is_digit(d)]) >> skip }
    }

    #[inline(always)]
    unsafe fn value(p: *const u8, whole: usize, digits: usize) -> u64 {
        // SAFETY: the caller promises NEON, and 17 readable bytes at `p`, of which `vld1q_u8` reads
        // 16.
        unsafe {
            let from = from(digits);
            // True is -1: from the skipped byte on, take the byte one place later.
            let is_after = vcgeq_s8(vreinterpretq_s8_u8(from), vdupq_n_s8(whole as i8));
            let from = vsubq_u8(from, is_after);
            let values = vsubq_u8(vld1q_u8(p), vdupq_n_u8(b'0'));
            sum(vqtbl1q_u8(values, from))
        }
    }

    #[inline(always)]
    unsafe fn checked(p: *const u8, len: usize) -> Option<u64> {
        // SAFETY: the caller promises NEON, and AHEAD_BYTES at `p`, of which `vld1q_u8` reads 16.
        unsafe {
            let values = vsubq_u8(vld1q_u8(p), vdupq_n_u8(b'0'));
            let values = vqtbl1q_u8(values, from(len));
            if vmaxvq_u8(values) <= 9 { Some(sum(values)) } else { None }
        }
    }

    #[inline(always)]
    unsafe fn text([a, b, c, d]: [uint8x16_t; 4], skip: usize) -> Text {
        // SAFETY: the caller promises NEON, the only condition of these calls.
        unsafe {
            Text {
                stops: mask([is_stop(a), is_stop(b), is_stop(c), is_stop(d)]) >> skip,
                wide: mask([is_wide(a), is_wide(b), is_wide(c), is_wide(d)]) >> skip,
            }
        }
    }
}
