//! Arithmetic on numbers, dates and intervals; concatenation of strings.

use std::borrow::Cow;

use super::Datum;
use super::compare::{exact, float};
use crate::Fault;
use crate::calendar::{DAY_NS, add_days, add_months, add_months_to_timestamp};
use crate::expr::Arithmetic;
use crate::number::Exact;

/// Computes `left op right`; NULL if an operand is NULL.
pub(super) fn calculated<'a>(
    op: Arithmetic,
    left: Datum<'a>,
    right: Datum<'a>,
) -> Result<Datum<'a>, Fault> {
    use quarrier_messages::Value::{
        Date, Decimal, Float, Integer, Interval, Null, Text, Time, Timestamp,
    };
    match (left, right) {
        (Null, _) | (_, Null) => Ok(Null),
        (Text(left), Text(right)) if op == Arithmetic::Concatenate => Ok(Text(joined(left, right))),
        (Integer(left), Integer(right)) => integers(op, left, right),
        (left @ (Integer(_) | Decimal { .. }), right @ (Integer(_) | Decimal { .. })) => {
            match (exact(&left), exact(&right)) {
                (Some(left), Some(right)) => exacts(op, left, right),
                _ => Err(kinds()),
            }
        }
        (
            left @ (Integer(_) | Decimal { .. } | Float(_)),
            right @ (Integer(_) | Decimal { .. } | Float(_)),
        ) => match (float(&left), float(&right)) {
            (Some(left), Some(right)) => floats(op, left, right),
            _ => Err(kinds()),
        },
        (moment @ (Date(_) | Time(_) | Timestamp(_)), Interval { months, nanoseconds }) => match op
        {
            Arithmetic::Add => moved(moment, months, nanoseconds),
            Arithmetic::Subtract => {
                let months = months.checked_neg().ok_or_else(span_overflow)?;
                moved(moment, months, nanoseconds.checked_neg().ok_or_else(span_overflow)?)
            }
            _ => Err(kinds()),
        },
        (Interval { months, nanoseconds }, moment @ (Date(_) | Time(_) | Timestamp(_)))
            if op == Arithmetic::Add =>
        {
            moved(moment, months, nanoseconds)
        }
        (left, right) => spans(op, &left, &right),
    }
}

/// Returns the operand with the opposite sign.
pub(super) fn negated(operand: Datum<'_>) -> Result<Datum<'_>, Fault> {
    Ok(match operand {
        Datum::Null => Datum::Null,
        Datum::Integer(number) => {
            Datum::Integer(number.checked_neg().ok_or_else(integer_overflow)?)
        }
        Datum::Decimal { mantissa, scale } => decimal(Exact::new(mantissa, scale).negated()?),
        Datum::Float(number) => Datum::Float(-number),
        Datum::Interval { months, nanoseconds } => Datum::Interval {
            months: months.checked_neg().ok_or_else(span_overflow)?,
            nanoseconds: nanoseconds.checked_neg().ok_or_else(span_overflow)?,
        },
        _ => return Err(kinds()),
    })
}

fn integers(op: Arithmetic, left: i64, right: i64) -> Result<Datum<'static>, Fault> {
    if right == 0 && matches!(op, Arithmetic::Divide | Arithmetic::Remainder) {
        return Err(Fault::DivisionByZero);
    }
    let result = match op {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right),
        // The least number divided by -1 overflows, but its remainder is 0.
        Arithmetic::Remainder => Some(left.checked_rem(right).unwrap_or(0)),
        Arithmetic::Concatenate => return Err(kinds()),
    };
    result.map(Datum::Integer).ok_or_else(integer_overflow)
}

fn exacts(op: Arithmetic, left: Exact, right: Exact) -> Result<Datum<'static>, Fault> {
    Ok(decimal(match op {
        Arithmetic::Add => left.add(right)?,
        Arithmetic::Subtract => left.add(right.negated()?)?,
        Arithmetic::Multiply => left.multiply(right)?,
        Arithmetic::Divide => left.divide(right)?,
        Arithmetic::Remainder => left.remainder(right)?,
        Arithmetic::Concatenate => return Err(kinds()),
    }))
}

fn floats(op: Arithmetic, left: f64, right: f64) -> Result<Datum<'static>, Fault> {
    if right == 0.0 && matches!(op, Arithmetic::Divide | Arithmetic::Remainder) {
        return Err(Fault::DivisionByZero);
    }
    let result = match op {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
        Arithmetic::Concatenate => return Err(kinds()),
    };
    if result.is_infinite() && left.is_finite() && right.is_finite() {
        return Err(Fault::Overflow { what: "a floating-point number" });
    }
    Ok(Datum::Float(result))
}

