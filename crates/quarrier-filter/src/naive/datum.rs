//! Values during the evaluation of an expression: strings are borrowed where possible.

use std::borrow::Cow;

use quarrier_messages::Value;

/// A value whose string may be borrowed from the row.
pub type Datum<'a> = Value<Cow<'a, str>>;

/// A source of the values of a row's columns.
pub trait Row {
    /// Returns the value of the column at this index of the schema.
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
