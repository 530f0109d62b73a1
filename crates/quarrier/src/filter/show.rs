//! Formats matching messages as rows: workers format them, the sink writes them in order.

use std::io::Write;

use arrow_array::RecordBatch;
use quarrier_messages::build::{Cell, KindFinder};
use quarrier_messages::{FormatReader, HiddenColumns};
use quarrier_report::visible;

use super::columns::Builders;
use super::hidden::PlacedMessage;
use super::record::{Record, Wanted};
use super::worker::read_one;

/// The output for matching messages.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OutputKind {
    /// A count.
    Count,
    /// The bytes of each message.
    Bytes,
    /// The bytes of each message, and the conditions that are true.
    Matches,
    /// Rows of these columns.
    Rows(RowFormat, Vec<Wanted>),
    /// JSON with all fields of each message.
    Objects,
    /// Record batches of these columns.
    Batches(quarrier_messages::Schema),
    /// The types of all fields, without messages.
    Kinds,
}

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// Tab-separated values.
    Text,
    Json,
    Csv,
}

/// Rows of a chunk.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) bytes: Vec<u8>,
    /// The end of each row in `bytes`.
    pub(super) ends: Vec<usize>,
    pub(super) batch: Option<RecordBatch>,
}

/// Reads matching messages once more, to format them.
pub(super) struct Shower {
    reader: FormatReader,
    record: Record,
    rows: Rows,
    text: String,
}

enum Rows {
    Text,
    Json {
        /// The names of the fields as JSON object keys, with the colon.
        keys: Vec<Vec<u8>>,
        /// Whether to write NULL for fields that a message lacks.
        is_full: bool,
    },
    Csv(Box<csv::Writer<Vec<u8>>>),
    Batches(Box<Builders>),
    /// The type finder of each field of the record.
    Kinds(Vec<KindFinder>),
}

impl Shower {
    /// Creates a formatter; `None` if the bytes of messages are enough.
    pub(super) fn new(output_kind: &OutputKind, reader: FormatReader) -> Option<Self> {
        let (record, rows) = match output_kind {
            OutputKind::Count | OutputKind::Bytes | OutputKind::Matches => return None,
            OutputKind::Kinds => (Record::new(None), Rows::Kinds(Vec::new())),
            OutputKind::Objects => {
                (Record::new(None), Rows::Json { keys: Vec::new(), is_full: false })
            }
            OutputKind::Rows(format, columns) => {
                let rows = match format {
                    RowFormat::Text => Rows::Text,
                    RowFormat::Json => Rows::Json { keys: Vec::new(), is_full: true },
                    RowFormat::Csv => Rows::Csv(Box::new(writer())),
                };
                (Record::new(Some(columns)), rows)
            }
            OutputKind::Batches(schema) => {
                let builders = Builders::new(schema);
                (Record::new(Some(&builders.wanted())), Rows::Batches(Box::new(builders)))
            }
        };
        Some(Shower { reader, record, rows, text: String::new() })
    }

    /// Appends the message at `at`, with the selected hidden columns.
    ///
    /// # Errors
    /// Why the message cannot be formatted.
    pub(super) fn show(
        &mut self,
        (data, at, is_end): (&[u8], usize, bool),
        hidden: Option<(HiddenColumns, PlacedMessage<'_>)>,
        shown: &mut Shown,
    ) -> Result<(), String> {
        self.record.clear();
        read_one(&mut self.reader, data, at, is_end, &mut self.record);
        if let Some((columns, placed)) = hidden {
            placed.put(columns, &mut self.record);
        }
        let Shower { record, rows, text, .. } = self;
        let written = match rows {
            Rows::Text => tabbed(record, text, &mut shown.bytes),
            Rows::Json { keys, is_full } => object(record, keys, *is_full, text, &mut shown.bytes),
            Rows::Csv(writer) => record_of(record, text, writer),
            Rows::Batches(builders) => return builders.add(record),
            Rows::Kinds(kinds) => {
                add_kinds(record, kinds);
                return Ok(());
            }
        };
        written.map_err(|error| error.to_string())?;
        if let Rows::Csv(writer) = rows {
            writer.flush().map_err(|error| error.to_string())?;
            shown.ends.push(writer.get_ref().len());
        } else {
            shown.ends.push(shown.bytes.len());
        }
        Ok(())
    }

    /// Emits the output held back.
    pub(super) fn finish(&mut self, shown: &mut Shown) {
        match &mut self.rows {
            Rows::Text | Rows::Json { .. } | Rows::Kinds(_) => {}
            Rows::Csv(csv) => {
                let done = std::mem::replace(&mut **csv, writer());
                shown.bytes = done.into_inner().unwrap_or_default();
            }
            Rows::Batches(builders) => shown.batch = builders.finish(),
        }
    }

    /// Whether any message had a field of this name, with or without a value.
    pub(super) fn has_seen(&self, name: &str) -> bool {
        self.record.has_seen(name)
    }

    /// All fields with their types, in a run that infers types.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&str, &KindFinder)> {
        let kinds = match &self.rows {
            Rows::Kinds(kinds) => kinds.as_slice(),
            _ => &[],
        };
        self.record.names().iter().map(String::as_str).zip(kinds)
    }

