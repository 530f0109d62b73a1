//! One value, outside of columns: of a condition's text, of a row that is shown.

/// A value of SQL. Slow and plain: columns hold their values packed.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
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
        /// How many of them stand behind the point.
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
    /// A span of time: months and nanoseconds, one of which is 0 in SQL-92.
    Interval {
        /// Years count 12.
        months: i64,
        /// Days count 86,400 seconds.
        nanoseconds: i64,
    },
    /// Text.
    Text(Box<str>),
}
