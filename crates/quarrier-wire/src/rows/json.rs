//! Writes values as JSON.

use std::io::Write;

use super::view::{Values, View};
use super::{Written, time};

impl View<'_> {
    /// Appends the value of a row, or `null`.
    pub(crate) fn json(&self, row: usize, out: &mut Vec<u8>) -> Written {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &self.values {
            Values::Bool(values) => {
                out.extend_from_slice(if values.value(row) { b"true" } else { b"false" });
            }
            Values::F16(_) | Values::F32(_) | Values::F64(_) => {
                let start = out.len();
                self.number(row, out);
                // JSON has no such numbers.
                if out[start..].ends_with(b"NaN") || out[start..].ends_with(b"Infinity") {
                    out.truncate(start);
                    out.extend_from_slice(b"null");
                }
            }
            Values::I8(_)
            | Values::I16(_)
            | Values::I32(_)
            | Values::I64(_)
            | Values::U8(_)
            | Values::U16(_)
            | Values::U32(_)
            | Values::U64(_)
            | Values::D32(..)
            | Values::D64(..)
            | Values::D128(..)
            | Values::D256(..) => self.number(row, out),
            Values::Text(values) => quoted(values.value(row), out),
            Values::LargeText(values) => quoted(values.value(row), out),
            Values::TextView(values) => quoted(values.value(row), out),
            Values::Timestamp(values, per_second, has_zone) => {
                out.push(b'"');
                time::iso(values[row], *per_second, *has_zone, out);
                out.push(b'"');
            }
            Values::Coded(places, values) => values.json(places[row], out)?,
            Values::List(starts, items) => {
                out.push(b'[');
                for (place, item) in (starts[row]..starts[row + 1]).enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    items.json(item, out)?;
                }
                out.push(b']');
            }
            Values::Struct(fields) => {
                row_object(fields.iter().map(|(name, view)| (*name, view)), row, out)?;
            }
            _ => {
                let mut text = Vec::new();
                self.text(row, &mut text)?;
                quoted(&String::from_utf8_lossy(&text), out);
            }
        }
        Ok(())
    }
}

/// Appends a row as an object.
pub(crate) fn row_object<'v, 'a: 'v>(
    columns: impl Iterator<Item = (&'v str, &'v View<'a>)>,
    row: usize,
    out: &mut Vec<u8>,
) -> Written {
    out.push(b'{');
    for (place, (name, column)) in columns.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        quoted(name, out);
        out.push(b':');
        column.json(row, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends a string in quotes.
pub(crate) fn quoted(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    while let Some(at) = escape_at(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            byte @ (b'"' | b'\\') => out.extend([b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // A write to memory cannot fail.
            byte => drop(write!(out, "\\u{byte:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Returns whether bytes are ASCII without any that JSON escapes.
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    let are_plain = |word: u64| escaped(word) | (word & HIGHS) == 0;
    let of = |chunk: &[u8; 8]| are_plain(u64::from_ne_bytes(*chunk));
    if let Some(last) = bytes.last_chunk::<8>() {
        return bytes.as_chunks::<8>().0.iter().all(of) && of(last);
    }
    // Fewer than eight bytes: two halves that may overlap, or each byte.
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_ne_bytes(*first), u32::from_ne_bytes(*last));
            are_plain(u64::from(first) | u64::from(last) << 32)
        }
        _ => bytes.iter().all(|byte| byte.is_ascii() && !is_escaped(*byte)),
    }
}

/// Returns the place of the first byte that JSON escapes.
fn escape_at(bytes: &[u8]) -> Option<usize> {
    let (chunks, _) = bytes.as_chunks::<8>();
    let is_escaped_in = |chunk: &[u8; 8]| escaped(u64::from_ne_bytes(*chunk)) != 0;
    let from = 8 * chunks.iter().position(is_escaped_in).unwrap_or(chunks.len());
    bytes[from..].iter().position(|byte| is_escaped(*byte)).map(|at| from + at)
}

fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..0x20 | 0x7f | b'"' | b'\\')
}

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES * 0x80;

/// Returns a number that is not zero if JSON escapes a byte of `word`.
fn escaped(word: u64) -> u64 {
    let is_below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let is_equal = |byte: u8| is_below(word ^ (ONES * u64::from(byte)), 1);
    (is_below(word, 0x20) | is_equal(b'"') | is_equal(b'\\') | is_equal(0x7f)) & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest function that is obviously right.
    fn naive(text: &str) -> Vec<u8> {
        let mut out = vec![b'"'];
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => out.extend([b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0..0x20 | 0x7f => write!(out, "\\u{byte:04x}").unwrap(),
                _ => out.push(byte),
            }
        }
        out.push(b'"');
        out
    }

    #[test]
    fn each_byte_is_escaped_at_every_place() {
        for byte in 0..=0x7f_u8 {
            for (before, after) in
                (0..20).flat_map(|before| [(before, 0), (before, 3), (before, 9)])
            {
                let text =
                    format!("{}{}{}", "x".repeat(before), char::from(byte), "\u{e9}".repeat(after));
                let mut out = Vec::new();
                quoted(&text, &mut out);
                assert_eq!(out, naive(&text), "{text:?}");
                let is_all = after == 0 && out.len() == text.len() + 2;
                assert_eq!(is_plain(text.as_bytes()), is_all, "{text:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_string_is_quoted_as_byte_by_byte(text in "[ -~\u{0}-\u{ff}\u{20ac}]{0,40}") {
            let mut out = Vec::new();
            quoted(&text, &mut out);
            proptest::prop_assert_eq!(out, naive(&text));
            let is_plain = text.bytes().all(|byte| byte.is_ascii() && !is_escaped(byte));
            proptest::prop_assert_eq!(super::is_plain(text.as_bytes()), is_plain);
        }
    }
}
