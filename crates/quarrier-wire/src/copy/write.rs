//! Writes rows for COPY … TO STDOUT.

use crate::failure::Result;
use crate::rows::View;
use crate::sql::{CopyFormat, CopyOptions};

/// The start of a binary COPY: its signature, no flags, no extension.
pub(crate) const BINARY_BEGIN: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end of a binary COPY.
pub(crate) const BINARY_END: &[u8] = b"\xff\xff";

/// Returns the bytes before the rows.
pub(crate) fn begin<'a>(
    names: impl Iterator<Item = &'a str>,
    options: &CopyOptions,
    out: &mut Vec<u8>,
) {
    match options.format {
        CopyFormat::Binary => out.extend_from_slice(BINARY_BEGIN),
        _ if options.has_header => {
            for (place, name) in names.enumerate() {
                if place > 0 {
                    out.push(options.delimiter);
                }
                match options.format {
                    CopyFormat::Csv => csv(name.as_bytes(), options, out),
                    _ => escaped(name.as_bytes(), options.delimiter, out),
                }
            }
            out.push(b'\n');
        }
        _ => {}
    }
}

/// Writes a row. `scratch` is a buffer for a value.
pub(crate) fn row(
    columns: &[View<'_>],
    row: usize,
    options: &CopyOptions,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if options.format == CopyFormat::Binary {
        out.extend((columns.len() as u16).to_be_bytes());
        return columns.iter().try_for_each(|column| column.sized(row, true, out));
    }
    for (place, column) in columns.iter().enumerate() {
        if place > 0 {
            out.push(options.delimiter);
        }
        if column.is_null(row) {
            out.extend_from_slice(options.null.as_bytes());
            continue;
        }
        scratch.clear();
        column.text(row, scratch)?;
        match options.format {
            CopyFormat::Csv => csv(scratch, options, out),
            _ => escaped(scratch, options.delimiter, out),
        }
    }
    out.push(b'\n');
    Ok(())
}

fn escaped(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' if delimiter == b'\t' => out.extend_from_slice(b"\\t"),
            byte if *byte == delimiter => out.extend([b'\\', delimiter]),
            byte => out.push(*byte),
        }
    }
}

fn csv(value: &[u8], options: &CopyOptions, out: &mut Vec<u8>) {
    let special = |byte: &u8| {
        matches!(byte, b'\n' | b'\r') || *byte == options.quote || *byte == options.delimiter
    };
    let is_null = value == options.null.as_bytes();
    if !is_null && value != b"\\." && !value.iter().any(special) {
        return out.extend_from_slice(value);
    }
    out.push(options.quote);
    for byte in value {
        if *byte == options.quote || *byte == options.escape {
            out.push(options.escape);
        }
        out.push(*byte);
    }
    out.push(options.quote);
}
