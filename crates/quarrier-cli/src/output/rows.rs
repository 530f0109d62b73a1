//! Rows with named columns, written as they come.

use std::io::{self, Write};

use quarrier_report::Manner;

use super::standard::StandardOutput;
use super::{Format, arrow, csv, json, text};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A string that may be missing.
    Text,
    /// An integer from 0.
    Unsigned,
    /// An integer from 0 that may be missing.
    Optional,
    /// A number; missing if it is not finite.
    Number,
    /// A string that is already JSON.
    Json,
    /// Bytes; writers of text formats receive a string instead.
    Bytes,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// A value of a row, of its column's type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Text(&'v str),
    Missing,
    Unsigned(u64),
    Number(f64),
    Json(&'v str),
    Bytes(&'v [u8]),
}

/// The layout of rows as text for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `source:offset: label: bytes`; a seventh column, the line number, goes before the offset.
    Findings,
    /// `source:offset: rule $string: bytes`, for rules; `in path` follows the string if the scope is a file
    /// in the source.
    Rules,
    /// The bytes found.
    Matches,
    /// A name.
    Sources,
    /// `count  label`.
    Counts,
    /// `count  label: match`.
    Histogram,
    /// `count  condition`, from `condition, count`.
    Conditions,
    /// `condition<TAB>message`, from `source, offset, condition, message`.
    Matched,
    /// `offset  type  length  status  reason`.
    Carved,
    /// `state type size modified path`, of files in file systems.
    Files,
    /// `bytes of length  source`, from `source, length, bytes, …`.
    Cached,
    /// The columns of `quarrier load`, a row per source.
    Loaded,
    /// The columns of `quarrier reindex`, a row per table.
    Reindexed,
    /// `units, bytes, seconds`, and the finished part of each.
    Planned,
    /// One number.
    Number,
}

/// Bytes around a finding, for people.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Excerpt<'b> {
    pub(crate) before: &'b [u8],
    pub(crate) found: &'b [u8],
    pub(crate) after: &'b [u8],
    /// Whether these are whole lines.
    pub(crate) is_lines: bool,
}

/// Writes rows to standard output.
pub(crate) trait Rows: Send {
    /// Writes one row.
    fn row(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) -> io::Result<()>;

    /// Flushes output held back.
    fn flush(&mut self) -> io::Result<()>;

    /// Flushes output held back, and ends the rows.
    fn finish(&mut self) -> io::Result<()>;
}

/// Creates a writer of `columns` in `format` to standard output.
pub(crate) fn to_stdout(
    format: Format,
    layout: Layout,
    columns: &'static [Column],
) -> io::Result<Box<dyn Rows>> {
    let stdout = StandardOutput::new();
    let is_terminal = stdout.is_terminal();
    // A terminal sees rows at once, a pipe in large pieces.
    let capacity = if is_terminal { 0 } else { 64 * 1024 };
    let stdout: Box<dyn Write + Send> = match format {
        Format::Json => stdout.shown(Manner::Json),
        Format::Csv => stdout.shown(Manner::Text),
        // The text writer colours and escapes values itself.
        Format::Text | Format::Arrow => Box::new(stdout),
    };
    let out: Box<dyn Write + Send> = Box::new(io::BufWriter::with_capacity(capacity, stdout));
    Ok(match format {
        Format::Text => Box::new(text::TextRows::new(out, layout, is_terminal)),
        Format::Json => Box::new(json::JsonRows::new(out, columns)),
        Format::Csv => Box::new(csv::CsvRows::new(out, columns)?),
        Format::Arrow => Box::new(arrow::ArrowRows::new(out, columns)?),
    })
}

/// Returns what [`to_stdout`] writes before the first row, in a format with [`continued`].
pub(crate) fn head(format: Format, columns: &[Column]) -> io::Result<Vec<u8>> {
    match format {
        Format::Csv => csv::head(columns),
        Format::Text | Format::Json | Format::Arrow => Ok(Vec::new()),
    }
}

/// Creates a writer of rows after the first, for a format whose rows can be written by several writers,
/// one after the other; `None` for others. The output is no terminal.
pub(crate) fn continued(
    format: Format,
    layout: Layout,
    columns: &'static [Column],
    out: Box<dyn Write + Send>,
) -> Option<Box<dyn Rows>> {
    Some(match format {
        Format::Text => Box::new(text::TextRows::new(out, layout, false)),
        Format::Json => Box::new(json::JsonRows::new(out, columns)),
        Format::Csv => Box::new(csv::CsvRows::continued(out)),
        Format::Arrow => return None,
    })
}
