//! One value on its way into a column, and its form as a string.

use std::fmt::Write;

use quarrier_core::civil;

use crate::exact;
use crate::{Kind, Wide};

/// A value of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// `mantissa` divided by 10^`scale`, `scale` at most 18.
    Decimal {
        /// The digits.
        mantissa: i64,
        /// The number of decimals.
        scale: u8,
    },
    /// Like `Decimal`, for numbers that exceed 64 bits or 18 decimals but fit 38 digits.
    Wide {
        /// The digits.
        mantissa: Wide,
        /// The number of decimals.
        scale: u8,
    },
    /// A float of 64 bits.
    Float(f64),
    /// The float nearest to an exact number of more than 38 digits.
    Rounded(f64),
    /// Days from 1970-01-01.
    Date(i32),
    /// Nanoseconds from 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// A string.
    Text(&'a str),
}

impl Cell<'_> {
    /// Returns the narrowest type of column that holds it.
    pub fn kind(self) -> Kind {
        match self {
            Cell::Null => Kind::Null,
            Cell::Boolean(_) => Kind::Boolean,
            Cell::Integer(_) => Kind::Integer,
            Cell::Decimal { scale, .. } | Cell::Wide { scale, .. } => Kind::Decimal { scale },
            Cell::Float(_) | Cell::Rounded(_) => Kind::Float,
            Cell::Date(_) => Kind::Date,
            Cell::Timestamp(_) => Kind::Timestamp,
            Cell::Text(_) => Kind::Text,
        }
    }

    /// Returns the value as a float, rounded to the nearest; 0 for values that are not numbers.
    pub fn as_float(self) -> f64 {
        match self {
            Cell::Integer(value) => value as f64,
            Cell::Decimal { mantissa, scale } => exact::as_float(mantissa.into(), scale),
            Cell::Wide { mantissa, scale } => exact::as_float(mantissa.into(), scale),
            Cell::Float(value) | Cell::Rounded(value) => value,
            _ => 0.0,
        }
    }

    /// Makes the exact number `mantissa` divided by 10^`scale`, of 38 digits at most.
    pub fn exact(mantissa: i128, scale: u8) -> Self {
        match i64::try_from(mantissa) {
            Ok(whole) if scale == 0 => Cell::Integer(whole),
            Ok(mantissa) if scale <= 18 => Cell::Decimal { mantissa, scale },
            _ => Cell::Wide { mantissa: mantissa.into(), scale },
        }
    }

    /// Returns mantissa and scale of an exact number.
    pub fn as_exact(self) -> Option<(i128, u8)> {
        match self {
            Cell::Integer(value) => Some((value.into(), 0)),
            Cell::Decimal { mantissa, scale } => Some((mantissa.into(), scale)),
            Cell::Wide { mantissa, scale } => Some((mantissa.into(), scale)),
            _ => None,
        }
    }

    /// Returns the mantissa at a scale, if the value is an exact number that fits 38 digits there.
    pub(crate) fn mantissa(self, to: u8) -> Option<i128> {
        let (mantissa, scale) = self.as_exact()?;
        exact::rescaled(mantissa, scale, to)
    }

    /// Whether [`as_float`](Self::as_float) loses digits.
    pub fn is_rounded(self) -> bool {
        match self.as_exact() {
            Some((mantissa, scale)) => exact::is_rounded(mantissa, scale),
            None => matches!(self, Cell::Rounded(_)),
        }
    }

    /// Appends the value as a column of strings stores it: numbers as short as possible, booleans
    /// as `true` and `false`, dates and timestamps as ISO 8601.
    pub fn write(self, out: &mut String) {
        let done = match self {
            Cell::Null => Ok(()),
            Cell::Boolean(value) => write!(out, "{value}"),
            Cell::Integer(value) => write!(out, "{value}"),
            Cell::Decimal { mantissa, scale } => write_decimal(mantissa, scale, out),
            Cell::Wide { mantissa, scale } => {
                exact::write(mantissa.into(), scale, out);
                Ok(())
            }
            Cell::Float(value) | Cell::Rounded(value) => write!(out, "{value}"),
            Cell::Date(days) => civil::write_date(days.into(), out),
            Cell::Timestamp(nanoseconds) => write_timestamp(nanoseconds, out),
            Cell::Text(text) => out.write_str(text),
        };
        debug_assert!(done.is_ok(), "a String takes everything");
    }
}

fn write_decimal(mantissa: i64, scale: u8, out: &mut String) -> std::fmt::Result {
    let one = 10u64.pow(u32::from(scale));
    let (whole, mut part) = (mantissa.unsigned_abs() / one, mantissa.unsigned_abs() % one);
    let mut digits = usize::from(scale);
    while digits > 0 && part.is_multiple_of(10) {
        (part, digits) = (part / 10, digits - 1);
    }
    if mantissa < 0 {
        out.write_char('-')?;
    }
    write!(out, "{whole}")?;
    if digits > 0 { write!(out, ".{part:0digits$}") } else { Ok(()) }
}

fn write_timestamp(nanoseconds: i64, out: &mut String) -> std::fmt::Result {
    let (day, time) = civil::split(nanoseconds);
    civil::write_date(day.into(), out)?;
    out.push(' ');
    civil::write_time(time, out)
}
