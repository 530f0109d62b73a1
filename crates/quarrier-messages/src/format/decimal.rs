//! Numbers and keywords that fill a whole field, as in FIX, CSV and XML.

use crate::build::Cell;
use crate::{DIGITS_MAX as EXACT_MAX, exact};

/// Any number of this many decimal digits fits 64 bits.
const DIGITS_MAX: usize = 19;
const SCALE_MAX: usize = 18;

/// Returns the value of an untyped field: a number as in JSON, or else a string. Numbers that a
/// column of numbers could not restore unchanged (`007`, `+1`, `.5`, `1.`) are strings.
pub(in crate::format) fn found(text: &str) -> Cell<'_> {
    let bytes = text.as_bytes();
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let is_number = match digits {
        [b'0'] | [b'0', b'.' | b'e' | b'E', ..] | [b'1'..=b'9', ..] => {
            digits.last().is_some_and(u8::is_ascii_digit)
        }
        _ => false,
    };
    if !is_number {
        return Cell::Text(text);
    }
    number(bytes).or_else(|| exponent(text)).unwrap_or(Cell::Text(text))
}

/// Parses an exact number, `-?[0-9]*(\.[0-9]*)?` with at least one digit; leading zeros are
/// allowed. `None` for anything else. Returns a float if 38 digits do not hold it.
#[inline]
pub(in crate::format) fn number(text: &[u8]) -> Option<Cell<'static>> {
    let is_negative = text.first() == Some(&b'-');
    let digits = &text[usize::from(is_negative)..];
    let (mut mantissa, mut point) = (0u64, None);
    for (at, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let count = digits.len() - usize::from(point.is_some());
    let scale = point.map_or(0, |point| digits.len() - point - 1);
    if count == 0 {
        return None;
    }
    if count > DIGITS_MAX || scale > SCALE_MAX {
        return long(text);
    }
    match (signed(mantissa, is_negative), scale) {
        (Some(value), 0) => Some(Cell::Integer(value)),
        (Some(mantissa), scale) => Some(Cell::Decimal { mantissa, scale: scale as u8 }),
        (None, _) => long(text),
    }
}

#[inline]
fn signed(magnitude: u64, is_negative: bool) -> Option<i64> {
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Parses `-?[0-9]*(\.[0-9]*)?` with at least one digit and any number of them; `None` if it
/// exceeds the range of floats.
#[cold]
pub(in crate::format) fn long(text: &[u8]) -> Option<Cell<'static>> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, mut part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    // If there is no room for all digits, drop trailing zeros first.
    let count = |part: &str| match whole {
        "" => part.trim_start_matches('0').len(),
        whole => whole.len() + part.len(),
    };
    let fits = |part: &str| count(part).max(part.len()) <= usize::from(EXACT_MAX);
    while let Some(shorter) = part.strip_suffix('0').filter(|_| !fits(part)) {
        part = shorter;
    }
    if count(part) == 0 {
        return Some(Cell::Integer(0));
    }
    if fits(part) {
        let mantissa = format!("{sign}{whole}{part}").parse().ok()?;
        return Some(Cell::exact(mantissa, part.len() as u8));
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let text = format!("{sign}{whole}.{part}");
    let value = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some(if exact::is_text_rounded(&text) { Cell::Rounded(value) } else { Cell::Float(value) })
}

#[cold]
fn float(text: &[u8]) -> Option<Cell<'static>> {
    let value = std::str::from_utf8(text).ok()?.parse::<f64>().ok()?;
    value.is_finite().then_some(Cell::Float(value))
}

/// Parses a number with an exponent, as in JSON.
#[cold]
fn exponent(text: &str) -> Option<Cell<'static>> {
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let is_plain = mantissa.bytes().last().is_some_and(|byte| byte.is_ascii_digit())
        && number(mantissa.as_bytes()).is_some();
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_whole = !exponent.is_empty() && exponent.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain && is_whole { float(text.as_bytes()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{found, number};
    use crate::build::Cell::{self, Decimal, Float, Integer, Text};

    #[test]
    fn only_restorable_numbers_are_numbers() {
        let cases: [(&str, Cell<'_>); 23] = [
            ("0", Integer(0)),
            ("-12", Integer(-12)),
            ("9223372036854775807", Integer(i64::MAX)),
            ("-9223372036854775808", Integer(i64::MIN)),
            ("9223372036854775808", Cell::exact(9_223_372_036_854_775_808, 0)),
            ("18446744073709551614", Cell::exact(18_446_744_073_709_551_614, 0)),
            ("66.43", Decimal { mantissa: 6643, scale: 2 }),
            ("-0.50", Decimal { mantissa: -50, scale: 2 }),
            ("0.0000000000000000001", Cell::exact(1, 19)),
            ("1e3", Float(1000.0)),
            ("1.5E-3", Float(0.0015)),
            ("0e0", Float(0.0)),
            ("1e999", Text("1e999")),
            ("1e", Text("1e")),
            ("1.e5", Text("1.e5")),
            ("007", Text("007")),
            ("-", Text("-")),
            ("", Text("")),
            ("+1", Text("+1")),
            (".5", Text(".5")),
            ("1.", Text("1.")),
            ("1.2.3", Text("1.2.3")),
            ("1 ", Text("1 ")),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), expected, "{text:?}");
        }
    }

    #[test]
    fn thirty_eight_digits_are_exact_and_no_more() {
        let nines = |count| "9".repeat(count);
        let zeros = "0".repeat(60);
        let most = 10_i128.pow(38) - 1;
        for (text, expected) in [
            (nines(38), Cell::exact(most, 0)),
            (format!("-{}.{}", nines(30), nines(8)), Cell::exact(-most, 8)),
            (format!("0.{}", nines(38)), Cell::exact(most, 38)),
            (format!("{}.5{zeros}", nines(37)), Cell::exact(most - 4, 1)),
            (format!("1{}", &zeros[..37]), Cell::exact(10_i128.pow(37), 0)),
            (format!("1.5{zeros}"), Cell::exact(15 * 10_i128.pow(36), 37)),
            (format!("0.{zeros}"), Integer(0)),
            (format!("1{zeros}"), Float(1e60)),
            (nines(39), Cell::Rounded(1e39)),
            (format!("0.{}1", &zeros[..38]), Float(1e-39)),
            (format!("0.{}", nines(39)), Cell::Rounded(1.0)),
        ] {
            assert_eq!(found(&text), expected, "{text}");
        }
        assert_eq!(number("0".repeat(400).as_bytes()), Some(Integer(0)));
        assert_eq!(number("9".repeat(400).as_bytes()), None);
    }

    #[test]
    fn a_fix_number_may_have_zeros_around_and_no_digit_on_one_side() {
        let cases = [
            ("00023", Some(Integer(23))),
            ("-0023.230", Some(Decimal { mantissa: -23_230, scale: 3 })),
            ("23.", Some(Integer(23))),
            (".5", Some(Decimal { mantissa: 5, scale: 1 })),
            ("0000000000000000000000012", Some(Integer(12))),
            ("-0000000000000000000000012.5", Some(Decimal { mantissa: -125, scale: 1 })),
            ("0000000000000000000000000", Some(Integer(0))),
            (".", None),
            ("", None),
            ("-", None),
            ("1-", None),
            ("1e5", None),
        ];
        for (text, expected) in cases {
            assert_eq!(number(text.as_bytes()), expected, "{text:?}");
        }
    }
}