    /// Fields of messages that have no column in the rows.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.record.left_out().to_vec()
    }
}

fn add_kinds(record: &Record, kinds: &mut Vec<KindFinder>) {
    kinds.resize_with(record.names().len(), KindFinder::default);
    for &place in record.set() {
        kinds[place].add(record.cell(place));
    }
}

fn writer() -> csv::Writer<Vec<u8>> {
    csv::Writer::from_writer(Vec::new())
}

/// The header of rows, if the format has one.
pub(super) fn header(format: RowFormat, columns: &[Wanted]) -> Vec<u8> {
    if format != RowFormat::Csv || columns.is_empty() {
        return Vec::new();
    }
    let mut csv = writer();
    // Writing to memory does not fail.
    let _ = csv.write_record(columns.iter().map(|wanted| &wanted.name));
    csv.into_inner().unwrap_or_default()
}

fn tabbed(record: &Record, text: &mut String, out: &mut Vec<u8>) -> std::io::Result<()> {
    for place in 0..record.names().len() {
        if place > 0 {
            out.push(b'\t');
        }
        out.extend_from_slice(visible(plain(record.cell(place), text)).as_bytes());
    }
    out.push(b'\n');
    Ok(())
}

fn record_of(
    record: &Record,
    text: &mut String,
    writer: &mut csv::Writer<Vec<u8>>,
) -> std::io::Result<()> {
    for place in 0..record.names().len() {
        writer.write_field(plain(record.cell(place), text)).map_err(std::io::Error::other)?;
    }
    writer.write_record(None::<&[u8]>).map_err(std::io::Error::other)
}

/// The value as a string; empty for NULL.
fn plain<'t>(cell: Cell<'t>, text: &'t mut String) -> &'t str {
    if let Cell::Text(text) = cell {
        return text;
    }
    text.clear();
    cell.write(text);
    if let Cell::Timestamp(_) = cell {
        // In ISO 8601.
        return iso(text);
    }
    text
}

fn iso(text: &mut String) -> &str {
    if let Some(at) = text.find(' ') {
        text.replace_range(at..=at, "T");
    }
    text
}

fn object(
    record: &Record,
    keys: &mut Vec<Vec<u8>>,
    is_full: bool,
    text: &mut String,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    for name in &record.names()[keys.len()..] {
        let mut key = serde_json::to_vec(name)?;
        key.push(b':');
        keys.push(key);
    }
    let count = if is_full { keys.len() } else { record.set().len() };
    out.push(b'{');
    for index in 0..count {
        let place = if is_full { index } else { record.set()[index] };
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&keys[place]);
        value(record.cell(place), text, out)?;
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn value(cell: Cell<'_>, text: &mut String, out: &mut Vec<u8>) -> std::io::Result<()> {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Text(text) => serde_json::to_writer(out, text)?,
        Cell::Float(number) | Cell::Rounded(number) if number.is_finite() => {
            serde_json::to_writer(out, &number)?;
        }
        Cell::Boolean(_) | Cell::Integer(_) | Cell::Decimal { .. } | Cell::Wide { .. } => {
            out.extend_from_slice(plain(cell, text).as_bytes());
        }
        Cell::Float(_) | Cell::Rounded(_) | Cell::Date(_) | Cell::Timestamp(_) => {
            write!(out, "\"{}\"", plain(cell, text))?;
        }
    }
    Ok(())
}
