//! Hexadecimal digits: encodes bytes, and parses them with wildcards.

use std::fmt;

/// Why a string is not hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HexError {
    /// A character that is not a digit, `?` or a separator, and its position, counted from 1.
    Character(char, usize),
    /// A separator between the two digits of a byte, and its position, counted from 1.
    SplitByte(usize),
    /// The last byte has one digit.
    OddDigits,
}

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HexError::Character(c, at) => {
                write!(f, "'{c}' at character {at} is not a hexadecimal digit, '?' or blank")
            }
            HexError::SplitByte(at) => write!(f, "a byte is split at character {at}"),
            HexError::OddDigits => {
                f.write_str("has an odd number of digits; write each byte with two")
            }
        }
    }
}

impl std::error::Error for HexError {}

/// Writes bytes with two digits each, in lower case: `ffd8`.
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Parses bytes such as `FF D8 ?? 4?` into a value and a mask for each byte; a mask bit of 1 must
/// match. `??` is any byte; in `?A` and `A?`, one half byte is a wildcard. Blanks, commas and
/// colons between bytes are ignored. An empty string is valid.
///
/// # Errors
/// Other characters, and bytes that are not two adjacent digits.
pub fn parse_masked(text: &str) -> Result<Vec<(u8, u8)>, HexError> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for (at, c) in text.chars().enumerate() {
        let half: (u8, u8) = match c.to_digit(16) {
            Some(digit) => (digit as u8, 0xF),
            None if c == '?' => (0, 0),
            None if !(c.is_whitespace() || matches!(c, ',' | ':')) => {
                return Err(HexError::Character(c, at + 1));
            }
            None if high.is_some() => return Err(HexError::SplitByte(at + 1)),
            None => continue,
        };
        match high.take() {
            Some((value, mask)) => bytes.push((value << 4 | half.0, mask << 4 | half.1)),
            None => high = Some(half),
        }
    }
    if high.is_some() { Err(HexError::OddDigits) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_half_bytes_and_wildcards_are_read() {
        let masked = |text| parse_masked(text).map(|bytes| bytes.into_iter().unzip());
        assert_eq!(masked("FF d8"), Ok((vec![0xFF, 0xD8], vec![0xFF, 0xFF])));
        assert_eq!(masked("ffd8 ??"), Ok((vec![0xFF, 0xD8, 0], vec![0xFF, 0xFF, 0])));
        assert_eq!(masked("?A, A?:"), Ok((vec![0x0A, 0xA0], vec![0x0F, 0xF0])));
        assert_eq!(parse_masked(" "), Ok(Vec::new()));
        for (text, error) in [
            ("FF D", HexError::OddDigits),
            ("F F", HexError::SplitByte(2)),
            ("GG", HexError::Character('G', 1)),
            ("é1", HexError::Character('é', 1)),
            ("é", HexError::Character('é', 1)),
            ("1é", HexError::Character('é', 2)),
        ] {
            assert_eq!(parse_masked(text), Err(error), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encode(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        let read = parse_masked(&text);
        assert_eq!(read, Ok(bytes.into_iter().map(|byte| (byte, 0xFF)).collect()));
    }
}
