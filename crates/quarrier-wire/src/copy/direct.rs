//! Writes rows of COPY as messages straight from their bytes, without a
//! [`Value`](crate::value::Value) or an allocation for each cell.
//!
//! The messages are those of the way through values, which also reports all errors: a row that is
//! not written here goes that way.

use crate::rows::quoted;
use crate::sql::CopyOptions;
use crate::value;

use super::cell;
use super::fields::{binary_cell, unescaped};
use super::message::json;
use super::read::Target;

/// Writes the rows of a COPY.
pub(super) struct DirectWriter(Vec<Column>);

struct Column {
    /// A comma, the name in quotes, and a colon.
    key: Vec<u8>,
    kind: u32,
    scale: Option<u8>,
}

impl DirectWriter {
    pub(super) fn new(columns: &[Target]) -> Self {
        let column = |target: &Target| {
            let mut key = vec![b','];
            quoted(&target.name, &mut key);
            key.push(b':');
            Column { key, kind: target.kind, scale: target.scale }
        };
        DirectWriter(columns.iter().map(column).collect())
    }

    /// Appends the message of a binary row: the cells of all columns, each after its length.
    /// Returns false, without a change of `out`, if the row must go the other way.
    pub(super) fn binary(&self, mut cells: &[u8], out: &mut Vec<u8>) -> bool {
        self.row(out, |column, out| {
            let Some((cell, rest)) = binary_cell(cells) else { return false };
            cells = rest;
            cell.is_none_or(|cell| column.binary(cell, out))
        })
    }

    /// Like [`DirectWriter::binary`], for a line in the text format.
    pub(super) fn text(&self, line: &str, options: &CopyOptions, out: &mut Vec<u8>) -> bool {
        self.line(line, out, |column, line, out| {
            let (raw, rest, has_escapes) = text_cell(line, options.delimiter);
            let is_written = if raw == options.null {
                true
            } else if has_escapes {
                unescaped(raw).is_ok_and(|cell| column.text(&cell, out))
            } else {
                column.text(raw, out)
            };
            is_written.then_some(rest)
        })
    }

    /// Like [`DirectWriter::binary`], for a line in the CSV format.
    pub(super) fn csv(&self, line: &str, options: &CopyOptions, out: &mut Vec<u8>) -> bool {
        self.line(line, out, |column, line, out| {
            let (cell, rest, has_quotes) = csv_cell(line, options)?;
            let is_null = !has_quotes && cell == options.null;
            (is_null || column.text(cell, out)).then_some(rest)
        })
    }

    /// Appends the message of a line. `cell` writes the cell of a column at the start of a string,
    /// and returns the rest after the delimiter, if there is one.
    fn line<'l>(
        &self,
        line: &'l str,
        out: &mut Vec<u8>,
        cell: impl Fn(&Column, &'l str, &mut Vec<u8>) -> Option<Option<&'l str>>,
    ) -> bool {
        let start = out.len();
        let mut rest = Some(line);
        let is_written = self.row(out, |column, out| {
            let after = rest.and_then(|line| cell(column, line, out));
            after.map(|after| rest = after).is_some()
        });
        if is_written && rest.is_some() {
            // The line has more cells than columns.
            out.truncate(start);
        }
        is_written && rest.is_none()
    }

    fn row(&self, out: &mut Vec<u8>, mut cell: impl FnMut(&Column, &mut Vec<u8>) -> bool) -> bool {
        let start = out.len();
        if !self.0.iter().all(|column| cell(column, out)) {
            out.truncate(start);
            return false;
        }
        match out.get_mut(start) {
            // The first field has a comma before it, as all others.
            Some(comma) => *comma = b'{',
            None => out.push(b'{'),
        }
        out.extend_from_slice(b"}\n");
        true
    }
}

impl Column {
    #[inline]
    fn binary(&self, cell: &[u8], out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.key);
        let start = out.len();
        cell::binary(self.kind, self.scale, cell, out) || self.by_value((cell, true), start, out)
    }

    #[inline]
    fn text(&self, cell: &str, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(&self.key);
        let start = out.len();
        cell::text(self.kind, self.scale, cell, out)
            || self.by_value((cell.as_bytes(), false), start, out)
    }

    /// Writes the cell by way of its value.
    #[cold]
    fn by_value(&self, (cell, is_binary): (&[u8], bool), start: usize, out: &mut Vec<u8>) -> bool {
        out.truncate(start);
        let value = value::read(self.kind, Some(cell), is_binary)
            .and_then(|value| value::assigned(value, self.kind, self.scale));
        value.is_ok_and(|value| json(&value, out).is_ok())
    }
}

/// Splits off the first cell of a line in the text format. Returns it as it is written, the rest
/// after its delimiter, and whether it has escapes.
fn text_cell(line: &str, delimiter: u8) -> (&str, Option<&str>, bool) {
    let bytes = line.as_bytes();
    let (mut at, mut has_escapes) = (0, false);
    while let Some(byte) = bytes.get(at) {
        if *byte == delimiter {
            // The delimiter is a byte of ASCII.
            return (&line[..at], Some(&line[at + 1..]), has_escapes);
        }
        if *byte == b'\\' {
            has_escapes = true;
            at += 1;
        }
        at += 1;
    }
    (line, None, has_escapes)
}

/// Splits off the first cell of a line in the CSV format: all of it in quotes or without any, and
/// without escapes. Returns it without its quotes, the rest after its delimiter, and whether it has
/// quotes.
fn csv_cell<'l>(line: &'l str, options: &CopyOptions) -> Option<(&'l str, Option<&'l str>, bool)> {
    let CopyOptions { delimiter, quote, escape, .. } = *options;
    let bytes = line.as_bytes();
    if bytes.first() == Some(&quote) {
        let end = 1 + memchr::memchr(quote, &bytes[1..])?;
        // Quotes, escapes and delimiters are bytes of ASCII.
        let cell = &line[1..end];
        if memchr::memchr(escape, cell.as_bytes()).is_some() {
            return None;
        }
        return match bytes.get(end + 1) {
            None => Some((cell, None, true)),
            Some(next) if *next == delimiter => Some((cell, Some(&line[end + 2..]), true)),
            Some(_) => None,
        };
    }
    match bytes.iter().position(|byte| *byte == delimiter || *byte == quote) {
        None => Some((line, None, false)),
        Some(end) if bytes[end] == delimiter => Some((&line[..end], Some(&line[end + 1..]), false)),
        Some(_) => None,
    }
}
