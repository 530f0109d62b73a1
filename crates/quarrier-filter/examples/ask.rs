//! Evaluates conditions on rows, both from standard input, to compare with other engines:
//! `benchmarks/python/agreement.py` writes the input and reads the output.
//!
//! Each line of the input is a case in JSON: `fields` (pairs of name and type), `rows` (lists of
//! strings and nulls) and `conditions` (strings). The output has a line for each condition: a
//! letter per row, `T`, `F`, `U` for UNKNOWN and `E` if there is no value, or `!` and the reason
//! for refusing it.

#![allow(clippy::print_stdout, reason = "an example of a command")]

use std::error::Error;
use std::io::{BufRead, Write};

use quarrier_filter::{naive, sql};
use quarrier_messages::{Field, Kind, Schema, Value};
use serde_json::Value as Json;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let case: Json = serde_json::from_str(&line?)?;
        let schema = schema(&case["fields"]).ok_or("fields are pairs of name and type")?;
        let rows = rows(&case["rows"], &schema).ok_or("a row does not fit its fields")?;
        for condition in case["conditions"].as_array().ok_or("no conditions")? {
            let text = condition.as_str().ok_or("a condition is a text")?;
            writeln!(out, "{}", answer(text, &schema, &rows))?;
        }
        out.flush()?;
    }
    Ok(())
}

fn answer(text: &str, schema: &Schema, rows: &[Vec<Value>]) -> String {
    match sql::condition(text, schema) {
        Err(error) => format!("!{error}"),
        Ok(condition) => {
            let letter = |row: &Vec<Value>| match naive::truth(&condition, &row[..]) {
                Ok(Some(true)) => 'T',
                Ok(Some(false)) => 'F',
                Ok(None) => 'U',
                Err(_) => 'E',
            };
            rows.iter().map(letter).collect()
        }
    }
}

fn schema(fields: &Json) -> Option<Schema> {
    let field = |field: &Json| {
        let kind = match field[1].as_str()? {
            "boolean" => Kind::Boolean,
            "integer" => Kind::Integer,
            "decimal" => Kind::Decimal { scale: 2 },
            "float" => Kind::Float,
            "date" => Kind::Date,
            "timestamp" => Kind::Timestamp,
            "text" => Kind::Text,
            _ => return None,
        };
        Some(Field { name: field[0].as_str()?.into(), kind })
    };
    Some(Schema { fields: fields.as_array()?.iter().map(field).collect::<Option<_>>()? })
}

fn rows(rows: &Json, schema: &Schema) -> Option<Vec<Vec<Value>>> {
    let row = |row: &Json| {
        let cells = row.as_array()?.iter().zip(&schema.fields);
        cells.map(|(cell, field)| value(cell, field.kind)).collect::<Option<Vec<Value>>>()
    };
    rows.as_array()?.iter().map(row).collect()
}

fn value(cell: &Json, kind: Kind) -> Option<Value> {
    if cell.is_null() {
        return Some(Value::Null);
    }
    let text = cell.as_str()?;
    Some(match kind {
        Kind::Boolean => Value::Boolean(text == "true"),
        Kind::Integer => Value::Integer(text.parse().ok()?),
        Kind::Decimal { scale } => {
            Value::Decimal { mantissa: text.replace('.', "").parse().ok()?, scale }
        }
        Kind::Float => Value::Float(text.parse().ok()?),
        Kind::Date => Value::Date(quarrier_filter::calendar::parse_date(text)?),
        Kind::Timestamp => Value::Timestamp(quarrier_filter::calendar::parse_timestamp(text)?),
        _ => Value::Text(text.into()),
    })
}
