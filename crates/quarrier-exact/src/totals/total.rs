//! An exact sum of any number of values.

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, i256};
use datafusion::common::Result;

use crate::Refusal;

/// A sum: `low + carry * 2^128`. Only sums of decimals of nearly 38 digits ever carry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) low: i128,
    pub(super) carry: i64,
    /// The number of values.
    pub(super) count: u64,
}

impl Total {
    /// Adds the sum of `count` values.
    pub(super) fn add(&mut self, value: i128, count: u64) {
        let (low, is_over) = self.low.overflowing_add(value);
        self.low = low;
        self.carry += i64::from(is_over) * sign(value);
        self.count += count;
    }

    /// Subtracts the sum of `count` values.
    pub(super) fn subtract(&mut self, value: i128, count: u64) {
        let (low, is_over) = self.low.overflowing_sub(value);
        self.low = low;
        self.carry -= i64::from(is_over) * sign(value);
        self.count -= count;
    }

    /// The sum as a 64-bit integer.
    pub(super) fn whole(self) -> Result<i64> {
        i64::try_from(self.low).map_err(|_| {
            let reason = format!(
                "SUM is {}, beyond 64 bits; CAST its argument to DECIMAL(38, 0), as in \
                 SUM(CAST(x AS DECIMAL(38, 0)))",
                self.low
            );
            Refusal::new(reason).into()
        })
    }

    /// The sum as the mantissa of a decimal with `digits` digits.
    pub(super) fn decimal(self, digits: u8) -> Result<i128> {
        let is_held = self.carry == 0 && self.low.unsigned_abs() < power(digits) as u128;
        is_held.then_some(self.low).ok_or_else(|| beyond("SUM"))
    }

    /// The mean, as the nearest float.
    pub(super) fn mean(self) -> f64 {
        nearest_quotient(self.low, self.count.max(1))
    }

    /// The mean as the mantissa of a decimal with `digits` digits, whose scale is `finer` more than
    /// that of the values. Rounds half away from zero.
    pub(super) fn decimal_mean(self, finer: u8, digits: u8) -> Result<i128> {
        let (count, power) = (i128::from(self.count.max(1)), power(finer));
        let scaled = self.low.checked_mul(power).filter(|_| self.carry == 0);
        let mean = match scaled {
            Some(scaled) => Some(rounded(scaled, count)),
            None => self.wide().checked_mul(i256::from_i128(power)).and_then(|scaled| {
                let half = i256::from_i128(count / 2 + count % 2);
                let rest = scaled.checked_rem(i256::from_i128(count))?;
                let down = scaled.checked_div(i256::from_i128(count))?.to_i128()?;
                let is_up = rest >= half || rest <= half.wrapping_neg();
                Some(down + i128::from(is_up) * if rest.is_negative() { -1 } else { 1 })
            }),
        };
        let held = mean.filter(|mean| mean.unsigned_abs() < self::power(digits) as u128);
        held.ok_or_else(|| beyond("AVG"))
    }

    fn wide(self) -> i256 {
        i256::from_i128(self.low).wrapping_add(i256::from_parts(0, self.carry.into()))
    }
}

fn sign(value: i128) -> i64 {
    if value < 0 { -1 } else { 1 }
}

/// A power of ten, up to the maximum precision of a decimal.
fn power(digits: u8) -> i128 {
    10_i128.pow(u32::from(digits.min(DECIMAL128_MAX_PRECISION)))
}

fn beyond(name: &str) -> datafusion::error::DataFusionError {
    Refusal::new(format!("{name} is beyond 38 digits; CAST its argument to DOUBLE PRECISION"))
        .into()
}

fn rounded(value: i128, divisor: i128) -> i128 {
    let (down, rest) = (value / divisor, value % divisor);
    if rest.unsigned_abs() >= (divisor - rest.abs()).unsigned_abs() {
        down + if value < 0 { -1 } else { 1 }
    } else {
        down
    }
}

/// Integers up to this size are exact as floats.
const FLOAT_EXACT_MAX: u128 = 1 << 53;

/// The float nearest to a quotient, rounded once.
fn nearest_quotient(value: i128, divisor: u64) -> f64 {
    let size = value.unsigned_abs();
    if size <= FLOAT_EXACT_MAX && u128::from(divisor) <= FLOAT_EXACT_MAX {
        return value as f64 / divisor as f64;
    }
    // The quotient has at least 64 bits now. A remainder sets its lowest bit, so that anything
    // above a half rounds up.
    let shift = size.leading_zeros();
    let (shifted, divisor) = (size << shift, u128::from(divisor));
    let quotient = (shifted / divisor) | u128::from(shifted % divisor != 0);
    let float = quotient as f64 * 2_f64.powi(-(shift as i32));
    if value < 0 { -float } else { float }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(low: i128, count: u64) -> Total {
        Total { low, carry: 0, count }
    }

    #[test]
    fn sums_come_back_from_beyond_128_bits() {
        let most = 10_i128.pow(38) - 1;
        let mut sum = Total::default();
        (0..10).for_each(|_| sum.add(most, 1));
        assert!(sum.decimal(38).is_err());
        (0..9).for_each(|_| sum.add(-most, 1));
        assert_eq!(sum.decimal(38).unwrap(), most);
        (0..10).for_each(|_| sum.subtract(most, 1));
        (0..9).for_each(|_| sum.subtract(-most, 1));
        assert_eq!((sum.low, sum.carry), (0, 0));
    }

    #[test]
    fn decimal_means_round_half_away_from_zero() {
        for (sum, count, finer, mean) in
            [(2, 3, 4, 6667), (1, 8, 2, 13), (-1, 8, 2, -13), (1, 3, 1, 3), (-2, 3, 0, -1)]
        {
            assert_eq!(total(sum, count).decimal_mean(finer, 38).unwrap(), mean, "{sum} / {count}");
        }
        let most = 10_i128.pow(38) - 1;
        let mut sum = Total::default();
        (0..5).for_each(|_| sum.add(most, 1));
        assert_eq!(sum.decimal_mean(0, 38).unwrap(), most);
        assert!(sum.decimal_mean(4, 38).is_err());
        sum.add(-2, 0);
        assert_eq!(sum.decimal_mean(0, 38).unwrap(), most);
        sum.add(-1, 0);
        assert_eq!(sum.decimal_mean(0, 38).unwrap(), most - 1);
    }

    #[test]
    fn means_are_the_nearest_floats() {
        assert_eq!(total(i128::from(i64::MAX) * 2, 2).mean(), i64::MAX as f64);
        assert_eq!(total(10, 4).mean(), 2.5);
        // 2^53 + 1 is halfway between two floats; a remainder puts the mean above it.
        assert_eq!(total(2 * ((1 << 53) + 1), 2).mean(), 9_007_199_254_740_992.0);
        assert_eq!(total(2 * ((1 << 53) + 1) + 1, 2).mean(), 9_007_199_254_740_994.0);
        assert_eq!(total(-(2 * ((1 << 53) + 1) + 1), 2).mean(), -9_007_199_254_740_994.0);
        assert_eq!(total(1, u64::MAX).mean(), 1.0 / u64::MAX as f64);
    }
}
