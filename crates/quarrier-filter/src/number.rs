//! Exact numbers of up to 38 digits: `mantissa` divided by 10^`scale`.

use std::cmp::Ordering;

use crate::Fault;

/// The maximum number of decimals.
pub(crate) const SCALE_MAX: u8 = 38;

/// An exact number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact {
    pub(crate) mantissa: i128,
    pub(crate) scale: u8,
}

fn power(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(u32::from(exponent))
}

fn overflow() -> Fault {
    Fault::Overflow { what: "an exact number" }
}

impl Exact {
    pub(crate) fn new(mantissa: i128, scale: u8) -> Self {
        Exact { mantissa, scale }
    }

    /// Returns the same number with another scale; rounds half away from 0 if digits are lost.
    pub(crate) fn rescaled(self, scale: u8) -> Result<Self, Fault> {
        if scale >= self.scale {
            let factor = power(scale - self.scale).ok_or_else(overflow)?;
            let mantissa = self.mantissa.checked_mul(factor).ok_or_else(overflow)?;
            return Ok(Exact { mantissa, scale });
        }
        let mantissa = match power(self.scale - scale) {
            Some(divisor) => divided(self.mantissa, divisor),
            None => 0,
        };
        Ok(Exact { mantissa, scale })
    }

    /// Compares the numbers, whatever their scales.
    pub(crate) fn compared(self, other: Exact) -> Ordering {
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        // Compare integer parts first: a fraction can be rescaled to any scale, an integer part may
        // not.
        let parts = |exact: Exact| {
            power(exact.scale)
                .map_or((0, exact.mantissa), |one| (exact.mantissa / one, exact.mantissa % one))
        };
        let ((whole, fraction), (other_whole, other_fraction)) = (parts(self), parts(other));
        whole.cmp(&other_whole).then_with(|| {
            let scale = self.scale.max(other.scale);
            let grown = |fraction: i128, from: u8| {
                power(scale - from).and_then(|factor| fraction.checked_mul(factor))
            };
            match (grown(fraction, self.scale), grown(other_fraction, other.scale)) {
                (Some(a), Some(b)) => a.cmp(&b),
                // Unreachable for scales up to 38: the fraction is below 10^scale.
                _ => self.float().total_cmp(&other.float()),
            }
        })
    }

    pub(crate) fn add(self, other: Exact) -> Result<Exact, Fault> {
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.rescaled(scale)?, other.rescaled(scale)?);
        let mantissa = a.mantissa.checked_add(b.mantissa).ok_or_else(overflow)?;
        Ok(Exact { mantissa, scale })
    }

    pub(crate) fn negated(self) -> Result<Exact, Fault> {
        let mantissa = self.mantissa.checked_neg().ok_or_else(overflow)?;
        Ok(Exact { mantissa, ..self })
    }

    pub(crate) fn multiply(self, other: Exact) -> Result<Exact, Fault> {
        let mantissa = self.mantissa.checked_mul(other.mantissa).ok_or_else(overflow)?;
        let scale = self.scale + other.scale;
        if scale > SCALE_MAX {
            return Err(overflow());
        }
        Ok(Exact { mantissa, scale })
    }

    /// Returns the quotient with [`quotient_scale`] decimals, rounded half away from 0.
    pub(crate) fn divide(self, other: Exact) -> Result<Exact, Fault> {
        if other.mantissa == 0 {
            return Err(Fault::DivisionByZero);
        }
        let scale = quotient_scale(self.scale, other.scale);
        let grown = self.rescaled(scale + other.scale)?;
        if (grown.mantissa, other.mantissa) == (i128::MIN, -1) {
            return Err(overflow());
        }
        Ok(Exact { mantissa: divided(grown.mantissa, other.mantissa), scale })
    }

    pub(crate) fn remainder(self, other: Exact) -> Result<Exact, Fault> {
        if other.mantissa == 0 {
            return Err(Fault::DivisionByZero);
        }
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.rescaled(scale)?, other.rescaled(scale)?);
        Ok(Exact { mantissa: a.mantissa.checked_rem(b.mantissa).unwrap_or(0), scale })
    }

    /// Converts to the nearest float.
    pub(crate) fn float(self) -> f64 {
        // Both operands are exact below these bounds, so the quotient is rounded once.
        if self.mantissa.unsigned_abs() < 1 << 53 && self.scale <= 22 {
            return self.mantissa as f64 / 10_f64.powi(i32::from(self.scale));
        }
        self.shown().parse().unwrap_or(f64::NAN)
    }

    /// Formats the digits with a decimal point.
    pub(crate) fn shown(self) -> String {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = self.mantissa.unsigned_abs().to_string();
        let scale = usize::from(self.scale);
        if scale == 0 {
            return format!("{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        format!("{sign}{whole}.{fraction}")
    }

    /// Parses `-12.50` or `.5`; `None` for anything else, and for more than about 38 digits.
    pub(crate) fn parse(text: &str) -> Option<Exact> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= SCALE_MAX)?;
        let sign = if text.starts_with('-') { "-" } else { "" };
        let mantissa = format!("{sign}{whole}{fraction}").parse().ok()?;
        Some(Exact { mantissa, scale })
    }
}

