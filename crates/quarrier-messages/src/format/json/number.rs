//! Numbers, exact.

use crate::Fault;
use crate::arch::{AHEAD_BYTES, Lanes};

/// A number as a column holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Decimal { mantissa: i64, scale: u8 },
    Float(f64),
}

/// Decimal digits that 64 bits hold, whatever they are.
const DIGITS_MAX: usize = 19;
const SCALE_MAX: usize = 18;

/// The number that starts at `at`, and where it ends: behind the last byte that could belong to it.
#[inline]
pub(super) fn number(bytes: &[u8], at: usize) -> Result<(Number, usize), Fault> {
    let is_negative = bytes.get(at) == Some(&b'-');
    let first = at + usize::from(is_negative);
    let (mut mantissa, mut end) = digits(bytes, first, 0);
    if end == first {
        return Err(Fault::new(end, "a number without digits"));
    }
    if bytes[first] == b'0' && end > first + 1 {
        return Err(Fault::new(first, "a number that starts with 0"));
    }
    let mut count = end - first;
    let mut scale = 0;
    if bytes.get(end) == Some(&b'.') {
        let point = end;
        (mantissa, end) = digits(bytes, point + 1, mantissa);
        scale = end - point - 1;
        count += scale;
        if scale == 0 {
            return Err(Fault::new(end, "a number that ends with its point"));
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        return exponent(bytes, at, end + 1);
    }
    if count > DIGITS_MAX || scale > SCALE_MAX {
        return float(bytes, at, end);
    }
    let Some(mantissa) = signed(mantissa, is_negative) else { return float(bytes, at, end) };
    let number = match scale {
        0 => Number::Integer(mantissa),
        _ => Number::Decimal { mantissa, scale: scale as u8 },
    };
    Ok((number, end))
}

/// The same, many digits at once where they are few enough.
///
/// # Safety
/// The instruction set of `L` is there.
#[inline(always)]
pub(super) unsafe fn number_on<L: Lanes>(
    bytes: &[u8],
    at: usize,
) -> Result<(Number, usize), Fault> {
    if L::HAS_DIGITS && at + 1 + AHEAD_BYTES <= bytes.len() {
        // SAFETY: the caller promised the instruction set; the bytes are there.
        if let Some(found) = unsafe { ahead::<L>(bytes, at) } {
            return Ok(found);
        }
    }
    number(bytes, at)
}

/// A number of at most 15 digits, or of up to 19 without a fraction; `None` where it is another,
/// or wrong.
///
/// # Safety
/// The instruction set of `L` is there, and so are [`AHEAD_BYTES`] and one at `at`.
#[inline(always)]
unsafe fn ahead<L: Lanes>(bytes: &[u8], at: usize) -> Option<(Number, usize)> {
    let is_negative = bytes[at] == b'-';
    let first = at + usize::from(is_negative);
    let p = bytes[first..].as_ptr();
    // SAFETY: as the caller promised.
    let others = unsafe { L::no_digits(p) };
    let whole = others.trailing_zeros() as usize;
    if whole == 0 || (bytes[first] == b'0' && whole > 1) {
        return None;
    }
    let end = first + whole;
    let stop = *bytes.get(end)?;
    if stop == b'.' {
        let part = (others >> whole >> 1).trailing_zeros() as usize;
        let end = end + 1 + part;
        if part == 0 || whole + part > 15 || matches!(bytes.get(end)?, b'e' | b'E') {
            return None;
        }
        // SAFETY: as above; at most 15 digits and their point.
        let mantissa = unsafe { L::value(p, whole, whole + part) } as i64;
        let mantissa = if is_negative { -mantissa } else { mantissa };
        return Some((Number::Decimal { mantissa, scale: part as u8 }, end));
    }
    if matches!(stop, b'e' | b'E') || whole > DIGITS_MAX {
        return None;
    }
    // SAFETY: as above; the second look is at bytes before `end`, and 16 behind their start.
    let magnitude = unsafe {
        if whole <= 16 {
            L::value(p, whole, whole)
        } else {
            let rest = whole - 16;
            L::value(p, 16, 16) * POWERS[rest] + L::value(p.add(16), rest, rest)
        }
    };
    Some((Number::Integer(signed(magnitude, is_negative)?), end))
}

const POWERS: [u64; 4] = [1, 10, 100, 1_000];

#[inline]
fn signed(magnitude: u64, is_negative: bool) -> Option<i64> {
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Goes on with `value` over the digits at `at`; wraps where there are too many.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&d| d < 10) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (value, at)
}

#[cold]
fn exponent(bytes: &[u8], start: usize, at: usize) -> Result<(Number, usize), Fault> {
    let at = at + usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let (_, end) = digits(bytes, at, 0);
    if end == at {
        return Err(Fault::new(end, "a number with an exponent without digits"));
    }
    float(bytes, start, end)
}

#[cold]
fn float(bytes: &[u8], start: usize, end: usize) -> Result<(Number, usize), Fault> {
    let text = std::str::from_utf8(&bytes[start..end]).unwrap_or_default();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Number::Float(value), end)),
        _ => Err(Fault::new(start, "a number beyond what 64 bits hold")),
    }
}
