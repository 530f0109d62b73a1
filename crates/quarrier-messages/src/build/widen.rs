//! Converts a column to a wider type when it gets a value of another type.

use quarrier_core::civil::midnight;

use super::Cell;
use super::text::TextBuilder;
use super::time::{Shape, shape_of};
use super::values::Values;
use crate::{Kind, Packing};

/// The rows without a value, the shapes of strings, and the packing of strings.
pub(super) type Written<'w> = (&'w [u32], &'w [(u32, Shape)], Packing);

/// The rows in a wider type.
pub(super) struct Wider {
    pub(super) values: Values,
    /// The number of rows that lost digits.
    pub(super) rounded: u64,
}

/// Returns the same rows in a type that holds `cell`, too; `None` if the current type does.
pub(super) fn to_hold(values: &Values, written: Written<'_>, cell: Cell<'_>) -> Option<Wider> {
    let kind = values.kind().widened(cell.kind());
    if let Kind::Decimal { scale } = kind {
        return match (values, exact_for(values, scale, cell)) {
            (Values::Decimal(from, _), Some(Values::Decimal(to, _))) if *from == to => None,
            (Values::Wide(from, _), Some(Values::Wide(to, _))) if *from == to => None,
            (_, Some(to)) => Some(filled(to, values, written)),
            (_, None) => Some(converted(values, written, Kind::Float)),
        };
    }
    let wider = (values.kind() != kind).then(|| converted(values, written, kind));
    // The type holds the value, but its 64 bits may not.
    let is_held = match (wider.as_ref().map_or(values, |wider| &wider.values), cell) {
        (Values::Timestamp(_), Cell::Date(days)) => midnight(days).is_some(),
        _ => true,
    };
    if is_held {
        return wider;
    }
    Some(converted(values, written, Kind::Text))
}

/// Returns storage for exact numbers with `scale` decimals, as wide as the rows and the value need;
/// `None` if 38 digits are not enough.
fn exact_for(values: &Values, scale: u8, cell: Cell<'_>) -> Option<Values> {
    let (mut is_wide, mut fits) = (scale > 18 || matches!(values, Values::Wide(..)), true);
    let mut check = |cell: Cell<'_>| match cell.mantissa(scale) {
        Some(mantissa) => is_wide |= i64::try_from(mantissa).is_err(),
        None => fits = false,
    };
    check(cell);
    // Numbers of the same scale are known to fit.
    if values.kind() != (Kind::Decimal { scale }) && !matches!(values, Values::Null(_)) {
        (0..values.rows()).for_each(|row| check(values.cell(row)));
    }
    fits.then(|| {
        if is_wide { Values::Wide(scale, Vec::new()) } else { Values::Decimal(scale, Vec::new()) }
    })
}

/// Returns the rows in a wider type; in an even wider one if 64 bits do not hold them.
fn converted(values: &Values, written: Written<'_>, kind: Kind) -> Wider {
    let to = match kind {
        Kind::Null => Values::Null(0),
        Kind::Boolean => Values::Boolean(Vec::new()),
        Kind::Integer => Values::Integer(Vec::new()),
        Kind::Decimal { scale } => Values::Wide(scale, Vec::new()),
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
        Kind::Text => Values::Text(Box::new(TextBuilder::new(written.2))),
    };
    filled(to, values, written)
}

/// Fills `to`, which is empty, with the rows of `values`, which it can hold.
fn filled(mut to: Values, values: &Values, (nulls, shapes, _): Written<'_>) -> Wider {
    let is_float = matches!(to, Values::Float(_));
    let mut rounded = 0;
    let mut text = String::new();
    let mut nulls = nulls.iter().copied().peekable();
    for row in 0..values.rows() {
        if nulls.next_if(|&null| null as usize == row).is_some() {
            to.push_zero();
        } else if let (Values::Text(strings), false) = (&mut to, shapes.is_empty()) {
            text.clear();
            shape_of(shapes, row).write(values.cell(row), &mut text);
            strings.push(&text);
        } else {
            let cell = values.cell(row);
            rounded += u64::from(is_float && cell.is_rounded());
            to.push(cell);
        }
    }
    Wider { values: to, rounded }
}

impl Values {
    fn kind(&self) -> Kind {
        match self {
            Values::Null(_) => Kind::Null,
            Values::Boolean(_) => Kind::Boolean,
            Values::Integer(_) => Kind::Integer,
            Values::Decimal(scale, _) | Values::Wide(scale, _) => Kind::Decimal { scale: *scale },
            Values::Float(_) => Kind::Float,
            Values::Date(_) => Kind::Date,
            Values::Timestamp(_) => Kind::Timestamp,
            Values::Text(_) => Kind::Text,
        }
    }

    /// Returns a row's value; none for strings, since no type is wider.
    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Values::Null(_) | Values::Text(_) => Cell::Null,
            Values::Boolean(values) => Cell::Boolean(values[row]),
            Values::Integer(values) => Cell::Integer(values[row]),
            Values::Decimal(scale, values) => {
                Cell::Decimal { mantissa: values[row], scale: *scale }
            }
            Values::Wide(scale, values) => Cell::exact(values[row], *scale),
            Values::Float(values) => Cell::Float(values[row]),
            Values::Date(values) => Cell::Date(values[row]),
            Values::Timestamp(values) => Cell::Timestamp(values[row]),
        }
    }

    fn all(&self, holds: impl Fn(Cell<'_>) -> bool) -> bool {
        (0..self.rows()).all(|row| holds(self.cell(row)))
    }
}
