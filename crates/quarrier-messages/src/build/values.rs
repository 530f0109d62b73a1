//! The values of a column while rows are written, in the narrowest type that holds them.

use quarrier_core::civil::midnight;

use super::Cell;
use super::text::TextBuilder;

/// The rows so far. The type is the narrowest that holds them, and stays from segment to segment.
#[derive(Debug)]
pub(super) enum Values {
    /// A number of NULLs.
    Null(usize),
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Decimal(u8, Vec<i64>),
    /// Mantissas that exceed 64 bits or 18 decimals.
    Wide(u8, Vec<i128>),
    Float(Vec<f64>),
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    Text(Box<TextBuilder>),
}

/// Returns a mantissa at a greater scale, if it fits.
#[inline(always)]
pub(super) fn rescaled(mantissa: i64, scale: u8, to: u8) -> Option<i64> {
    if scale == to {
        return Some(mantissa);
    }
    let digits = to.checked_sub(scale)?;
    mantissa.checked_mul(*POWERS.get(usize::from(digits))?)
}

/// The powers of ten that fit 64 bits.
const POWERS: [i64; 19] = {
    let mut powers = [1; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

impl Values {
    #[inline]
    pub(super) fn rows(&self) -> usize {
        match self {
            Values::Null(rows) => *rows,
            Values::Boolean(values) => values.len(),
            Values::Integer(values) | Values::Decimal(_, values) | Values::Timestamp(values) => {
                values.len()
            }
            Values::Wide(_, values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Date(values) => values.len(),
            Values::Text(strings) => strings.rows,
        }
    }

    /// Appends a value that this type holds: see [`super::widen::to_hold`].
    pub(super) fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Values::Boolean(values), Cell::Boolean(value)) => values.push(value),
            (Values::Integer(values), Cell::Integer(value)) => values.push(value),
            (Values::Decimal(to, values), Cell::Decimal { mantissa, scale }) => {
                values.push(rescaled(mantissa, scale, *to).unwrap_or(0));
            }
            (Values::Decimal(to, values), Cell::Integer(value)) => {
                values.push(rescaled(value, 0, *to).unwrap_or(0));
            }
            (Values::Decimal(to, values), cell @ Cell::Wide { .. }) => {
                let mantissa = cell.mantissa(*to).and_then(|mantissa| mantissa.try_into().ok());
                values.push(mantissa.unwrap_or(0));
            }
            (Values::Wide(to, values), cell) => values.push(cell.mantissa(*to).unwrap_or(0)),
            (Values::Float(values), cell) => values.push(cell.as_float()),
            (Values::Date(values), Cell::Date(days)) => values.push(days),
            (Values::Timestamp(values), Cell::Timestamp(value)) => values.push(value),
            (Values::Timestamp(values), Cell::Date(days)) => {
                values.push(midnight(days).unwrap_or(0));
            }
            (Values::Text(strings), Cell::Text(text)) => {
                strings.push(text);
            }
            (Values::Text(strings), cell) => {
                let mut text = String::new();
                cell.write(&mut text);
                strings.push(&text);
            }
            (values, cell) => unreachable!("{values:?} was widened to hold {cell:?}"),
        }
    }

    #[inline]
    pub(super) fn push_zero(&mut self) {
        match self {
            Values::Null(rows) => *rows += 1,
            Values::Boolean(values) => values.push(false),
            Values::Integer(values) | Values::Decimal(_, values) | Values::Timestamp(values) => {
                values.push(0);
            }
            Values::Wide(_, values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Date(values) => values.push(0),
            Values::Text(strings) => strings.push_null(),
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) {
        match self {
            Values::Null(rows) => *rows -= 1,
            Values::Boolean(values) => drop(values.pop()),
            Values::Integer(values) | Values::Decimal(_, values) | Values::Timestamp(values) => {
                values.pop();
            }
            Values::Wide(_, values) => drop(values.pop()),
            Values::Float(values) => drop(values.pop()),
            Values::Date(values) => drop(values.pop()),
            Values::Text(strings) => strings.pop(),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Values::Null(rows) => *rows = 0,
            Values::Boolean(values) => values.clear(),
            Values::Integer(values) | Values::Decimal(_, values) | Values::Timestamp(values) => {
                values.clear();
            }
            Values::Wide(_, values) => values.clear(),
            Values::Float(values) => values.clear(),
            Values::Date(values) => values.clear(),
            Values::Text(strings) => drop(strings.finish(&[])),
        }
    }
}
