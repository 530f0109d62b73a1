//! Writes the table as CSV.

use crate::draw::Draw;
use crate::table::Table;
use crate::value::{Value, day_shown, exact, moment_shown};

/// Returns a header, and a record for each row.
pub(super) fn text(draw: &mut Draw, table: &Table) -> String {
    let end = *draw.of(&["\n", "\r\n"]);
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let mut text = names.join(",");
    text += end;
    for row in 0..table.rows {
        for (at, column) in table.columns.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text += &written(draw, &column.values[row]);
        }
        text += end;
    }
    text
}

fn written(draw: &mut Draw, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Truth(truth) => truth.to_string(),
        Value::Exact { mantissa, scale } => exact(*mantissa, *scale),
        Value::Float(number) => format!("{number:e}"),
        Value::Text(text) => {
            let is_plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
            if is_plain && draw.chance(80) {
                text.to_string()
            } else {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
        }
        Value::Day(day) => day_shown(*day),
        Value::Moment(at) => moment_shown(*at),
    }
}
