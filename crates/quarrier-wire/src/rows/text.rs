//! Writes values in PostgreSQL's text format.

use std::io::Write;

use super::view::{Values, View};
use super::{Written, number, time, unwritable};
use crate::kind;

const HEX: &[u8; 16] = b"0123456789abcdef";

impl View<'_> {
    /// Appends the value of a row, which must have one.
    pub(crate) fn text(&self, row: usize, out: &mut Vec<u8>) -> Written {
        match &self.values {
            Values::Bool(values) => out.push(if values.value(row) { b't' } else { b'f' }),
            Values::Text(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::LargeText(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::TextView(values) => out.extend_from_slice(values.value(row).as_bytes()),
            Values::Bytes(_)
            | Values::LargeBytes(_)
            | Values::BytesView(_)
            | Values::FixedBytes(_) => hex(self.bytes(row), out),
            Values::Date(values) => time::date(i64::from(values[row]), out),
            Values::DateMs(values) => time::date(values[row].div_euclid(86_400_000), out),
            Values::Time32(values, nanos) => time::time(i64::from(values[row]) * nanos, out),
            Values::Time64(values, nanos) => time::time(values[row].saturating_mul(*nanos), out),
            Values::Timestamp(values, per_second, has_zone) => {
                let micros = time::micros(values[row], *per_second);
                time::timestamp(micros.ok_or_else(too_far)?, *has_zone, out);
            }
            Values::Duration(..) | Values::Interval(_) => time::interval(self.interval(row)?, out),
            Values::Coded(places, values) => values.text(places[row], out)?,
            Values::List(starts, items) if self.kind != kind::JSON => {
                list(items, starts[row]..starts[row + 1], out)?;
            }
            Values::List(..) | Values::Struct(_) => self.json(row, out)?,
            Values::Null => {}
            _ => self.number(row, out),
        }
        Ok(())
    }

    /// Appends a number.
    pub(super) fn number(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            Values::I8(values) => number::whole(values[row].into(), out),
            Values::I16(values) => number::whole(values[row].into(), out),
            Values::I32(values) => number::whole(values[row].into(), out),
            Values::I64(values) => number::whole(values[row].into(), out),
            Values::U8(values) => number::whole(values[row].into(), out),
            Values::U16(values) => number::whole(values[row].into(), out),
            Values::U32(values) => number::whole(values[row].into(), out),
            Values::U64(values) => number::whole(values[row].into(), out),
            Values::F16(values) => single(values[row], out),
            Values::F32(values) => single(values[row], out),
            Values::F64(values) => {
                let value = values[row];
                let shortest = |exponent| match exponent {
                    true => format!("{value:e}"),
                    false => format!("{value}"),
                };
                number::floating(value, shortest, out);
            }
            Values::D32(values, scale) => number::pointed(&values[row].to_string(), *scale, out),
            Values::D64(values, scale) => number::pointed(&values[row].to_string(), *scale, out),
            Values::D128(values, scale) => number::pointed(&values[row].to_string(), *scale, out),
            Values::D256(values, scale) => number::pointed(&values[row].to_string(), *scale, out),
            _ => {}
        }
    }

    /// Returns the bytes of a row, in a column of bytes.
    pub(super) fn bytes(&self, row: usize) -> &[u8] {
        match &self.values {
            Values::Bytes(values) => values.value(row),
            Values::LargeBytes(values) => values.value(row),
            Values::BytesView(values) => values.value(row),
            Values::FixedBytes(values) => values.value(row),
            _ => &[],
        }
    }
}

pub(super) fn too_far() -> crate::Failure {
    unwritable("a timestamp is out of range for this protocol")
}

fn single(value: f32, out: &mut Vec<u8>) {
    let shortest = |exponent| match exponent {
        true => format!("{value:e}"),
        false => format!("{value}"),
    };
    number::floating(f64::from(value), shortest, out);
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}

/// Writes a list: `{a,"b c",NULL}`.
fn list(items: &View<'_>, range: std::ops::Range<usize>, out: &mut Vec<u8>) -> Written {
    out.push(b'{');
    let mut value = Vec::new();
    for (place, row) in range.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if items.is_null(row) {
            out.extend_from_slice(b"NULL");
            continue;
        }
        value.clear();
        items.text(row, &mut value)?;
        let is_plain = |byte: &u8| !b"{}\",\\ \t\n\r\x0b\x0c".contains(byte);
        if !value.is_empty() && value.iter().all(is_plain) && !value.eq_ignore_ascii_case(b"NULL") {
            out.extend_from_slice(&value);
            continue;
        }
        out.push(b'"');
        for byte in &value {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    // A write to memory cannot fail.
    let _ = out.write_all(b"}");
    Ok(())
}