/// Returns the decimals of a quotient: six more than those of the dividend, at most 38.
pub(crate) fn quotient_scale(left: u8, right: u8) -> u8 {
    left.max(right).saturating_add(6).min(SCALE_MAX)
}

/// Divides and rounds half away from 0. `divisor` is not 0, and not -1 if `number` is the least.
fn divided(number: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (number / divisor, number % divisor);
    if rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs() {
        quotient + if (number < 0) == (divisor < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Exact {
        Exact::parse(text).unwrap()
    }

    #[test]
    fn exact_numbers_are_calculated_exactly() {
        let shown = |result: Result<Exact, Fault>| result.unwrap().shown();
        assert_eq!(shown(exact("0.1").add(exact("0.2"))), "0.3");
        assert_eq!(shown(exact("-1.50").multiply(exact("2.0"))), "-3.000");
        assert_eq!(shown(exact("1").divide(exact("3"))), "0.333333");
        assert_eq!(shown(exact("-2").divide(exact("3.0"))), "-0.6666667");
        assert_eq!(shown(exact("7.5").remainder(exact("-2"))), "1.5");
        assert_eq!(shown(exact("2.5").rescaled(0)), "3");
        assert_eq!(shown(exact("-2.5").rescaled(0)), "-3");
        assert_eq!(shown(exact("2.449").rescaled(1)), "2.4");
        assert_eq!(exact(".5").shown(), "0.5");
        assert!(exact("1").divide(exact("0.0")).is_err());
        assert!(exact(&"9".repeat(38)).multiply(exact("10")).is_err());
        for wrong in ["", ".", "-", "1e5", "1 ", "٣", "--1", "1.2.3"] {
            assert!(Exact::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn numbers_of_any_scale_are_compared() {
        let least = format!("0.{}1", "0".repeat(37));
        assert_eq!(exact("1.0").compared(exact("1.000")), Ordering::Equal);
        assert_eq!(exact("0").compared(exact(&least)), Ordering::Less);
        assert_eq!(exact(&"9".repeat(38)).compared(exact(&least)), Ordering::Greater);
        assert_eq!(exact("-0.5").compared(exact("-0.51")), Ordering::Greater);
        assert_eq!(exact("-1").compared(exact(&format!("-{least}"))), Ordering::Less);
    }

    #[test]
    fn the_nearest_float_is_found() {
        for text in ["0.1", "123456789.123456789", "-0.30000000000000004", "9007199254740993"] {
            assert_eq!(exact(text).float(), text.parse::<f64>().unwrap());
        }
    }
}
