//! Reads `FF D8 ?? 4?`.

use crate::error::{Error, Result};

/// Value and mask of each byte. Blanks, commas and colons between bytes are ignored.
pub(super) fn parse(text: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let fail = |reason: String| Error::pattern(text, reason);
    let mut nibbles = Vec::with_capacity(text.len());
    let mut inside = false; // between the two digits of a byte
    for (at, c) in text.char_indices() {
        let nibble = match c {
            '?' => (0, 0),
            _ if c.is_ascii_hexdigit() => (c.to_digit(16).unwrap_or(0) as u8, 0xF),
            _ if c.is_whitespace() || matches!(c, ',' | ':') => {
                if inside {
                    return Err(fail(format!("a byte is cut in two at character {}", at + 1)));
                }
                continue;
            }
            _ => {
                return Err(fail(format!(
                    "'{c}' at character {} is not a hexadecimal digit, '?' or blank",
                    at + 1
                )));
            }
        };
        nibbles.push(nibble);
        inside = !inside;
    }
    if inside {
        return Err(fail("has an odd number of digits; write each byte with two".to_string()));
    }
    if nibbles.is_empty() {
        return Err(fail("is empty; it would match everywhere".to_string()));
    }
    if nibbles.iter().all(|&(_, mask)| mask == 0) {
        return Err(fail("has wildcards only; it would match everywhere".to_string()));
    }
    Ok(nibbles
        .chunks_exact(2)
        .map(|pair| (pair[0].0 << 4 | pair[1].0, pair[0].1 << 4 | pair[1].1))
        .unzip())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn bytes_half_bytes_and_wildcards_are_read() {
        assert_eq!(parse("FF d8").unwrap(), (vec![0xFF, 0xD8], vec![0xFF, 0xFF]));
        assert_eq!(parse("ffd8 ??").unwrap(), (vec![0xFF, 0xD8, 0], vec![0xFF, 0xFF, 0]));
        assert_eq!(parse("?A A?").unwrap(), (vec![0x0A, 0xA0], vec![0x0F, 0xF0]));
    }

    #[test]
    fn wrong_hex_is_refused_with_a_reason() {
        for (text, reason) in [
            ("FF D", "odd number"),
            ("F F", "cut in two"),
            ("GG", "'G' at character 1"),
            ("", "is empty"),
            ("  ", "is empty"),
            ("?? ??", "wildcards only"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
