//! Parses numbers, many digits at once. Where it returns `None`, the general parser takes over.

use crate::arch::Lanes;
use crate::build::Cell;

/// Maximum number of digits that vectors add up.
const LANE_DIGITS: usize = 16;
/// Maximum number of digits of a 64-bit integer.
const DIGITS_MAX: usize = 19;

/// Parses the integer of `len` digits at `p`, as [`digits`](super::bytes::digits) does. The next
/// byte is not a digit.
///
/// # Safety
/// The instruction set of `L` is available, and [`AHEAD_BYTES`](crate::arch::AHEAD_BYTES) are
/// readable after the value.
#[inline(always)]
pub(super) unsafe fn whole<L: Lanes>(p: *const u8, len: usize) -> Option<i64> {
    // SAFETY: the caller promises the instruction set. `L::checked` needs AHEAD_BYTES, which are
    // readable at every offset of the value.
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

/// Parses the exact number of `len` bytes at `p`, as [`number`](crate::format::decimal::number)
/// does. The next byte is not a digit.
///
/// # Safety
/// The contract of [`whole`].
#[inline(always)]
pub(super) unsafe fn number<L: Lanes>(p: *const u8, len: usize) -> Option<Cell<'static>> {
    // SAFETY: the caller promises the instruction set, and AHEAD_BYTES after the value, so as many
    // at its start, which `L::no_digits` needs; a sign to skip is in the value, since `len` is not
    // 0. `L::value` needs 17 bytes. `point` is at most `len` where it is read.
    unsafe {
        if len == 0 || len > LANE_DIGITS {
            return None;
        }
        let is_negative = *p == b'-';
        let (p, len) = (p.add(usize::from(is_negative)), len - usize::from(is_negative));
        let stops = L::no_digits(p);
        let point = stops.trailing_zeros() as usize;
        let second = (stops & stops.wrapping_sub(1)).trailing_zeros() as usize;
        let (count, scale) = match point {
            _ if len == 0 => return None,
            _ if point == len => (len, 0),
            _ if *p.add(point) == b'.' && second == len && len > 1 => (len - 1, len - 1 - point),
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
