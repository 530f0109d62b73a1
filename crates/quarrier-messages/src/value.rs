//! One value outside a column: in a condition, or in a row to display.

use std::borrow::Cow;

/// A value of SQL. Slow and simple: columns hold their values packed.
///
/// It owns its string, or has a [`Cow`] if the string may belong to a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<T = Box<str>> {
    /// NULL; as a boolean, UNKNOWN.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// `mantissa` divided by 10^`scale`.
    Decimal {
        /// The digits.
        mantissa: i128,
        /// The number of decimals, at most 38.
        scale: u8,
    },
    /// A float of 64 bits.
    Float(f64),
    /// Days from 1970-01-01.
    Date(i32),
    /// Nanoseconds from midnight.
    Time(i64),
    /// Nanoseconds from 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// An interval: months and nanoseconds, at least one of which is 0 in SQL-92.
    Interval {
        /// Months; a year counts 12.
        months: i64,
        /// Nanoseconds; a day counts 86,400 seconds.
        nanoseconds: i64,
    },
    /// A string.
    Text(T),
}

impl<T> Value<T> {
    /// Returns the same value; `convert` maps a string.
    pub fn map_text<U>(self, convert: impl FnOnce(T) -> U) -> Value<U> {
        match self {
            Value::Null => Value::Null,
            Value::Boolean(truth) => Value::Boolean(truth),
            Value::Integer(number) => Value::Integer(number),
            Value::Decimal { mantissa, scale } => Value::Decimal { mantissa, scale },
            Value::Float(number) => Value::Float(number),
            Value::Date(days) => Value::Date(days),
            Value::Time(nanoseconds) => Value::Time(nanoseconds),
            Value::Timestamp(nanoseconds) => Value::Timestamp(nanoseconds),
            Value::Interval { months, nanoseconds } => Value::Interval { months, nanoseconds },
            Value::Text(text) => Value::Text(convert(text)),
        }
    }
}

impl<'a> From<&'a Value> for Value<Cow<'a, str>> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            other => other.clone().into(),
        }
    }
}

impl From<Value> for Value<Cow<'_, str>> {
    fn from(value: Value) -> Self {
        value.map_text(|text| Cow::Owned(text.into_string()))
    }
}

impl From<Value<Cow<'_, str>>> for Value {
    fn from(value: Value<Cow<'_, str>>) -> Self {
        value.map_text(|text| text.into_owned().into_boxed_str())
    }
}
