//! Parses numbers exactly.

use crate::Fault;
use crate::arch::Lanes;
use crate::build::Cell;
use crate::format::decimal;

/// A number in the form of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Decimal {
        mantissa: i64,
        scale: u8,
    },
    Float(f64),
    /// A number that exceeds 64 bits.
    Long(Cell<'static>),
}

/// Any number of this many decimal digits fits 64 bits.
const DIGITS_MAX: usize = 19;
const SCALE_MAX: usize = 18;

/// Parses the number at `at`; returns it and its end, after the last byte that could be part of it.
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
        return long(bytes, at, end);
    }
    let Some(mantissa) = signed(mantissa, is_negative) else { return long(bytes, at, end) };
    let number = match scale {
        0 => Number::Integer(mantissa),
        _ => Number::Decimal { mantissa, scale: scale as u8 },
    };
    Ok((number, end))
}

/// A short number whose sign and digits are valid; its value is not computed yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    /// The offset of the first digit.
    first: usize,
    whole: usize,
    /// The number of decimals; 0 for none.
    part: usize,
}

impl Written {
    /// Finds the number at `at`, if it has at most 15 digits, or up to 19 without a fraction.
    /// `digits` is the mask of the digits from there on, of which `seen` bytes were examined; these
    /// and one more are readable. `None` if the number is longer, invalid, or extends past them.
    #[inline(always)]
    pub(super) fn find(bytes: &[u8], at: usize, digits: u64, seen: usize) -> Option<Self> {
        let is_negative = usize::from(bytes[at] == b'-');
        let first = at + is_negative;
        let digits = digits >> is_negative;
        let whole = digits.trailing_ones() as usize;
        let stop = *bytes.get(first + whole)?;
        if whole == 0 || whole > DIGITS_MAX || (bytes[first] == b'0' && whole > 1) {
            return None;
        }
        let mut part = 0;
        let mut last = stop;
        if stop == b'.' {
            part = (digits >> whole >> 1).trailing_ones() as usize;
            last = *bytes.get(first + whole + 1 + part)?;
            if part == 0 || whole + part > 15 {
                return None;
            }
        }
        let written = Written { first, whole, part };
        // The next byte must have been examined, since it may be a digit.
        (!matches!(last, b'e' | b'E') && written.end() < at + seen).then_some(written)
    }

    /// Returns the offset of its end.
    #[inline(always)]
    pub(super) fn end(self) -> usize {
        self.first + self.whole + self.part + usize::from(self.part > 0)
    }

    /// Returns the value of the number that starts at `at`; `None` if it exceeds 64 bits.
    ///
    /// # Safety
    /// The instruction set of `L` is available, and [`AHEAD_BYTES`](crate::arch::AHEAD_BYTES) are
    /// readable from the number's end on.
    #[inline(always)]
    pub(super) unsafe fn value<L: Lanes>(self, bytes: &[u8], at: usize) -> Option<Number> {
        let is_negative = self.first > at;
        let (whole, part) = (self.whole, self.part);
        let p = bytes[self.first..].as_ptr();
        // SAFETY: the caller promises the instruction set, and AHEAD_BYTES from the number's end
        // on, so the 17 bytes that `L::value` needs at any offset of the number. `find` allows at
        // most 15 digits and a point, within 16 bytes; or 16 digits; or 19, the last 3 of which the
        // second call takes, 16 bytes further.
        let magnitude = unsafe {
            if part > 0 || whole <= 16 {
                L::value(p, whole, whole + part)
            } else {
                let rest = whole - 16;
                L::value(p, 16, 16) * POWERS[rest] + L::value(p.add(16), rest, rest)
            }
        };
        let mantissa = signed(magnitude, is_negative)?;
        Some(match part {
            0 => Number::Integer(mantissa),
            _ => Number::Decimal { mantissa, scale: part as u8 },
        })
    }
}

const POWERS: [u64; 4] = [1, 10, 100, 1_000];

#[inline]
fn signed(magnitude: u64, is_negative: bool) -> Option<i64> {
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Continues `value` with the digits at `at`; wraps if they are too many.
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
fn long(bytes: &[u8], start: usize, end: usize) -> Result<(Number, usize), Fault> {
    match decimal::long(&bytes[start..end]) {
        Some(cell) => Ok((Number::Long(cell), end)),
        None => Err(beyond(start)),
    }
}

fn beyond(start: usize) -> Fault {
    Fault::new(start, "a number beyond the range of 64-bit floats")
}

#[cold]
fn float(bytes: &[u8], start: usize, end: usize) -> Result<(Number, usize), Fault> {
    let text = std::str::from_utf8(&bytes[start..end]).unwrap_or_default();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Number::Float(value), end)),
        _ => Err(beyond(start)),
    }
}
