//! Rows as CSV with a header.

use std::io::{self, Write};

use super::rows::{Column, Excerpt, Rows, Value};

pub(super) struct CsvRows {
    writer: ::csv::Writer<Box<dyn Write + Send>>,
}

impl CsvRows {
    pub(super) fn new(out: Box<dyn Write + Send>, columns: &[Column]) -> io::Result<Self> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(|column| column.name)).map_err(to_io)?;
        Ok(CsvRows { writer })
    }
}

impl Rows for CsvRows {
    fn row(&mut self, values: &[Value<'_>], _: Excerpt<'_>) -> io::Result<()> {
        for value in values {
            match value {
                Value::Text(text) | Value::Json(text) => self.writer.write_field(text),
                Value::Number(number) => self.writer.write_field(number.to_string()),
                Value::Missing => self.writer.write_field(""),
                Value::Bytes(bytes) => self.writer.write_field(bytes),
                Value::Unsigned(number) => self.writer.write_field(number.to_string()),
            }
            .map_err(to_io)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(to_io)
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
