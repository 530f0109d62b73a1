//! Parses values of FIX types.

use super::bytes::digits;
use super::dictionary::FixType;
use super::slots::Slot;
use super::time;
use crate::build::{Cell, FieldId, Row};
use crate::format::decimal::{found, number};
use crate::format::set_cell;

/// Sets the field of a slot. A value that does not fit the slot's type is read as an untyped one.
#[inline(always)]
pub(super) fn set(slot: &mut Slot, text: &str, row: &mut impl Row) {
    let Some(field) = slot.field else { return };
    match slot.kind {
        FixType::Text | FixType::Data if !text.is_empty() => row.text(field, text),
        FixType::Int | FixType::Length => match digits(text.as_bytes()) {
            Some(value) => row.integer(field, value),
            None => other(slot, field, text, row),
        },
        FixType::Number => match number(text.as_bytes()) {
            Some(cell) => set_number(slot, field, cell, row),
            None => other(slot, field, text, row),
        },
        FixType::Timestamp => match time::timestamp(text.as_bytes()) {
            Some(nanoseconds) => row.timestamp(field, nanoseconds),
            None => other(slot, field, text, row),
        },
        _ => other(slot, field, text, row),
    }
}

/// Sets the field of a slot of numbers.
#[inline(always)]
pub(super) fn set_number(slot: &mut Slot, field: FieldId, cell: Cell<'_>, row: &mut impl Row) {
    match cell {
        Cell::Decimal { mantissa, scale } => {
            slot.has_fractions = true;
            row.decimal(field, mantissa, scale);
        }
        Cell::Integer(value) if slot.has_fractions => row.decimal(field, value, 0),
        Cell::Integer(value) => row.integer(field, value),
        cell => set_cell(row, field, cell),
    }
}

#[inline(never)]
fn other(slot: &Slot, field: FieldId, text: &str, row: &mut impl Row) {
    let cell = match (slot.kind, text) {
        (_, "") => Cell::Null,
        (FixType::Boolean, "Y") => Cell::Boolean(true),
        (FixType::Boolean, "N") => Cell::Boolean(false),
        (FixType::Date, _) => time::date(text.as_bytes()).map_or(found(text), Cell::Date),
        (FixType::Int | FixType::Length | FixType::Number, _) => {
            number(text.as_bytes()).unwrap_or(Cell::Text(text))
        }
        _ => match digits(text.as_bytes()) {
            Some(value) if !text.starts_with('0') => Cell::Integer(value),
            _ => found(text),
        },
    };
    set_cell(row, field, cell);
}
