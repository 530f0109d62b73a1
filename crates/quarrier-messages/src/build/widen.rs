//! Columns that get a value of another kind.

use super::Cell;
use super::column::{Values, rescaled};
use super::text::TextBuilder;
use super::time::{Shape, shape_of};
use crate::{Kind, Packing};

/// Nanoseconds of a day's midnight, where 64 bits hold them.
pub(super) fn midnight(days: i32) -> Option<i64> {
    i64::from(days).checked_mul(86_400_000_000_000)
}

/// The rows without a value, how texts were written, and how text is packed.
pub(super) type Written<'w> = (&'w [u32], &'w [(u32, Shape)], Packing);

/// The same rows in a kind that holds `cell` too; `None` where theirs does.
pub(super) fn to_hold(values: &Values, written: Written<'_>, cell: Cell<'_>) -> Option<Values> {
    let kind = values.kind().widened(cell.kind());
    let wider = (values.kind() != kind).then(|| converted(values, written, kind));
    // The kind holds the value, but its 64 bits may not.
    let is_held = match (wider.as_ref().unwrap_or(values), cell) {
        (Values::Decimal(scale, _), Cell::Integer(value)) => rescaled(value, 0, *scale).is_some(),
        (Values::Decimal(to, _), Cell::Decimal { mantissa, scale }) => {
            rescaled(mantissa, scale, *to).is_some()
        }
        (Values::Timestamp(_), Cell::Date(days)) => midnight(days).is_some(),
        _ => true,
    };
    if is_held {
        return wider;
    }
    let kind = if cell.kind() == Kind::Date { Kind::Text } else { Kind::Float };
    Some(converted(values, written, kind))
}

/// The same rows in a wider kind; in one wider still where 64 bits do not hold them.
fn converted(values: &Values, written: Written<'_>, kind: Kind) -> Values {
    let (nulls, shapes, packing) = written;
    let mut to = match kind {
        Kind::Null => Values::Null(0),
        Kind::Boolean => Values::Boolean(Vec::new()),
        Kind::Integer => Values::Integer(Vec::new()),
        Kind::Decimal { scale } => {
            if !values.all(|cell| match cell {
                Cell::Integer(value) => rescaled(value, 0, scale).is_some(),
                Cell::Decimal { mantissa, scale: from } => {
                    rescaled(mantissa, from, scale).is_some()
                }
                _ => true,
            }) {
                return converted(values, written, Kind::Float);
            }
            Values::Decimal(scale, Vec::new())
        }
        Kind::Float => Values::Float(Vec::new()),
        Kind::Date => Values::Date(Vec::new()),
        Kind::Timestamp => {
            if !values.all(|cell| match cell {
                Cell::Date(days) => midnight(days).is_some(),
                _ => true,
            }) {
                return converted(values, written, Kind::Text);
            }
            Values::Timestamp(Vec::new())
        }
        Kind::Text => Values::Text(Box::new(TextBuilder::new(packing))),
    };
    let mut text = String::new();
    let mut nulls = nulls.iter().copied().peekable();
    for row in 0..values.rows() {
        if nulls.next_if(|&null| null as usize == row).is_some() {
            to.push_zero();
        } else if let (Values::Text(texts), false) = (&mut to, shapes.is_empty()) {
            text.clear();
            shape_of(shapes, row).write(values.cell(row), &mut text);
            texts.push(&text);
        } else {
            to.push(values.cell(row));
        }
    }
    to
}

impl Values {
    fn kind(&self) -> Kind {
        match self {
            Values::Null(_) => Kind::Null,
            Values::Boolean(_) => Kind::Boolean,
            Values::Integer(_) => Kind::Integer,
            Values::Decimal(scale, _) => Kind::Decimal { scale: *scale },
            Values::Float(_) => Kind::Float,
            Values::Date(_) => Kind::Date,
            Values::Timestamp(_) => Kind::Timestamp,
            Values::Text(_) => Kind::Text,
        }
    }

    /// A row's value; of text, which nothing is wider than, none.
    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Values::Null(_) | Values::Text(_) => Cell::Null,
            Values::Boolean(values) => Cell::Boolean(values[row]),
            Values::Integer(values) => Cell::Integer(values[row]),
            Values::Decimal(scale, values) => {
                Cell::Decimal { mantissa: values[row], scale: *scale }
            }
            Values::Float(values) => Cell::Float(values[row]),
            Values::Date(values) => Cell::Date(values[row]),
            Values::Timestamp(values) => Cell::Timestamp(values[row]),
        }
    }

    fn all(&self, holds: impl Fn(Cell<'_>) -> bool) -> bool {
        (0..self.rows()).all(|row| holds(self.cell(row)))
    }
}
