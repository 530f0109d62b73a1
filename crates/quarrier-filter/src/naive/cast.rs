//! CAST.

use std::borrow::Cow;

use quarrier_messages::Kind;

use super::Datum;
use super::arithmetic::{decimal, integer_overflow};
use super::compare::{exact, float};
use crate::Fault;
use crate::calendar;
use crate::expr::CastTo;
use crate::matching::shortened;
use crate::number::Exact;

/// Converts `datum` to another type; NULL stays NULL.
pub(super) fn cast(datum: Datum<'_>, to: CastTo) -> Result<Datum<'_>, Fault> {
    if datum == Datum::Null {
        return Ok(Datum::Null);
    }
    match to {
        CastTo::Kind(Kind::Boolean) => boolean(datum),
        CastTo::Kind(Kind::Integer) => Ok(Datum::Integer(integer(&datum, 64)?)),
        CastTo::Integer { bits } => Ok(Datum::Integer(integer(&datum, bits)?)),
        CastTo::Numeric { precision, scale } => numeric(&datum, precision, scale),
        CastTo::Kind(Kind::Float) => floating(&datum),
        CastTo::Kind(Kind::Date) => date(datum),
        CastTo::Time => time(datum),
        CastTo::Kind(Kind::Timestamp) => timestamp(datum),
        CastTo::IntervalMonths | CastTo::IntervalSeconds => interval(datum, to),
        CastTo::Kind(Kind::Text) => Ok(Datum::Text(text(datum))),
        CastTo::Varying(length) => Ok(Datum::Text(cut(text(datum), length))),
        CastTo::Character(length) => Ok(Datum::Text(filled(cut(text(datum), length), length))),
        CastTo::Kind(Kind::Null | Kind::Decimal { .. }) => Err(Fault::Kinds { what: "a CAST" }),
    }
}

fn wrong(datum: &Datum<'_>, to: &'static str) -> Fault {
    Fault::Cast { value: shortened(&text(datum.clone())), to }
}

fn boolean(datum: Datum<'_>) -> Result<Datum<'_>, Fault> {
    if let Datum::Text(text) = &datum {
        for (name, truth) in [("true", Some(true)), ("false", Some(false)), ("unknown", None)] {
            if text.trim_matches(' ').eq_ignore_ascii_case(name) {
                return Ok(super::truth_datum(truth));
            }
        }
    }
    match datum {
        Datum::Boolean(_) => Ok(datum),
        other => Err(wrong(&other, "a boolean")),
    }
}

/// Converts to an integer: rounds exact numbers half away from 0, floats half to even.
fn integer(datum: &Datum<'_>, bits: u8) -> Result<i64, Fault> {
    let whole = match datum {
        Datum::Integer(number) => Some(i128::from(*number)),
        Datum::Decimal { mantissa, scale } => {
            Some(Exact::new(*mantissa, *scale).rescaled(0)?.mantissa)
        }
        Datum::Float(number) => Some(from_float(*number)?),
        Datum::Text(text) => match number(text) {
            Some(Datum::Float(number)) => Some(from_float(number)?),
            Some(other) => exact(&other).map(|e| e.rescaled(0)).transpose()?.map(|e| e.mantissa),
            None => None,
        },
        Datum::Boolean(truth) => Some(i128::from(*truth)),
        _ => None,
    };
    let whole = whole.ok_or_else(|| wrong(datum, "an integer"))?;
    let most = (1_i128 << (bits - 1)) - 1;
    if !(-most - 1..=most).contains(&whole) {
        return Err(match bits {
            16 => Fault::Overflow { what: "a SMALLINT" },
            32 => Fault::Overflow { what: "a 32-bit INTEGER" },
            _ => integer_overflow(),
        });
    }
    Ok(whole as i64)
}

fn from_float(number: f64) -> Result<i128, Fault> {
    let rounded = number.round_ties_even();
    // The bounds are far beyond 64 bits, and within 128.
    if !(-1e30..=1e30).contains(&rounded) {
        return Err(integer_overflow());
    }
    Ok(rounded as i128)
}

fn numeric(datum: &Datum<'_>, precision: u8, scale: u8) -> Result<Datum<'static>, Fault> {
    let parsed = match datum {
        Datum::Text(text) => number(text),
        _ => None,
    };
    let datum = parsed.as_ref().unwrap_or(datum);
    let exact = match datum {
        Datum::Float(number) if number.is_finite() => {
            // Takes the shortest digits that identify the float, rather than all that its bits
            // have.
            Exact::parse(&format!("{number}")).or_else(|| Exact::parse(&format!("{number:.38}")))
        }
        Datum::Boolean(truth) => Some(Exact::new(i128::from(*truth), 0)),
        other => exact(other),
    };
    let exact = match (exact, datum) {
        (Some(exact), _) => exact.rescaled(scale)?,
        (None, Datum::Float(_)) => return Err(Fault::Overflow { what: "an exact number" }),
        (None, other) => return Err(wrong(other, "a number")),
    };
    let bound = 10_u128.checked_pow(u32::from(precision));
    if bound.is_some_and(|bound| exact.mantissa.unsigned_abs() >= bound) {
        return Err(Fault::Overflow { what: "a NUMERIC of that many digits" });
    }
    Ok(decimal(exact))
}

fn floating(datum: &Datum<'_>) -> Result<Datum<'static>, Fault> {
    let number = match datum {
        Datum::Text(text) => not_finite(text).or_else(|| number(text).as_ref().and_then(float)),
        Datum::Boolean(truth) => Some(f64::from(u8::from(*truth))),
        other => float(other),
    };
    number.map(Datum::Float).ok_or_else(|| wrong(datum, "a number"))
}

/// Parses a string as NaN or an infinity: `nan`, `inf` or `infinity` in upper or lower case, perhaps
/// with a sign and with blanks around it.
fn not_finite(text: &str) -> Option<f64> {
    let text = text.trim_matches(' ');
    let name = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_named = ["nan", "inf", "infinity"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if is_named { text.parse().ok() } else { None }
}

/// Parses a string as a number, with optional blanks around it.
fn number(text: &str) -> Option<Datum<'static>> {
    let text = text.trim_matches(' ');
    if let Ok(whole) = text.parse() {
        return Some(Datum::Integer(whole));
    }
    if let Some(exact) = Exact::parse(text) {
        return Some(decimal(exact));
    }
    // Rust's parser also accepts inf, infinity and nan, which only a floating-point type has.
    let is_plain =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    if !is_plain {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite()).map(Datum::Float)
}

fn date(datum: Datum<'_>) -> Result<Datum<'_>, Fault> {
    let day = match &datum {
        Datum::Date(day) => Some(*day),
        Datum::Timestamp(at) => Some(calendar::split(*at).0),
        Datum::Text(text) => calendar::parse_date(text)
            .or_else(|| calendar::parse_timestamp(text).map(|at| calendar::split(at).0)),
        _ => None,
    };
    day.map(Datum::Date).ok_or_else(|| wrong(&datum, "a date; write dates as 2024-12-31"))
}

fn time(datum: Datum<'_>) -> Result<Datum<'_>, Fault> {
    let time = match &datum {
        Datum::Time(time) => Some(*time),
        Datum::Timestamp(at) => Some(calendar::split(*at).1),
        Datum::Text(text) => calendar::parse_time(text)
            .or_else(|| calendar::parse_timestamp(text).map(|at| calendar::split(at).1)),
        _ => None,
    };
    time.map(Datum::Time).ok_or_else(|| wrong(&datum, "a time; write times as 23:59:59"))
}

fn timestamp(datum: Datum<'_>) -> Result<Datum<'_>, Fault> {
    let at = match &datum {
        Datum::Timestamp(at) => Some(*at),
        Datum::Date(day) => match calendar::join(*day, 0) {
            Some(at) => Some(at),
            None => return Err(Fault::Overflow { what: "a timestamp" }),
        },
        Datum::Text(text) => calendar::parse_timestamp(text),
        _ => None,
    };
    at.map(Datum::Timestamp)
        .ok_or_else(|| wrong(&datum, "a timestamp; write timestamps as 2024-12-31 23:59:59"))
}

fn interval(datum: Datum<'_>, to: CastTo) -> Result<Datum<'_>, Fault> {
    use calendar::{Fields, Part};
    let parsed = match (&datum, to) {
        (Datum::Interval { .. }, _) => return Ok(datum),
        (Datum::Text(text), CastTo::IntervalMonths) => {
            calendar::parse_interval(text, Fields { first: Part::Year, last: Part::Month })
        }
        (Datum::Text(text), _) => {
            calendar::parse_interval(text, Fields { first: Part::Day, last: Part::Second })
        }
        _ => None,
    };
    let (months, nanoseconds) = parsed
        .ok_or_else(|| wrong(&datum, "a valid interval; write intervals as 1-2 or 3 04:05:06"))?;
    Ok(Datum::Interval { months, nanoseconds })
}

/// Converts a value to a string.
pub(crate) fn text(datum: Datum<'_>) -> Cow<'_, str> {
    Cow::Owned(match datum {
        Datum::Null => return Cow::Borrowed("NULL"),
        Datum::Text(text) => return text,
        Datum::Boolean(true) => return Cow::Borrowed("TRUE"),
        Datum::Boolean(false) => return Cow::Borrowed("FALSE"),
        Datum::Integer(number) => number.to_string(),
        Datum::Decimal { mantissa, scale } => Exact::new(mantissa, scale).shown(),
        Datum::Float(number) => shown(number),
        Datum::Date(day) => calendar::show_date(day),
        Datum::Time(time) => calendar::show_time(time),
        Datum::Timestamp(at) => calendar::show_timestamp(at),
        Datum::Interval { months, nanoseconds } => calendar::show_interval(months, nanoseconds),
    })
}

/// Formats the shortest digits that identify the float; with an exponent if it is very large or
/// small.
fn shown(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && number.is_finite() && !(1e-5..1e16).contains(&size) {
        return format!("{number:E}");
    }
    number.to_string()
}

/// Returns the first `length` characters of a string.
fn cut(text: Cow<'_, str>, length: u32) -> Cow<'_, str> {
    match text.char_indices().nth(length as usize) {
        None => text,
        Some((end, _)) => match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        },
    }
}

/// Pads a string with blanks to `length` characters.
fn filled(text: Cow<'_, str>, length: u32) -> Cow<'_, str> {
    let missing = (length as usize).saturating_sub(text.chars().count());
    if missing == 0 {
        return text;
    }
    let mut text = text.into_owned();
    text.extend(std::iter::repeat_n(' ', missing));
    Cow::Owned(text)
}
