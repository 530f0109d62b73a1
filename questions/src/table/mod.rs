//! Tables: columns of values, drawn in shapes that packing treats differently.

mod numbers;
mod strings;

use crate::draw::Draw;
use crate::value::{Value, whole};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit integers.
    Whole,
    /// Integers of up to 38 digits, some of them beyond 64 bits.
    Wide,
    /// Decimals.
    Exact,
    /// Floats.
    Float,
    /// Strings.
    Text,
    /// Booleans.
    Truth,
    /// Dates.
    Day,
    /// Timestamps.
    Moment,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name, which needs no quotes.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// A value for each row.
    pub values: Vec<Value>,
    /// Whether JSON lines write numeric strings as numbers, so that the column's type changes from
    /// number to string late.
    pub has_bare_numbers: bool,
}

/// A table. Its first column is `id`, the number of the row.
#[derive(Debug, Clone)]
pub struct Table {
    /// The number of rows.
    pub rows: usize,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Whether only Arrow and Parquet can hold it, as with NaN.
    pub is_columnar: bool,
}

impl Table {
    /// Draws a table with this number of rows, and with up to `bytes_max` bytes of strings in a column.
    pub fn draw(draw: &mut Draw, rows: usize, bytes_max: usize) -> Table {
        let ids = (0..rows).map(|row| whole(row as i64)).collect();
        let id =
            Column { name: "id".into(), kind: Kind::Whole, values: ids, has_bare_numbers: false };
        let mut table = Table { rows, columns: vec![id], is_columnar: draw.chance(10) };
        for number in 0..4 + draw.below(5) {
            let mut column = drawn(draw, rows, bytes_max, table.is_columnar);
            column.name = format!("c{number}");
            table.columns.push(column);
        }
        table
    }

    /// Returns the column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

fn drawn(draw: &mut Draw, rows: usize, bytes_max: usize, is_columnar: bool) -> Column {
    use Kind::{Day, Exact, Float, Moment, Text, Truth, Whole, Wide};
    let kind = *draw.of(&[
        Whole, Whole, Whole, Wide, Exact, Exact, Float, Text, Text, Text, Text, Truth, Day, Moment,
    ]);
    let mut has_bare_numbers = false;
    let mut values = match kind {
        Whole => numbers::whole_numbers(draw, rows),
        Wide => numbers::wide(draw, rows),
        Exact => numbers::decimals(draw, rows),
        Float => numbers::floats(draw, rows, is_columnar),
        Text => {
            has_bare_numbers = !is_columnar && draw.chance(15);
            if has_bare_numbers {
                strings::late(draw, rows)
            } else {
                strings::strings(draw, rows, bytes_max)
            }
        }
        Truth => (0..rows).map(|_| Value::Truth(draw.chance(50))).collect(),
        Day => numbers::days(draw, rows),
        Moment => numbers::moments(draw, rows),
    };
    punch(draw, &mut values);
    settle(kind, &mut values);
    Column { name: String::new(), kind, values, has_bare_numbers }
}

/// Puts NULLs into a column: scattered, in blocks, or before or after some row.
fn punch(draw: &mut Draw, values: &mut [Value]) {
    let rows = values.len();
    match draw.below(6) {
        0 | 1 => {}
        2 => {
            let share = *draw.of(&[1, 10, 50, 95]);
            values.iter_mut().filter(|_| draw.chance(share)).for_each(|value| *value = Value::Null);
        }
        3 => {
            for _ in 0..1 + draw.below(4) {
                let from = draw.below(rows);
                let to = (from + draw.below(rows) / 2 + 1).min(rows);
                values[from..to].fill(Value::Null);
            }
        }
        4 => values[..draw.below(rows)].fill(Value::Null),
        _ => values[draw.below(rows)..].fill(Value::Null),
    }
}

/// Ensures that the values show the type of the column: if all would fit a narrower type, one at a
/// fixed place is replaced by a value that does not.
fn settle(kind: Kind, values: &mut [Value]) {
    let wider = |value: &Value| match (kind, value) {
        (Kind::Wide, Value::Exact { mantissa, .. }) => i64::try_from(*mantissa).is_err(),
        (Kind::Exact, Value::Exact { scale, .. }) => *scale > 0,
        (Kind::Text, Value::Text(text)) => text.starts_with(|first: char| first.is_alphabetic()),
        _ => true,
    };
    if values.iter().any(|value| !value.is_null() && wider(value)) {
        return;
    }
    let place = values.len() * 2 / 3;
    values[place] = match kind {
        Kind::Wide => whole(i128::from(u64::MAX)),
        Kind::Exact => Value::Exact { mantissa: 15, scale: 1 },
        Kind::Text => Value::Text("word".into()),
        Kind::Whole => whole(7),
        Kind::Float => Value::Float(0.5),
        Kind::Truth => Value::Truth(true),
        Kind::Day => Value::Day(-1),
        Kind::Moment => Value::Moment(-1),
    };
}
