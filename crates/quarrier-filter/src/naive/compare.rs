//! Comparison of values.

use std::cmp::Ordering;

use super::{Datum, midnight};
use crate::Fault;
use crate::number::Exact;

/// Compares two values; see [`super::compare`].
pub(super) fn compared(left: &Datum<'_>, right: &Datum<'_>) -> Result<Option<Ordering>, Fault> {
    use quarrier_messages::Value::{
        Boolean, Date, Decimal, Float, Integer, Interval, Null, Text, Time, Timestamp,
    };
    Ok(Some(match (left, right) {
        (Null, _) | (_, Null) => return Ok(None),
        (Boolean(a), Boolean(b)) => a.cmp(b),
        (Integer(a), Integer(b)) | (Time(a), Time(b)) | (Timestamp(a), Timestamp(b)) => a.cmp(b),
        (Date(a), Date(b)) => a.cmp(b),
        (Date(a), Timestamp(b)) => midnight(*a).cmp(&i128::from(*b)),
        (Timestamp(a), Date(b)) => i128::from(*a).cmp(&midnight(*b)),
        (Text(a), Text(b)) => a.cmp(b),
        (
            Interval { months, nanoseconds },
            Interval { months: other_months, nanoseconds: other_nanoseconds },
        ) => (months, nanoseconds).cmp(&(other_months, other_nanoseconds)),
        (Float(_), Integer(_) | Decimal { .. } | Float(_)) | (_, Float(_)) => {
            match (float(left), float(right)) {
                (Some(a), Some(b)) => float_order(a, b),
                _ => return Err(Fault::Kinds { what: "a comparison" }),
            }
        }
        _ => match (exact(left), exact(right)) {
            (Some(a), Some(b)) => a.compared(b),
            _ => return Err(Fault::Kinds { what: "a comparison" }),
        },
    }))
}

/// NaN is equal to itself and greater than all other floats; 0 and -0 are equal.
pub(super) fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Converts to an exact number; `None` for other values.
pub(super) fn exact(datum: &Datum<'_>) -> Option<Exact> {
    match datum {
        Datum::Integer(number) => Some(Exact::new(i128::from(*number), 0)),
        Datum::Decimal { mantissa, scale } => Some(Exact::new(*mantissa, *scale)),
        _ => None,
    }
}

/// Converts to the nearest float; `None` for values that are not numbers.
pub(super) fn float(datum: &Datum<'_>) -> Option<f64> {
    match datum {
        Datum::Integer(number) => Some(*number as f64),
        Datum::Decimal { mantissa, scale } => Some(Exact::new(*mantissa, *scale).float()),
        Datum::Float(number) => Some(*number),
        _ => None,
    }
}

/// Compares two strings, with the shorter one padded with blanks.
pub(super) fn padded_order(a: &str, b: &str) -> Ordering {
    let shared = a.len().min(b.len());
    match (a.is_char_boundary(shared), b.is_char_boundary(shared)) {
        (true, true) => {}
        // The shorter one would end within a character of the other, so they differ before.
        _ => return a.cmp(b),
    }
    let against_blanks = |rest: &str| rest.chars().map(|c| c.cmp(&' ')).find(|o| o.is_ne());
    a[..shared].cmp(&b[..shared]).then_with(|| {
        if a.len() >= b.len() {
            against_blanks(&a[shared..]).unwrap_or(Ordering::Equal)
        } else {
            against_blanks(&b[shared..]).unwrap_or(Ordering::Equal).reverse()
        }
    })
}
