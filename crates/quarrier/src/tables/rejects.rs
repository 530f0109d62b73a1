//! Rejected messages, as rows of a list.

use serde_json::{Value, json};

/// A message of `source` that was left out, at a line, from 1, and a byte offset: one object. Bytes that
/// are no UTF-8 are escaped, and `is_escaped` says so.
pub fn reject_row(source: &str, (line, offset): (u64, u64), reason: &str, bytes: &[u8]) -> Value {
    let mut row = json!({
        "source": source,
        "line": line,
        "offset": offset,
        "reason": reason,
    });
    match std::str::from_utf8(bytes) {
        Ok(text) => row["bytes"] = json!(text),
        Err(error) if error.error_len().is_none() => {
            // Cut off inside of a character.
            row["bytes"] = json!(String::from_utf8_lossy(&bytes[..error.valid_up_to()]));
        }
        Err(_) => {
            row["bytes"] = json!(bytes.escape_ascii().to_string());
            row["is_escaped"] = json!(true);
        }
    }
    row
}
