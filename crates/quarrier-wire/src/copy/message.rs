//! Writes rows as messages: one JSON object per line, as tables of messages store them.

use crate::failure::{Failure, Result, state};
use crate::rows::quoted;
use crate::value::Value;

/// Appends a row as a message, with a field for each value that is not NULL.
///
/// # Errors
/// For a floating-point number that JSON cannot express.
pub fn message<'v>(
    fields: impl Iterator<Item = (&'v str, &'v Value)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    out.push(b'{');
    for (name, value) in fields.filter(|(_, value)| !matches!(value, Value::Null)) {
        if out.len() > start + 1 {
            out.push(b',');
        }
        quoted(name, out);
        out.push(b':');
        if let Err(failure) = json(value, out) {
            out.truncate(start);
            return Err(failure);
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends a value.
pub(super) fn json(value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Float(value) if value.is_finite() => {
            out.extend_from_slice(format!("{value:?}").as_bytes());
        }
        Value::Float(value) => {
            let said = format!("{value} cannot be stored: messages have only finite numbers");
            return Err(Failure::new(state::OUT_OF_RANGE, said));
        }
        Value::Decimal(value) => number(value, out),
        Value::Text(value) | Value::Date(value) | Value::Time(value) => quoted(value, out),
        Value::Timestamp(value) => quoted(value, out),
        Value::Bytes(value) => {
            quoted(&format!("\\x{}", quarrier_core::hex::encode(value)), out);
        }
        Value::List(values) => {
            out.push(b'[');
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                json(value, out)?;
            }
            out.push(b']');
        }
    }
    Ok(())
}

/// JSON requires a digit on both sides of a point, and no leading zeros.
fn number(written: &str, out: &mut Vec<u8>) {
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", written),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole.as_bytes() });
    if !part.is_empty() {
        out.push(b'.');
        out.extend_from_slice(part.as_bytes());
    }
}
