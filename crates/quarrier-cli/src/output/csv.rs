//! Rows as CSV with a header.

use std::io::{self, Write};

use super::rows::{Column, Excerpt, Rows, Value};

pub(super) struct CsvRows {
    writer: ::csv::Writer<Box<dyn Write + Send>>,
    /// The current row: a whole record is written faster than its fields one by one.
    record: ::csv::ByteRecord,
}

impl CsvRows {
    pub(super) fn new(out: Box<dyn Write + Send>, columns: &[Column]) -> io::Result<Self> {
        let mut rows = CsvRows::continued(out);
        let names = columns.iter().map(|column| column.name);
        rows.writer.write_record(names).map_err(to_io)?;
        Ok(rows)
    }

    /// A writer of rows without a header.
    pub(super) fn continued(out: Box<dyn Write + Send>) -> Self {
        CsvRows { writer: ::csv::Writer::from_writer(out), record: ::csv::ByteRecord::new() }
    }
}

/// Returns the header.
pub(super) fn head(columns: &[Column]) -> io::Result<Vec<u8>> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|column| column.name)).map_err(to_io)?;
    writer.into_inner().map_err(|error| error.into_error())
}

impl Rows for CsvRows {
    fn row(&mut self, values: &[Value<'_>], _: Excerpt<'_>) -> io::Result<()> {
        let mut whole = itoa::Buffer::new();
        self.record.clear();
        for value in values {
            match value {
                Value::Text(text) | Value::Json(text) => self.record.push_field(text.as_bytes()),
                Value::Number(number) => self.record.push_field(number.to_string().as_bytes()),
                Value::Missing => self.record.push_field(b""),
                Value::Bytes(bytes) => self.record.push_field(bytes),
                Value::Unsigned(number) => {
                    self.record.push_field(whole.format(*number).as_bytes());
                }
            }
        }
        self.writer.write_byte_record(&self.record).map_err(to_io)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Unwraps the system's error unchanged, so that a closed pipe is recognised.
fn to_io(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
