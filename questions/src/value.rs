//! Values: comparison and notation.

use std::cmp::Ordering;
use std::sync::Arc;

/// A value of a column or a literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A boolean.
    Truth(bool),
    /// `mantissa` divided by 10^`scale`, exactly; an integer has scale 0.
    Exact {
        /// Its absolute value is below 10^38.
        mantissa: i128,
        /// The number of digits after the point, at most 38.
        scale: u8,
    },
    /// A 64-bit float.
    Float(f64),
    /// A string.
    Text(Arc<str>),
    /// A date, in days since 1970-01-01.
    Day(i32),
    /// A timestamp, in nanoseconds since 1970-01-01 00:00:00 UTC.
    Moment(i64),
}

/// Makes an integer.
pub fn whole(number: impl Into<i128>) -> Value {
    Value::Exact { mantissa: number.into(), scale: 0 }
}

impl Value {
    /// Whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Compares two values; `None` if one is NULL.
    ///
    /// # Panics
    /// If the values have incomparable types, which no question compares.
    pub fn compared(&self, other: &Value) -> Option<Ordering> {
        use Value::{Day, Exact, Float, Moment, Null, Text, Truth};
        Some(match (self, other) {
            (Null, _) | (_, Null) => return None,
            (Truth(a), Truth(b)) => a.cmp(b),
            (Exact { mantissa: a, scale: x }, Exact { mantissa: b, scale: y }) => {
                exact_order((*a, *x), (*b, *y))
            }
            (Float(_), Exact { .. } | Float(_)) | (Exact { .. }, Float(_)) => {
                float_order(self.float(), other.float())
            }
            (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Day(a), Day(b)) => a.cmp(b),
            (Moment(a), Moment(b)) => a.cmp(b),
            _ => panic!("{self:?} and {other:?} do not compare"),
        })
    }

    /// Compares two values for sorting, with NULL greater than everything.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self.is_null(), other.is_null()) {
            (false, false) => self.compared(other).unwrap_or(Ordering::Equal),
            (null, other_null) => null.cmp(&other_null),
        }
    }

    /// Returns the nearest float.
    ///
    /// # Panics
    /// If this is not a number.
    pub fn float(&self) -> f64 {
        match self {
            Value::Float(number) => *number,
            Value::Exact { mantissa, scale } => {
                format!("{mantissa}e-{scale}").parse().unwrap_or(f64::NAN)
            }
            _ => panic!("{self:?} is no number"),
        }
    }

    /// The form in which answers are compared: numbers have no trailing zeros.
    pub fn shown(&self) -> String {
        match self {
            Value::Null => "NULL".into(),
            Value::Truth(truth) => truth.to_string(),
            Value::Exact { mantissa, scale } => trimmed(&exact(*mantissa, *scale)),
            Value::Float(number) => float_shown(*number),
            Value::Text(text) => format!("{text:?}"),
            Value::Day(day) => day_shown(*day),
            Value::Moment(at) => moment_shown(*at),
        }
    }

    /// The value as an SQL literal.
    pub fn literal(&self) -> String {
        match self {
            Value::Null => "NULL".into(),
            Value::Truth(truth) => truth.to_string().to_uppercase(),
            Value::Exact { mantissa, scale } => exact(*mantissa, *scale),
            Value::Float(number) if number.is_finite() => format!("{number:e}"),
            Value::Float(number) => format!("CAST('{number}' AS DOUBLE PRECISION)"),
            Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Value::Day(day) => format!("DATE '{}'", day_shown(*day)),
            Value::Moment(at) => format!("TIMESTAMP '{}'", moment_shown(*at)),
        }
    }
}

/// Compares two exact numbers. Both mantissas are below 10^38, so if one overflows when converted to
/// the other's scale, its absolute value is greater by far.
fn exact_order((a, x): (i128, u8), (b, y): (i128, u8)) -> Ordering {
    let grown = |mantissa: i128, by: u8| {
        10_i128.checked_pow(u32::from(by)).and_then(|factor| mantissa.checked_mul(factor))
    };
    match x.cmp(&y) {
        Ordering::Equal => a.cmp(&b),
        Ordering::Less => grown(a, y - x).map_or(a.cmp(&0), |a| a.cmp(&b)),
        Ordering::Greater => grown(b, x - y).map_or(0.cmp(&b), |b| a.cmp(&b)),
    }
}

/// Compares two floats. NaN equals itself and is greater than all other numbers; the zeros are equal.
fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The form in which floats of answers are compared: exact, except for the sign of zero and of NaN.
pub fn float_shown(number: f64) -> String {
    if number == 0.0 { "0.0e0".into() } else { format!("{number:?}f") }
}

/// The digits of an exact number, with its point.
pub fn exact(mantissa: i128, scale: u8) -> String {
    let sign = if mantissa < 0 { "-" } else { "" };
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", mantissa.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// Removes the trailing zeros after the point.
pub fn trimmed(number: &str) -> String {
    if !number.contains('.') {
        return number.into();
    }
    let short = number.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// A date, as `2024-05-31`.
pub fn day_shown(day: i32) -> String {
    let (year, month, day) = civil(day.into());
    format!("{year:04}-{month:02}-{day:02}")
}

/// A timestamp, as `2024-05-31 23:59:58.000000001`.
pub fn moment_shown(at: i64) -> String {
    const DAY: i64 = 86_400_000_000_000;
    let (year, month, day) = civil(at.div_euclid(DAY));
    let of_day = at.rem_euclid(DAY);
    let (seconds, part) = (of_day / 1_000_000_000, of_day % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{part:09}")
}

/// Returns year, month and day, by counting from 1970 year by year and month by month.
fn civil(mut day: i64) -> (i64, i64, i64) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = |year| if is_leap(year) { 366 } else { 365 };
    let mut year = 1970;
    while day < 0 {
        year -= 1;
        day += length(year);
    }
    while day >= length(year) {
        day -= length(year);
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        (day, month) = (day - days, month + 1);
    }
    (year, month, day + 1)
}
