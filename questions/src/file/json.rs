//! Writes the table as JSON lines.

use crate::draw::Draw;
use crate::table::{Column, Table};
use crate::value::{Value, day_shown, exact, moment_shown};

/// Returns a line for each row. NULL is `null` or left out; the order of the keys may change.
pub(super) fn lines(draw: &mut Draw, table: &Table) -> Vec<String> {
    let (is_shuffled, has_nulls) = (draw.chance(30), draw.chance(50));
    let mut order: Vec<usize> = (0..table.columns.len()).collect();
    let mut line = |row: usize| {
        if is_shuffled && draw.chance(5) {
            let (a, b) = (draw.below(order.len()), draw.below(order.len()));
            order.swap(a, b);
        }
        let mut fields = Vec::new();
        for &column in &order {
            let column = &table.columns[column];
            match &column.values[row] {
                Value::Null if !has_nulls => {}
                value => {
                    fields.push(format!("\"{}\":{}", column.name, written(draw, column, value)))
                }
            }
        }
        format!("{{{}}}", fields.join(","))
    };
    (0..table.rows).map(&mut line).collect()
}

fn written(draw: &mut Draw, column: &Column, value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Truth(truth) => truth.to_string(),
        Value::Exact { mantissa, scale } => exact(*mantissa, *scale),
        Value::Float(number) => format!("{number:e}"),
        Value::Text(text) if column.has_bare_numbers && text.parse::<i64>().is_ok() => {
            text.to_string()
        }
        Value::Text(text) => serde_json::Value::from(&**text).to_string(),
        Value::Day(day) => format!("\"{}\"", day_shown(*day)),
        Value::Moment(at) => moment(draw, *at),
    }
}

/// Writes a timestamp in a random time zone.
fn moment(draw: &mut Draw, at: i64) -> String {
    const MINUTE: i64 = 60_000_000_000;
    let minutes = *draw.of(&[0, 0, 0, 60, -330, 14 * 60]);
    match at.checked_add(minutes * MINUTE) {
        Some(local) if minutes != 0 => {
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
            format!("\"{}{sign}{hours:02}:{rest:02}\"", moment_shown(local))
        }
        _ => format!("\"{}Z\"", moment_shown(at).replace(' ', "T")),
    }
}
