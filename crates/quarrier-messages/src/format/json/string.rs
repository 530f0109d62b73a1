//! Strings: their ends, and their escapes.

use crate::Fault;

/// Finds the end of the string whose contents start at `at`, after its opening quote; returns the
/// offset of the closing quote, and whether the string has escapes. If so, writes a copy without
/// them to `plain`.
pub(super) fn end(bytes: &[u8], at: usize, plain: &mut Vec<u8>) -> Result<(usize, bool), Fault> {
    let mut from = at;
    let mut has_escapes = false;
    loop {
        let stop = bytes[from..].iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20));
        let Some(stop) = stop.map(|stop| from + stop) else {
            return Err(Fault::new(bytes.len(), "an unclosed string"));
        };
        match bytes[stop] {
            b'"' => {
                if has_escapes {
                    plain.extend_from_slice(&bytes[from..stop]);
                }
                return Ok((stop, has_escapes));
            }
            b'\\' => {
                if !has_escapes {
                    plain.clear();
                    has_escapes = true;
                }
                plain.extend_from_slice(&bytes[from..stop]);
                from = escape(bytes, stop, plain)?;
            }
            _ => return Err(Fault::new(stop, "a control character in a string")),
        }
    }
}

/// Appends the character of the escape at `at`; returns the end of the escape.
fn escape(bytes: &[u8], at: usize, plain: &mut Vec<u8>) -> Result<usize, Fault> {
    let byte = match bytes.get(at + 1) {
        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return unicode(bytes, at, plain),
        _ => return Err(Fault::new(at, "an unknown escape in a string")),
    };
    plain.push(byte);
    Ok(at + 2)
}

fn unicode(bytes: &[u8], at: usize, plain: &mut Vec<u8>) -> Result<usize, Fault> {
    let lone = Fault::new(at, "half of a surrogate pair in a string");
    let high = hex(bytes, at + 2).ok_or(Fault::new(at, "\\u without four digits in a string"))?;
    let (code, end) = match high {
        0xD800..0xDC00 => {
            let low = match bytes.get(at + 6..at + 8) {
                Some(b"\\u") => hex(bytes, at + 8),
                _ => None,
            };
            let low = low.filter(|low| (0xDC00..0xE000).contains(low)).ok_or(lone)?;
            (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), at + 12)
        }
        _ => (high, at + 6),
    };
    let letter = char::from_u32(code).ok_or(lone)?;
    plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(end)
}

fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, &byte| Some(value << 4 | char::from(byte).to_digit(16)?))
}
