//! The rank of a row in an order.

use std::cmp::Ordering;

use quarrier_messages::column::{Data, Dictionary, SegmentColumn, Zone, float_key, text_key};
use quarrier_messages::{Column, Kind, Table};

use crate::Order;
use crate::predicate::Set;

/// The rank of a row in one column; the lower one comes first. Strings of a column with plain
/// strings rank by their first eight bytes, and numbers that exceed 64 bits by the nearest that
/// fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// -1 for NULL that comes first, 0 for a value, 1 for NULL that comes last.
    null: i8,
    /// The column's key, inverted if the greatest comes first.
    key: i64,
}

impl Rank {
    /// Returns the key of the last row that may still be wanted, if a key can exclude rows.
    pub(crate) fn threshold(self) -> Option<i64> {
        match self.null {
            -1 => Some(i64::MIN),
            0 => Some(self.key),
            _ => None,
        }
    }
}

/// Returns a key for comparison: inverted if the greatest comes first.
pub(crate) fn turned(order: Order, key: i64) -> i64 {
    if order.descending { !key } else { key }
}

/// Returns the rank of a row of a segment in one column.
pub(crate) fn of(table: &Table, order: Order, segment: usize, row: usize) -> Rank {
    let column = &table.columns()[order.column];
    match key(&column.segments()[segment], row).map(|key| common(column, segment, key)) {
        Some(key) => Rank { null: 0, key: turned(order, key) },
        None => Rank { null: if order.nulls_first { -1 } else { 1 }, key: 0 },
    }
}

/// Returns the key of a row's value.
fn key(column: &SegmentColumn, row: usize) -> Option<i64> {
    if !column.is_valid(row) {
        return None;
    }
    Some(match column.data() {
        Data::Null => return None,
        Data::Whole(packed) | Data::Codes(packed) => packed.get(row),
        Data::Scaled { exponent, packed } => {
            float_key(packed.get(row) as f64 / 10_f64.powi((*exponent).into()))
        }
        Data::Float(values) => float_key(values[row]),
        Data::Text(strings) => text_key(strings.get(row)),
        Data::Shifted { .. } | Data::Exact(_) => {
            column.number(row)?.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        }
    })
}

/// Returns the dictionary of a column if its codes are not keys of the whole column, because other
/// segments have plain strings.
fn codes_of(column: &Column, segment: usize) -> Option<&Dictionary> {
    let has_codes = matches!(column.segments()[segment].data(), Data::Codes(_));
    column.dictionary().filter(|_| column.is_mixed() && has_codes).map(|strings| &**strings)
}

/// Converts a segment's key to one that is valid in all segments of its column.
fn common(column: &Column, segment: usize, key: i64) -> i64 {
    codes_of(column, segment).map_or(key, |strings| text_key(strings.get(key as usize)))
}

/// Returns the least and the greatest value of a segment as keys valid in all segments of the
/// column.
pub(crate) fn zone(column: &Column, segment: usize) -> Zone {
    let zone = column.segments()[segment].zone();
    if zone.is_without_values() {
        return zone;
    }
    let key = |key: i128| {
        codes_of(column, segment).map_or(key, |strings| text_key(strings.get(key as usize)).into())
    };
    Zone { min: key(zone.min), max: key(zone.max), ..zone }
}

/// Returns the keys of a segment whose rows may still be wanted, given the `key` of the last such
/// row.
pub(crate) fn good_enough(table: &Table, order: Order, segment: usize, key: i64) -> Set {
    let key = turned(order, key);
    let codes = codes_of(&table.columns()[order.column], segment);
    // Keys of numbers beyond 64 bits are clamped to these limits, so any value beyond may be
    // wanted, too.
    let least = if key == i64::MIN { i128::MIN } else { key.into() };
    let most = if key == i64::MAX { i128::MAX } else { key.into() };
    let mut set = match (codes, order.descending) {
        (None, true) => Set::range(least, i128::MAX),
        (None, false) => Set::range(i128::MIN, most),
        (Some(strings), true) => {
            Set::range(first_code(strings, |of_text| of_text >= key), i64::MAX)
        }
        (Some(strings), false) => {
            Set::range(i64::MIN, first_code(strings, |of_text| of_text > key) - 1)
        }
    };
    set.nulls = order.nulls_first;
    set
}

/// Returns the first code for whose string's key `holds` is true; keys are in the order of codes.
fn first_code(strings: &Dictionary, holds: impl Fn(i64) -> bool) -> i64 {
    let (mut low, mut high) = (0, strings.len());
    while low < high {
        let middle = low.midpoint(high);
        if holds(text_key(strings.get(middle))) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low as i64
}

/// Whether the rank in the first column determines the whole order.
pub(crate) fn is_whole(table: &Table, order: &[Order]) -> bool {
    let column = order[0].column;
    order.len() == 1 && !is_by_prefixes(table, column) && !table.columns()[column].is_wide()
}

/// Whether ranks in this column depend only on prefixes.
fn is_by_prefixes(table: &Table, column: usize) -> bool {
    let is_text = table.schema().fields[column].kind == Kind::Text;
    let column = &table.columns()[column];
    is_text && (column.dictionary().is_none() || column.is_mixed())
}

/// Compares two rows of the table by all columns.
pub(crate) fn compared(table: &Table, order: &[Order], a: u64, b: u64) -> Ordering {
    let (a, b) = (table.locate(a), table.locate(b));
    for &by in order {
        let ranks = (of(table, by, a.0, a.1), of(table, by, b.0, b.1));
        let mut compared = ranks.0.cmp(&ranks.1);
        if compared.is_eq() && ranks.0.null == 0 && is_by_prefixes(table, by.column) {
            let column = &table.columns()[by.column];
            let text = |(segment, row): (usize, usize)| column.text(segment, row).unwrap_or("");
            compared = text(a).cmp(text(b));
            if by.descending {
                compared = compared.reverse();
            }
        }
        if compared.is_eq() && ranks.0.null == 0 && table.columns()[by.column].is_wide() {
            let number = |(segment, row): (usize, usize)| {
                table.columns()[by.column].segments()[segment].number(row)
            };
            compared = number(a).cmp(&number(b));
            if by.descending {
                compared = compared.reverse();
            }
        }
        if compared.is_ne() {
            return compared;
        }
    }
    Ordering::Equal
}
