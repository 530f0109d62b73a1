//! A value while an expression is evaluated: text is borrowed where it can be.

use std::borrow::Cow;

use quarrier_messages::Value;

/// A value whose string may be borrowed from the row.
pub type Datum<'a> = Value<Cow<'a, str>>;

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
