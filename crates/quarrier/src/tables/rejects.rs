//! Rejected messages as rows of a list.

use serde_json::{Value, json};

/// A rejected message of `source` as an object, with its line, from 1, and byte offset. Bytes that are
/// not UTF-8 are escaped, and `is_escaped` is true.
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
            // The bytes were cut inside a character.
            row["bytes"] = json!(String::from_utf8_lossy(&bytes[..error.valid_up_to()]));
        }
        Err(_) => {
            row["bytes"] = json!(bytes.escape_ascii().to_string());
            row["is_escaped"] = json!(true);
        }
    }
    row
}
