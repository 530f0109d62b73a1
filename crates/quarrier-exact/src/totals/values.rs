//! Columns of exact numbers.

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::common::{Result, internal_err};

/// A type whose values are summed exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// Signed 64-bit integers.
    Signed,
    /// Unsigned 64-bit integers.
    Unsigned,
    /// 128-bit decimals.
    Decimal {
        /// The precision: the maximum number of digits.
        digits: u8,
        /// The number of digits after the point.
        scale: i8,
    },
}

/// Maximum precision for which sums of ten billion values fit in 38 digits.
const DIGITS_SAFE_MAX: u8 = 28;

impl Exact {
    /// The kind of exact values; `None` if DataFusion sums the type.
    pub fn of(data_type: &DataType) -> Option<Exact> {
        match data_type {
            DataType::Int64 => Some(Exact::Signed),
            DataType::UInt64 => Some(Exact::Unsigned),
            DataType::Decimal128(digits, scale) => {
                Some(Exact::Decimal { digits: *digits, scale: *scale })
            }
            _ => None,
        }
    }

    /// Whether sums may exceed 128 bits, so that their states need another column.
    pub fn has_carry(self) -> bool {
        matches!(self, Exact::Decimal { digits, .. } if digits > DIGITS_SAFE_MAX)
    }

    pub(super) fn scale(self) -> i8 {
        match self {
            Exact::Signed | Exact::Unsigned => 0,
            Exact::Decimal { scale, .. } => scale,
        }
    }

    /// Passes each non-null value of a column to `each`.
    pub(super) fn each(self, column: &ArrayRef, each: impl FnMut(i128)) -> Result<()> {
        match self {
            Exact::Signed => shown(column.as_primitive_opt::<Int64Type>(), each),
            Exact::Unsigned => shown(column.as_primitive_opt::<UInt64Type>(), each),
            Exact::Decimal { .. } => shown(column.as_primitive_opt::<Decimal128Type>(), each),
        }
    }

    /// The sum and count of a column's values; `None` if the sum might overflow.
    pub(super) fn quick_sum(self, column: &ArrayRef) -> Option<(i128, u64)> {
        let column = column.as_primitive_opt::<Int64Type>().filter(|_| self == Exact::Signed)?;
        let count = (column.len() - column.null_count()) as u64;
        // Sums the 32-bit halves separately, so that the loop can be vectorised.
        let halves = |(high, low): (i64, i64), value: i64| {
            (high + (value >> 32), low + (value & i64::from(u32::MAX)))
        };
        let values = column.values().iter();
        let (high, low) = match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => values.copied().fold((0, 0), halves),
            Some(nulls) => values
                .zip(nulls.iter())
                .map(|(&value, is_there)| value & -i64::from(is_there))
                .fold((0, 0), halves),
        };
        Some(((i128::from(high) << 32) + i128::from(low), count))
    }
}

fn shown<T>(column: Option<&PrimitiveArray<T>>, mut each: impl FnMut(i128)) -> Result<()>
where
    T: ArrowPrimitiveType<Native: Into<i128>>,
{
    let Some(column) = column else { return internal_err!("a column of another type") };
    if column.null_count() == 0 {
        column.values().iter().for_each(|&value| each(value.into()));
    } else {
        column.iter().flatten().for_each(|value| each(value.into()));
    }
    Ok(())
}
