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
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            // A write to memory cannot fail.
            0..0x20 | 0x7f => drop(write!(out, "\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
