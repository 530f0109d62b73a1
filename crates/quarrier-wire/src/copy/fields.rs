//! Splits the rows of COPY into fields.

use crate::sql::CopyOptions;

/// Fields without bytes are NULL.
type Fields = std::result::Result<Vec<Option<String>>, &'static str>;

const EXTRA: &str = "extra data after last expected column";

/// Splits off the first field of a binary row; `None` if the row ends before it, or its length is
/// invalid.
#[inline]
pub(super) fn binary_cell(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    match i32::from_be_bytes(*length) {
        -1 => Some((None, rest)),
        length => {
            let (cell, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            Some((Some(cell), rest))
        }
    }
}

/// Splits a line in the text format; fails if it has more than `count_max` fields.
pub(super) fn text_fields(line: &str, options: &CopyOptions, count_max: usize) -> Fields {
    let delimiter = char::from(options.delimiter);
    let mut fields = Vec::with_capacity(count_max);
    let mut raw = String::new();
    let mut letters = line.chars();
    loop {
        match letters.next() {
            Some('\\') => {
                raw.push('\\');
                raw.extend(letters.next());
            }
            Some(letter) if letter != delimiter => raw.push(letter),
            end => {
                let is_null = raw == options.null;
                fields.push(if is_null { None } else { Some(unescaped(&raw)?) });
                raw.clear();
                if end.is_none() {
                    return Ok(fields);
                }
                if fields.len() > count_max {
                    return Err(EXTRA);
                }
            }
        }
    }
}

/// Replaces the escapes of a field in the text format.
pub(super) fn unescaped(raw: &str) -> std::result::Result<String, &'static str> {
    if !raw.contains('\\') {
        return Ok(raw.to_string());
    }
    let mut out: Vec<u8> = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let escape = bytes.next();
        let mut number = |first, base, digits| number_of(&mut bytes, first, base, digits);
        out.push(match escape {
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'v') => 0x0b,
            Some(b'x') => number(0, 16, 2),
            Some(digit @ b'0'..=b'7') => number(u32::from(digit - b'0'), 8, 2),
            Some(other) => other,
            None => b'\\',
        });
    }
    String::from_utf8(out).map_err(|_| "an escape yields invalid UTF-8")
}

/// Splits a line in the CSV format; fails if it has more than `count_max` fields.
pub(super) fn csv_fields(line: &str, options: &CopyOptions, count_max: usize) -> Fields {
    let CopyOptions { delimiter, quote, escape, null, .. } = options;
    let bytes = line.as_bytes();
    let mut fields = Vec::with_capacity(count_max);
    let mut at = 0;
    loop {
        let (mut value, mut has_quotes, mut is_quoted) = (Vec::new(), false, false);
        loop {
            match bytes.get(at) {
                None => break,
                Some(byte) if is_quoted && byte == escape => match bytes.get(at + 1) {
                    Some(next) if next == quote || next == escape => {
                        value.push(*next);
                        at += 1;
                    }
                    _ if escape == quote => is_quoted = false,
                    _ => value.push(*byte),
                },
                Some(byte) if byte == quote => {
                    is_quoted = !is_quoted;
                    has_quotes = true;
                }
                Some(byte) if !is_quoted && byte == delimiter => break,
                Some(byte) => value.push(*byte),
            }
            at += 1;
        }
        // Cut at bytes of ASCII, it is still UTF-8.
        let value = String::from_utf8(value).map_err(|_| "invalid UTF-8")?;
        fields.push(if !has_quotes && value == *null { None } else { Some(value) });
        if at >= bytes.len() {
            return Ok(fields);
        }
        if fields.len() > count_max {
            return Err(EXTRA);
        }
        at += 1;
    }
}

fn number_of(
    bytes: &mut std::iter::Peekable<std::str::Bytes<'_>>,
    first: u32,
    base: u32,
    digits: usize,
) -> u8 {
    let mut number = first;
    for _ in 0..digits {
        let digit = bytes.peek().and_then(|byte| char::from(*byte).to_digit(base));
        let Some(digit) = digit else { break };
        bytes.next();
        number = number * base + digit;
    }
    number as u8
}
