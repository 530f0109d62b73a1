//! A value while an expression is evaluated: text is borrowed where it can be.

use std::borrow::Cow;

use quarrier_messages::Value;

/// As [`Value`], with text that may belong to the row.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum<'a> {
    /// NULL; as a truth value, UNKNOWN.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// `mantissa` divided by 10^`scale`.
    Decimal {
        /// The digits.
        mantissa: i128,
        /// How many of them stand behind the point, at most 38.
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
    /// A span of time.
    Interval {
        /// Years count 12.
        months: i64,
        /// Days count 86,400 seconds.
        nanoseconds: i64,
    },
    /// Text.
    Text(Cow<'a, str>),
}

/// Where the values of a row's columns come from.
pub trait Row {
    /// The value of the column at this place of the schema.
    fn datum(&self, column: usize) -> Datum<'_>;
}

impl Row for [Value] {
    fn datum(&self, column: usize) -> Datum<'_> {
        self.get(column).map_or(Datum::Null, Datum::from)
    }
}

impl<F: Fn(usize) -> Value> Row for F {
    fn datum(&self, column: usize) -> Datum<'_> {
        self(column).into()
    }
}

impl<'a> From<&'a Value> for Datum<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Text(text) => Datum::Text(Cow::Borrowed(text)),
            other => other.clone().into(),
        }
    }
}

impl From<Value> for Datum<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Datum::Null,
            Value::Boolean(truth) => Datum::Boolean(truth),
            Value::Integer(number) => Datum::Integer(number),
            Value::Decimal { mantissa, scale } => Datum::Decimal { mantissa, scale },
            Value::Float(number) => Datum::Float(number),
            Value::Date(days) => Datum::Date(days),
            Value::Time(nanoseconds) => Datum::Time(nanoseconds),
            Value::Timestamp(nanoseconds) => Datum::Timestamp(nanoseconds),
            Value::Interval { months, nanoseconds } => Datum::Interval { months, nanoseconds },
            Value::Text(text) => Datum::Text(Cow::Owned(text.into_string())),
        }
    }
}

impl From<Datum<'_>> for Value {
    fn from(datum: Datum<'_>) -> Self {
        match datum {
            Datum::Null => Value::Null,
            Datum::Boolean(truth) => Value::Boolean(truth),
            Datum::Integer(number) => Value::Integer(number),
            Datum::Decimal { mantissa, scale } => Value::Decimal { mantissa, scale },
            Datum::Float(number) => Value::Float(number),
            Datum::Date(days) => Value::Date(days),
            Datum::Time(nanoseconds) => Value::Time(nanoseconds),
            Datum::Timestamp(nanoseconds) => Value::Timestamp(nanoseconds),
            Datum::Interval { months, nanoseconds } => Value::Interval { months, nanoseconds },
            Datum::Text(text) => Value::Text(text.into_owned().into_boxed_str()),
        }
    }
}