/// Adds an interval to a date or time.
fn moved(moment: Datum<'_>, months: i64, nanoseconds: i64) -> Result<Datum<'static>, Fault> {
    let overflow = || Fault::Overflow { what: "a date" };
    Ok(match moment {
        Datum::Date(_) if nanoseconds % DAY_NS != 0 => {
            return Err(Fault::Argument {
                reason: "hours, minutes and seconds cannot be added to a DATE; CAST it AS \
                         TIMESTAMP before"
                    .into(),
            });
        }
        Datum::Date(day) => {
            let day = add_months(day, months).ok_or_else(overflow)?;
            Datum::Date(add_days(day, nanoseconds / DAY_NS).ok_or_else(overflow)?)
        }
        Datum::Timestamp(at) => {
            let at = if months == 0 { Some(at) } else { add_months_to_timestamp(at, months) };
            let at = at.and_then(|at| at.checked_add(nanoseconds));
            Datum::Timestamp(at.ok_or(Fault::Overflow { what: "a timestamp" })?)
        }
        Datum::Time(time) if months == 0 => {
            let sum = i128::from(time) + i128::from(nanoseconds);
            Datum::Time(sum.rem_euclid(i128::from(DAY_NS)) as i64)
        }
        _ => return Err(kinds()),
    })
}

/// Computes differences of dates or times; adds, multiplies and divides intervals.
fn spans(op: Arithmetic, left: &Datum<'_>, right: &Datum<'_>) -> Result<Datum<'static>, Fault> {
    use quarrier_messages::Value::{Date, Interval, Time, Timestamp};
    let wide = |datum: &Datum<'_>| match datum {
        Date(day) => Some(super::midnight(*day)),
        Timestamp(at) | Time(at) => Some(i128::from(*at)),
        _ => None,
    };
    match (op, left, right) {
        (Arithmetic::Add | Arithmetic::Subtract, Interval { .. }, Interval { .. }) => {
            let right = if op == Arithmetic::Add { right.clone() } else { negated(right.clone())? };
            sum(left, &right)
        }
        (Arithmetic::Multiply, Interval { .. }, factor) => scaled(left, factor, op),
        (Arithmetic::Multiply, factor, Interval { .. }) => scaled(right, factor, op),
        (Arithmetic::Divide, Interval { .. }, divisor) => scaled(left, divisor, op),
        (Arithmetic::Subtract, ..) => match (wide(left), wide(right)) {
            (Some(left), Some(right)) => {
                let nanoseconds = i64::try_from(left - right).map_err(|_| span_overflow())?;
                Ok(Interval { months: 0, nanoseconds })
            }
            _ => Err(kinds()),
        },
        _ => Err(kinds()),
    }
}

fn sum(left: &Datum<'_>, right: &Datum<'_>) -> Result<Datum<'static>, Fault> {
    let (
        Datum::Interval { months, nanoseconds },
        Datum::Interval { months: more_months, nanoseconds: more_nanoseconds },
    ) = (left, right)
    else {
        return Err(kinds());
    };
    Ok(Datum::Interval {
        months: months.checked_add(*more_months).ok_or_else(span_overflow)?,
        nanoseconds: nanoseconds.checked_add(*more_nanoseconds).ok_or_else(span_overflow)?,
    })
}

/// Multiplies or divides an interval by a number; drops fractions of a month or a nanosecond.
fn scaled(span: &Datum<'_>, by: &Datum<'_>, op: Arithmetic) -> Result<Datum<'static>, Fault> {
    let Datum::Interval { months, nanoseconds } = span else { return Err(kinds()) };
    let part = |part: i64| -> Result<i64, Fault> {
        let result = match calculated(op, Datum::Integer(part), by.clone()) {
            Err(Fault::Overflow { .. }) => return Err(span_overflow()),
            result => result?,
        };
        match result {
            Datum::Integer(whole) => Ok(whole),
            Datum::Decimal { mantissa, scale } => {
                let one = 10_i128.checked_pow(u32::from(scale)).ok_or_else(span_overflow)?;
                i64::try_from(mantissa / one).map_err(|_| span_overflow())
            }
            Datum::Float(number) if number.abs() < i64::MAX as f64 => Ok(number as i64),
            Datum::Float(_) => Err(span_overflow()),
            _ => Err(kinds()),
        }
    };
    Ok(Datum::Interval { months: part(*months)?, nanoseconds: part(*nanoseconds)? })
}

fn joined<'a>(left: Cow<'a, str>, right: Cow<'a, str>) -> Cow<'a, str> {
    if right.is_empty() {
        return left;
    }
    let mut joined = left.into_owned();
    joined.push_str(&right);
    Cow::Owned(joined)
}

pub(super) fn decimal(exact: Exact) -> Datum<'static> {
    Datum::Decimal { mantissa: exact.mantissa, scale: exact.scale }
}

fn kinds() -> Fault {
    Fault::Kinds { what: "arithmetic" }
}

pub(super) fn integer_overflow() -> Fault {
    Fault::Overflow { what: "a 64-bit integer" }
}

fn span_overflow() -> Fault {
    Fault::Overflow { what: "an interval" }
}
