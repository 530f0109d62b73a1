//! Writes cells of the usual types as JSON, straight from their bytes.
//!
//! Each function returns false for a cell that it does not write; then it may have appended a part
//! of it.

use crate::kind;
use crate::rows::{is_plain, quoted};
use crate::value::{DAY_US, EPOCH_DAYS};

use super::digits::{date, exact, float, integer, numeric, time};

/// Writes a cell in PostgreSQL's binary form. `scale` is the number of decimals of the column.
pub(super) fn binary(kind: u32, scale: Option<u8>, cell: &[u8], out: &mut Vec<u8>) -> bool {
    match kind {
        kind::TEXT => string(cell, out),
        kind::INT8 => fixed(cell, |bytes| integer(i64::from_be_bytes(bytes), out)),
        kind::INT4 => fixed(cell, |bytes| integer(i32::from_be_bytes(bytes).into(), out)),
        kind::INT2 => fixed(cell, |bytes| integer(i16::from_be_bytes(bytes).into(), out)),
        kind::FLOAT8 => fixed(cell, |bytes| float(f64::from_be_bytes(bytes), out)),
        kind::FLOAT4 => fixed(cell, |bytes| float(f32::from_be_bytes(bytes).into(), out)),
        kind::NUMERIC => numeric(cell, scale, out),
        kind::BOOL => fixed(cell, |[byte]| truth(byte != 0, out)),
        kind::BYTEA => hex(cell, out),
        kind::DATE => fixed(cell, |bytes| {
            within_quotes(out, |out| date(i64::from(i32::from_be_bytes(bytes)) + EPOCH_DAYS, out))
        }),
        kind::TIME => fixed(cell, |bytes| {
            let micros = i64::from_be_bytes(bytes);
            (0..=DAY_US).contains(&micros) && within_quotes(out, |out| time(micros, out))
        }),
        kind::TIMESTAMP | kind::TIMESTAMPTZ => {
            fixed(cell, |bytes| within_quotes(out, |out| timestamp(i64::from_be_bytes(bytes), out)))
        }
        _ => false,
    }
}

/// Writes a cell in its text form, if it is spelt as JSON spells it.
pub(super) fn text(kind: u32, scale: Option<u8>, cell: &str, out: &mut Vec<u8>) -> bool {
    match kind {
        kind::TEXT => string(cell.as_bytes(), out),
        // So few digits cannot exceed the type.
        kind::INT8 => whole(cell, 18, out),
        kind::INT4 => whole(cell, 9, out),
        kind::INT2 => whole(cell, 4, out),
        kind::FLOAT8 | kind::FLOAT4 => cell.trim().parse().is_ok_and(|number| float(number, out)),
        kind::NUMERIC => exact(cell, scale, out),
        kind::BOOL => match cell {
            "t" | "true" => truth(true, out),
            "f" | "false" => truth(false, out),
            _ => false,
        },
        kind::DATE => cell.len() == 10 && unchanged(cell.as_bytes(), out),
        kind::TIMESTAMP | kind::TIMESTAMPTZ => match cell.as_bytes() {
            // A time zone without minutes gets them, and a date ends like one.
            [.., b'+' | b'-', _, _] => false,
            cell => unchanged(cell, out),
        },
        _ => false,
    }
}

fn fixed<const N: usize>(cell: &[u8], write: impl FnOnce([u8; N]) -> bool) -> bool {
    cell.try_into().is_ok_and(write)
}

fn within_quotes(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
    out.push(b'"');
    let is_written = write(out);
    out.push(b'"');
    is_written
}

fn string(cell: &[u8], out: &mut Vec<u8>) -> bool {
    if is_plain(cell) {
        return plain(cell, out);
    }
    // NUL is valid UTF-8, but no string of PostgreSQL has it.
    let text = std::str::from_utf8(cell).ok().filter(|_| memchr::memchr(0, cell).is_none());
    text.is_some_and(|text| {
        quoted(text, out);
        true
    })
}

fn plain(cell: &[u8], out: &mut Vec<u8>) -> bool {
    out.reserve(cell.len() + 2);
    within_quotes(out, |out| {
        out.extend_from_slice(cell);
        true
    })
}

/// Writes a date or time that would lose nothing when it is trimmed.
fn unchanged(cell: &[u8], out: &mut Vec<u8>) -> bool {
    let is_trimmed = cell.first() != Some(&b' ') && cell.last() != Some(&b' ');
    is_trimmed && is_plain(cell) && plain(cell, out)
}

fn whole(cell: &str, digits_max: usize, out: &mut Vec<u8>) -> bool {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let fits = digits.len() <= digits_max || (digits_max == 18 && cell.parse::<i64>().is_ok());
    let is_whole = fits && !digits.contains('.') && cell != "-0";
    is_whole && exact(cell, None, out)
}

fn truth(value: bool, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(if value { b"true" } else { b"false" });
    true
}

fn hex(cell: &[u8], out: &mut Vec<u8>) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| DIGITS[usize::from(half)];
    out.reserve(cell.len() * 2 + 5);
    within_quotes(out, |out| {
        out.extend_from_slice(b"\\\\x");
        out.extend(cell.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        true
    })
}

fn timestamp(micros: i64, out: &mut Vec<u8>) -> bool {
    let is_written = date(micros.div_euclid(DAY_US) + EPOCH_DAYS, out);
    out.push(b' ');
    is_written && time(micros.rem_euclid(DAY_US), out)
}
