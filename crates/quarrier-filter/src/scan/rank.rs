//! Where a row stands in an order.

use std::cmp::Ordering;

use quarrier_messages::column::{Data, SegmentColumn, float_key, text_key};
use quarrier_messages::{Kind, Table};

use crate::Order;

/// Where a row stands by one column; plain text by its first eight bytes. Less comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// -1 for NULL that comes first, 0 for a value, 1 for NULL that comes last.
    null: i8,
    /// The column's key, turned where the greatest comes first.
    key: i64,
}

impl Rank {
    /// The key of the last row that is good enough, where it tells anything.
    pub(crate) fn threshold(self) -> Option<i64> {
        match self.null {
            -1 => Some(i64::MIN),
            0 => Some(self.key),
            _ => None,
        }
    }
}

/// A key as it is compared: turned where the greatest comes first.
pub(crate) fn turned(order: Order, key: i64) -> i64 {
    if order.descending { !key } else { key }
}

/// The rank of a row of a segment by one column.
pub(crate) fn of(table: &Table, order: Order, segment: usize, row: usize) -> Rank {
    match key(&table.columns()[order.column].segments()[segment], row) {
        Some(key) => Rank { null: 0, key: turned(order, key) },
        None => Rank { null: if order.nulls_first { -1 } else { 1 }, key: 0 },
    }
}

/// The key of a row's value.
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
        Data::Text(texts) => text_key(texts.get(row)),
    })
}

/// Whether the rank by the first column is the whole order.
pub(crate) fn is_whole(table: &Table, order: &[Order]) -> bool {
    order.len() == 1 && !is_plain_text(table, order[0].column)
}

fn is_plain_text(table: &Table, column: usize) -> bool {
    table.schema().fields[column].kind == Kind::Text
        && table.columns()[column].dictionary().is_none()
}

/// How two rows of the table compare by all columns.
pub(crate) fn compared(table: &Table, order: &[Order], a: u64, b: u64) -> Ordering {
    let (a, b) = (table.locate(a), table.locate(b));
    for &by in order {
        let ranks = (of(table, by, a.0, a.1), of(table, by, b.0, b.1));
        let mut compared = ranks.0.cmp(&ranks.1);
        if compared.is_eq() && ranks.0.null == 0 && is_plain_text(table, by.column) {
            let text = |(segment, row): (usize, usize)| match table.columns()[by.column].segments()
                [segment]
                .data()
            {
                Data::Text(texts) => texts.get(row),
                _ => "",
            };
            compared = text(a).cmp(text(b));
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
