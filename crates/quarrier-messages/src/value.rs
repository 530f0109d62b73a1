//! One value, outside of columns: of a condition's text, of a row that is shown.

use std::borrow::Cow;

/// A value of SQL. Slow and plain: columns hold their values packed.
///
/// Its text is its own, or a [`Cow`] where it may belong to a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<T = Box<str>> {
    /// NULL; as a boolean, UNKNOWN.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// an integer.
    Integer(i64),
    /// `mantissa` divided by 10^`scale`.
    Decimal {
        /// The digits.
        mantissa: i128,
        /// The number of decimals, at most 38.
        scale: u8,
    },
    /// A number of IEEE 754.
    Float(f64),
    /// Days from 1970-01-01.
    Date(i32),
    /// Nanoseconds from midnight.
    Time(i64),
    /// Nanoseconds from 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
    /// An interval: months and nanoseconds, one of which is 0 in SQL-92.
    Interval {
        /// Years count 12.
        months: i64,
        /// Days count 86,400 seconds.
        nanoseconds: i64,
    },
    /// Text.
    Text(T),
}

impl<T> Value<T> {
    /// The same value; a string is mapped by `convert`.
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
