//! Writes the table as NVFIX: `name=value`, a line for each row.

use std::fmt::Write;

use crate::table::Table;
use crate::value::{Value, exact};

pub(super) fn text(table: &Table) -> String {
    let mut text = String::new();
    for row in 0..table.rows {
        for column in &table.columns {
            let written = match &column.values[row] {
                Value::Exact { mantissa, scale } => exact(*mantissa, *scale),
                Value::Text(text) => text.to_string(),
                _ => continue,
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "{}={written}\x01", column.name);
        }
        text.push('\n');
    }
    text
}
