//! Values of any type.

use crate::build::{Cell, FieldId, Row};

/// Sets a field to a value of any type.
pub(in crate::format) fn set_cell(row: &mut impl Row, field: FieldId, cell: Cell<'_>) {
    match cell {
        Cell::Null => row.null(field),
        Cell::Boolean(value) => row.boolean(field, value),
        Cell::Integer(value) => row.integer(field, value),
        Cell::Decimal { mantissa, scale } => row.decimal(field, mantissa, scale),
        Cell::Wide { mantissa, scale } => row.number(field, Cell::Wide { mantissa, scale }),
        Cell::Rounded(value) => row.number(field, Cell::Rounded(value)),
        Cell::Float(value) => row.float(field, value),
        Cell::Date(days) => row.date(field, days),
        Cell::Timestamp(nanoseconds) => row.timestamp(field, nanoseconds),
        Cell::Text(text) => row.text(field, text),
    }
}
