//! NEON: a comparison returns -1 or 0 for each value. The results of 64 values are narrowed to a
//! byte each, then added up to a mask.
//!
//! `low <= v <= high` is one unsigned comparison of `high - v` with `high - low`.

use std::arch::aarch64::{
    uint8x16_t, uint16x8_t, uint32x4_t, uint64x2_t, vandq_u8, vandq_u64, vbicq_u64, vceqq_f64,
    vcleq_f64, vcleq_u8, vcleq_u16, vcleq_u32, vcleq_u64, vdupq_n_f64, vdupq_n_u8, vdupq_n_u16,
    vdupq_n_u32, vdupq_n_u64, vgetq_lane_u64, vld1q_f64, vld1q_u8, vld1q_u16, vld1q_u32, vld1q_u64,
    vorrq_u64, vpaddq_u8, vreinterpretq_u8_u16, vreinterpretq_u16_u32, vreinterpretq_u32_u64,
    vreinterpretq_u64_u8, vsubq_u8, vsubq_u16, vsubq_u32, vsubq_u64, vuzp1q_u8, vuzp1q_u16,
    vuzp1q_u32,
};

use super::portable::Portable;
use super::{FloatRange, Packed, PackedFloats, Range, facade};

pub(crate) struct Neon;

/// Bit `i % 8` in byte `i`: ANDed with lanes of 0 or -1 and added up pairwise, the bytes become a
/// mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// Returns a bit for each of 64 bytes, which are 0 or -1.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn bit_mask(bytes: [uint8x16_t; 4]) -> u64 {
    // SAFETY: the caller promises NEON. `BITS` has the 16 bytes that `vld1q_u8` reads.
    unsafe {
        let bits = vld1q_u8(BITS.as_ptr());
        let [first, second, third, fourth] = bytes;
        let low = vpaddq_u8(vandq_u8(first, bits), vandq_u8(second, bits));
        let high = vpaddq_u8(vandq_u8(third, bits), vandq_u8(fourth, bits));
        let halves = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)))
    }
}

/// `member` is the portable one: NEON has no gather instruction.
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

/// Returns -1 for each of 16 bytes that is at most `span` below `high`, else 0.
///
/// # Safety
/// NEON is available, and 16 values are readable.
#[inline(always)]
unsafe fn within8(values: *const u8, high: uint8x16_t, span: uint8x16_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, and 16 values of a byte, which `vld1q_u8` reads.
    unsafe { vcleq_u8(vsubq_u8(high, vld1q_u8(values)), span) }
}

/// Does the same for 16 values of two bytes, and narrows the results to a byte each.
///
/// # Safety
/// NEON is available, and 16 values are readable.
#[inline(always)]
unsafe fn within16(values: *const u16, high: uint16x8_t, span: uint16x8_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, and 16 values: `vld1q_u16` reads 8, at 0 and at 8.
    unsafe {
        let low = vcleq_u16(vsubq_u16(high, vld1q_u16(values)), span);
        let next = vcleq_u16(vsubq_u16(high, vld1q_u16(values.add(8))), span);
        vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(next))
    }
}

/// Does the same for 8 values of four bytes, and narrows the results to two bytes each.
///
/// # Safety
/// NEON is available, and 8 values are readable.
#[inline(always)]
unsafe fn half32(values: *const u32, high: uint32x4_t, span: uint32x4_t) -> uint16x8_t {
    // SAFETY: the caller promises NEON, and 8 values: `vld1q_u32` reads 4, at 0 and at 4.
    unsafe {
        let low = vcleq_u32(vsubq_u32(high, vld1q_u32(values)), span);
        let next = vcleq_u32(vsubq_u32(high, vld1q_u32(values.add(4))), span);
        vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(next))
    }
}

/// Does the same for 16 values of four bytes, and narrows the results to a byte each.
///
/// # Safety
/// NEON is available, and 16 values are readable.
#[inline(always)]
unsafe fn within32(values: *const u32, high: uint32x4_t, span: uint32x4_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, and 16 values: `half32` reads 8, at 0 and at 8.
    unsafe {
        let (low, next) = (half32(values, high, span), half32(values.add(8), high, span));
        vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(next))
    }
}

/// Narrows the results of 16 values of eight bytes, two to a vector, to a byte each.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn bytes64(pairs: [uint64x2_t; 8]) -> uint8x16_t {
    // SAFETY: the caller promises NEON, the only condition of these calls.
    unsafe {
        let [a, b, c, d, e, f, g, h] = pairs;
        let fours = [narrow64(a, b), narrow64(c, d), narrow64(e, f), narrow64(g, h)];
        let low = vuzp1q_u16(vreinterpretq_u16_u32(fours[0]), vreinterpretq_u16_u32(fours[1]));
        let high = vuzp1q_u16(vreinterpretq_u16_u32(fours[2]), vreinterpretq_u16_u32(fours[3]));
        vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high))
    }
}

