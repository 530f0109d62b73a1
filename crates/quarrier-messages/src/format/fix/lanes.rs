//! Parses numbers, many digits at once. The general parser handles a `None`.

use crate::arch::Lanes;
use crate::build::Cell;

/// Digits that lanes add up.
const LANE_DIGITS: usize = 16;
/// Digits of 64 bits.
const DIGITS_MAX: usize = 19;

/// The integer of `len` digits at `p`, as [`digits`](super::bytes::digits) returns it. No digit
/// follows.
///
/// # Safety
/// The instruction set of `L` is there, and [`AHEAD_BYTES`](crate::arch::AHEAD_BYTES) more bytes
/// than a value has are readable at `p`.
#[inline(always)]
pub(super) unsafe fn whole<L: Lanes>(p: *const u8, len: usize) -> Option<i64> {
    // SAFETY: the caller promised the instruction set and the bytes.
    unsafe {
        if len == 0 || len > DIGITS_MAX {
            return None;
        }
        if len <= LANE_DIGITS {
            return Some(L::checked(p, len)? as i64);
        }
        let first = len - LANE_DIGITS;
        let low = L::checked(p.add(first), LANE_DIGITS)?;
        i64::try_from(L::checked(p, first)? * 10u64.pow(LANE_DIGITS as u32) + low).ok()
    }
}

/// The exact number of `len` bytes at `p`, as [`number`](crate::format::decimal::number) returns it. No
/// digit follows.
///
/// # Safety
/// As for [`whole`].
#[inline(always)]
pub(super) unsafe fn number<L: Lanes>(p: *const u8, len: usize) -> Option<Cell<'static>> {
    // SAFETY: the caller promised the instruction set and the bytes; one that is skipped is the
    // value's.
    unsafe {
        if len == 0 || len > LANE_DIGITS {
            return None;
        }
        let is_negative = *p == b'-';
        let (p, len) = (p.add(usize::from(is_negative)), len - usize::from(is_negative));
        let stops = L::no_digits(p);
        let point = stops.trailing_zeros() as usize;
        let behind = (stops & stops.wrapping_sub(1)).trailing_zeros() as usize;
        let (count, scale) = match point {
            _ if len == 0 => return None,
            _ if point == len => (len, 0),
            _ if *p.add(point) == b'.' && behind == len && len > 1 => (len - 1, len - 1 - point),
            _ => return None,
        };
        let magnitude = L::value(p, point, count) as i64;
        let mantissa = if is_negative { -magnitude } else { magnitude };
        Some(match scale {
            0 => Cell::Integer(mantissa),
            scale => Cell::Decimal { mantissa, scale: scale as u8 },
        })
    }
}
