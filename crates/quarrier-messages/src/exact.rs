//! Exact numbers of up to 38 digits: a mantissa divided by a power of ten.

/// The maximum number of digits of an exact number, and of its decimals.
pub const DIGITS_MAX: u8 = 38;

/// The greatest mantissa.
pub(crate) const MANTISSA_MAX: i128 = POWERS[DIGITS_MAX as usize] - 1;

/// 10^0 to 10^38.
pub(crate) const POWERS: [i128; DIGITS_MAX as usize + 1] = {
    let mut powers = [1; DIGITS_MAX as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// A mantissa in two halves: a single field would make every [`Cell`](crate::build::Cell) larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide {
    high: i64,
    low: u64,
}

impl From<i128> for Wide {
    fn from(mantissa: i128) -> Self {
        Wide { high: (mantissa >> 64) as i64, low: mantissa as u64 }
    }
}

impl From<Wide> for i128 {
    fn from(wide: Wide) -> Self {
        i128::from(wide.high) << 64 | i128::from(wide.low)
    }
}

/// Returns a mantissa at an equal or greater scale, if 38 digits hold it.
pub(crate) fn rescaled(mantissa: i128, scale: u8, to: u8) -> Option<i128> {
    let power = POWERS.get(usize::from(to.checked_sub(scale)?))?;
    mantissa.checked_mul(*power).filter(|grown| grown.unsigned_abs() <= MANTISSA_MAX as u128)
}

/// Returns the number of digits of a mantissa.
pub(crate) fn digits(mantissa: i128) -> u8 {
    let magnitude = mantissa.unsigned_abs();
    POWERS.partition_point(|&power| power as u128 <= magnitude) as u8
}

/// Converts to the nearest float.
pub(crate) fn as_float(mantissa: i128, scale: u8) -> f64 {
    // Both operands are exact within these bounds, and the division rounds once.
    if mantissa.unsigned_abs() < 1 << 53 && scale <= 22 {
        return mantissa as f64 / 10f64.powi(i32::from(scale));
    }
    format!("{mantissa}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// Numbers with mantissas up to this are farther apart than floats, so each has its own float, and
/// is that float's shortest decimal form.
const SURE_MAX: u128 = 1 << 52;

/// Whether [`is_rounded`] may be true for mantissas of this size.
pub(crate) fn may_be_rounded(mantissa: i128) -> bool {
    mantissa.unsigned_abs() >= SURE_MAX
}

/// Whether the conversion to the nearest float loses digits: the float is neither equal to the
/// number nor written like it.
pub(crate) fn is_rounded(mantissa: i128, scale: u8) -> bool {
    may_be_rounded(mantissa) && {
        let mut text = String::new();
        write(mantissa, scale, &mut text);
        !says(as_float(mantissa, scale), &text)
    }
}

/// Like [`is_rounded`], for a decimal number as a string, perhaps with redundant zeros but without
/// an exponent.
pub(crate) fn is_text_rounded(text: &str) -> bool {
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    text.parse().is_ok_and(|float| !says(float, text))
}

/// Whether `text`, a number without redundant zeros, equals the float: in its shortest form or in
/// full.
pub(crate) fn says(float: f64, text: &str) -> bool {
    *text == format!("{float}") || {
        let exactly = format!("{float:.40}");
        *text == *exactly.trim_end_matches('0').trim_end_matches('.')
    }
}

/// Appends the number, without trailing zeros after the point.
pub(crate) fn write(mantissa: i128, scale: u8, out: &mut String) {
    let digits = mantissa.unsigned_abs().to_string();
    let (whole, part) = match digits.len().checked_sub(usize::from(scale)) {
        None | Some(0) => ("0", format!("{digits:0>width$}", width = usize::from(scale))),
        Some(whole) => (&digits[..whole], digits[whole..].to_string()),
    };
    if mantissa < 0 {
        out.push('-');
    }
    out.push_str(whole);
    let part = part.trim_end_matches('0');
    if !part.is_empty() {
        out.push('.');
        out.push_str(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mantissa_in_halves_is_the_same() {
        for mantissa in [0, 1, -1, i128::MAX, i128::MIN, MANTISSA_MAX, -MANTISSA_MAX, 1 << 64] {
            assert_eq!(i128::from(Wide::from(mantissa)), mantissa);
        }
    }

    #[test]
    fn digits_are_counted() {
        for (mantissa, count) in [(0, 0), (9, 1), (10, 2), (-99, 2), (MANTISSA_MAX, 38)] {
            assert_eq!(digits(mantissa), count, "{mantissa}");
        }
    }

    #[test]
    fn a_float_of_the_same_value_loses_nothing() {
        let power = 1_i128 << 62;
        for (mantissa, scale) in [
            (power, 0),
            (1_i128 << 100, 0),
            (9_036_635_458_094_711, 13),
            (931_322_574_615_478_515_625, 30),
            (5 * POWERS[30], 31),
            (1, 38),
        ] {
            assert!(!is_rounded(mantissa, scale), "{mantissa} {scale}");
        }
        for (mantissa, scale) in
            [(power + 1, 0), (MANTISSA_MAX, 0), (MANTISSA_MAX, 38), (10_000_000_000_000_001, 16)]
        {
            assert!(is_rounded(mantissa, scale), "{mantissa} {scale}");
        }
    }

    #[test]
    fn a_number_is_written_without_needless_zeros() {
        for (mantissa, scale, text) in [
            (0, 0, "0"),
            (0, 5, "0"),
            (-1250, 2, "-12.5"),
            (1200, 2, "12"),
            (5, 3, "0.005"),
            (-1, 38, "-0.00000000000000000000000000000000000001"),
            (1 << 64, 0, "18446744073709551616"),
        ] {
            let mut out = String::new();
            write(mantissa, scale, &mut out);
            assert_eq!(out, text);
        }
    }
}