/// Narrows four values of eight bytes to four bytes each.
///
/// # Safety
/// NEON is available.
#[inline(always)]
unsafe fn narrow64(low: uint64x2_t, high: uint64x2_t) -> uint32x4_t {
    // SAFETY: the caller promises NEON, the only condition of these intrinsics.
    unsafe { vuzp1q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high)) }
}

/// Returns -1 for each of two values of eight bytes that is at most `span` below `high`, else 0.
///
/// # Safety
/// NEON is available, and two values are readable.
#[inline(always)]
unsafe fn within64(values: *const u64, high: uint64x2_t, span: uint64x2_t) -> uint64x2_t {
    // SAFETY: the caller promises NEON, and two values, which `vld1q_u64` reads.
    unsafe { vcleq_u64(vsubq_u64(high, vld1q_u64(values)), span) }
}

/// Implements `between` for one width; `$within` takes 16 values and returns a byte for each.
macro_rules! between {
    ($lane:ty, $set:ident, $within:ident) => {
        // # Safety: the contract of `Packed`.
        #[inline(always)]
        unsafe fn between(values: *const $lane, range: Range<$lane>) -> u64 {
            // SAFETY: the caller promises NEON, and 64 values: `$within` reads 16, at 0, 16, 32 and
            // 48.
            unsafe {
                let high = $set(range.high);
                let span = $set(range.high.wrapping_sub(range.low));
                bit_mask([
                    $within(values, high, span),
                    $within(values.add(16), high, span),
                    $within(values.add(32), high, span),
                    $within(values.add(48), high, span),
                ])
            }
        }
    };
}

impl Packed<u8> for Neon {
    between!(u8, vdupq_n_u8, within8);
    member!(u8);
}

impl Packed<u16> for Neon {
    between!(u16, vdupq_n_u16, within16);
    member!(u16);
}

impl Packed<u32> for Neon {
    between!(u32, vdupq_n_u32, within32);
    member!(u32);
}

/// Compares 16 values of eight bytes, and narrows the results to a byte each.
///
/// # Safety
/// NEON is available, and 16 values are readable.
#[inline(always)]
unsafe fn sixteen64(values: *const u64, high: uint64x2_t, span: uint64x2_t) -> uint8x16_t {
    // SAFETY: the caller promises NEON, and 16 values: `within64` reads 2, at 0, 2, … 14.
    unsafe {
        bytes64([
            within64(values, high, span),
            within64(values.add(2), high, span),
            within64(values.add(4), high, span),
            within64(values.add(6), high, span),
            within64(values.add(8), high, span),
            within64(values.add(10), high, span),
            within64(values.add(12), high, span),
            within64(values.add(14), high, span),
        ])
    }
}

impl Packed<u64> for Neon {
    between!(u64, vdupq_n_u64, sixteen64);
    member!(u64);
}

/// A range of floats, as vectors.
#[derive(Clone, Copy)]
struct Floats {
    low: std::arch::aarch64::float64x2_t,
    high: std::arch::aarch64::float64x2_t,
    /// All ones if NaN is in the range.
    nan: uint64x2_t,
}

impl Floats {
    /// Returns -1 for each of two floats in the range, else 0.
    ///
    /// # Safety
    /// NEON is available, and two values are readable.
    #[inline(always)]
    unsafe fn within(self, values: *const f64) -> uint64x2_t {
        // SAFETY: the caller promises NEON, and two floats, which `vld1q_f64` reads.
        unsafe {
            let now = vld1q_f64(values);
            let within = vandq_u64(vcleq_f64(self.low, now), vcleq_f64(now, self.high));
            vorrq_u64(within, vbicq_u64(self.nan, vceqq_f64(now, now)))
        }
    }

    /// Returns a byte, -1 or 0, for each of 16 floats.
    ///
    /// # Safety
    /// NEON is available, and 16 values are readable.
    #[inline(always)]
    unsafe fn sixteen(self, values: *const f64) -> uint8x16_t {
        // SAFETY: the caller promises NEON, and 16 floats: `within` reads 2, at 0, 2, … 14.
        unsafe {
            bytes64([
                self.within(values),
                self.within(values.add(2)),
                self.within(values.add(4)),
                self.within(values.add(6)),
                self.within(values.add(8)),
                self.within(values.add(10)),
                self.within(values.add(12)),
                self.within(values.add(14)),
            ])
        }
    }
}

impl PackedFloats for Neon {
    // # Safety: the contract of `PackedFloats`.
    #[inline(always)]
    unsafe fn between_floats(values: *const f64, range: FloatRange) -> u64 {
        // SAFETY: the caller promises NEON, and 64 floats: `sixteen` reads 16, at 0, 16, 32 and 48.
        unsafe {
            let floats = Floats {
                low: vdupq_n_f64(range.low),
                high: vdupq_n_f64(range.high),
                nan: vdupq_n_u64(if range.nan { !0 } else { 0 }),
            };
            bit_mask([
                floats.sixteen(values),
                floats.sixteen(values.add(16)),
                floats.sixteen(values.add(32)),
                floats.sixteen(values.add(48)),
            ])
        }
    }
}

facade!(Neon, Neon, "neon");
