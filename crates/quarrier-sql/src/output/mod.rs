//! Writes rows as text, JSON lines, CSV, Arrow or Parquet.

mod columns;
mod nested;
mod records;
mod text;

use std::io::Write;

use crate::net::caught;
use crate::rows::Rows;
use crate::{Error, Result};

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table for people to read.
    Text,
    /// A line for each value, for people to read.
    Records,
    /// JSON lines: one object per row.
    Json,
    /// CSV as in RFC 4180, with a header.
    Csv,
    /// Arrow IPC stream.
    Arrow,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The format with this name or file extension.
    pub(crate) fn of_name(name: &str) -> Option<Format> {
        Some(match name {
            "text" | "txt" => Format::Text,
            "json" | "ndjson" | "jsonl" => Format::Json,
            "csv" => Format::Csv,
            "arrow" | "arrows" => Format::Arrow,
            "parquet" => Format::Parquet,
            _ => return None,
        })
    }
}

/// The amount of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// The number of rows.
    pub rows: u64,
}

/// A writer of batches.
trait Batches {
    fn batch(&mut self, batch: &datafusion::arrow::array::RecordBatch) -> Result<()>;

    /// Writes buffered output, since the next batch may take a while.
    fn flush(&mut self) -> Result<()>;

    fn finish(self: Box<Self>) -> Result<()>;
}

/// Writes all rows of an answer to `out`, which is called `name` in errors.
///
/// # Errors
/// The answer fails before its end, or writing to `out` fails.
pub async fn write(
    rows: &mut Rows,
    format: Format,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<Written> {
    caught(written(rows, format, name, out)).await
}

async fn written(
    rows: &mut Rows,
    format: Format,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<Written> {
    let is_text = matches!(format, Format::Text | Format::Records | Format::Csv);
    let schema = if is_text { nested::schema(rows.schema()) } else { rows.schema().clone() };
    let mut writer: Box<dyn Batches + Send + '_> = match format {
        Format::Text => Box::new(text::Text::new(&schema, name, out)),
        Format::Records => Box::new(records::Records::new(&schema, name, out)),
        Format::Json => Box::new(columns::Json::new(name, out)),
        Format::Csv => Box::new(columns::Csv::new(name, out, &schema)?),
        Format::Arrow => Box::new(columns::Arrow::new(name, out, &schema)?),
        Format::Parquet => Box::new(columns::Parquet::new(name, out, schema)?),
    };
    let mut written = Written::default();
    while let Some(batch) = rows.next().await? {
        written.rows += batch.num_rows() as u64;
        let batch = if is_text { nested::batch(&batch) } else { Ok(batch) };
        writer.batch(&batch.map_err(|error| Error::Engine(error.into()))?)?;
        writer.flush()?;
    }
    writer.finish()?;
    Ok(written)
}

/// The error of a failed write to `name`.
fn failed(name: &str, error: std::io::Error) -> Error {
    Error::Output { name: name.to_string(), error }
}
