//! Writes objects.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, StringArray};

use super::sealed::{SealedWriter, to_io};
use super::{Meta, SCHEMA};
use crate::label::Labels;
use crate::row::Row;

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 64 * 1024;

/// Size of the strings and matches in a batch, in bytes; the last row of a batch reaches it.
const BATCH_BYTES: usize = 8 << 20;

/// Maximum number of rows with a pattern that shares text and name with another.
const TWINS_MAX: usize = 1 << 20;

/// Writes the rows of a unit.
pub(crate) struct ObjectWriter<'l, W: Write> {
    writer: SealedWriter<W>,
    labels: &'l Labels<'l>,
    source: String,
    offsets: UInt64Builder,
    lengths: UInt64Builder,
    patterns: StringBuilder,
    names: StringBuilder,
    matches: BinaryBuilder,
    batch_rows: usize,
    batch_bytes: usize,
    rows: u64,
    twins: Vec<u32>,
}

impl<'l, W: Write> ObjectWriter<'l, W> {
    /// Creates a writer of rows of `source`.
    pub(crate) fn new(out: W, source: &str, labels: &'l Labels<'l>) -> io::Result<Self> {
        Ok(ObjectWriter {
            writer: SealedWriter::new(out, &SCHEMA)?,
            labels,
            source: source.to_string(),
            offsets: UInt64Builder::new(),
            lengths: UInt64Builder::new(),
            patterns: StringBuilder::new(),
            names: StringBuilder::new(),
            matches: BinaryBuilder::new(),
            batch_rows: 0,
            batch_bytes: 0,
            rows: 0,
            twins: Vec::new(),
        })
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let (text, name) = self.labels.label(row.pattern).ok_or(io::ErrorKind::InvalidInput)?;
        if self.labels.has_twin(row.pattern) {
            if self.twins.len() == TWINS_MAX {
                return Err(io::Error::other(format!(
                    "more than {TWINS_MAX} findings of patterns with the same text and name, as '{text}'; \
                     give them names"
                )));
            }
            self.twins.push(row.pattern);
        }
        self.offsets.append_value(row.offset);
        self.lengths.append_value(u64::from(row.length));
        self.patterns.append_value(text);
        self.names.append_option(name);
        self.matches.append_value(row.found);
        self.rows += 1;
        self.batch_rows += 1;
        let label = text.len() + name.map_or(0, str::len);
        self.batch_bytes += self.source.len() + label + row.found.len();
        match self.batch_rows == BATCH_ROWS || self.batch_bytes >= BATCH_BYTES {
            true => self.write_batch(),
            false => Ok(()),
        }
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.batch_rows == 0 {
            return Ok(());
        }
        let sources = std::iter::repeat_n(Some(&*self.source), self.batch_rows);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(sources.collect::<StringArray>()) as ArrayRef,
            Arc::new(self.offsets.finish()),
            Arc::new(self.lengths.finish()),
            Arc::new(self.patterns.finish()),
            Arc::new(self.names.finish()),
            Arc::new(self.matches.finish()),
        ];
        (self.batch_rows, self.batch_bytes) = (0, 0);
        let batch = RecordBatch::try_new(Arc::clone(&SCHEMA), columns).map_err(to_io)?;
        self.writer.write(&batch)
    }

    /// Writes the remaining rows, and the footer.
    pub(crate) fn finish(mut self, mut meta: Meta) -> io::Result<W> {
        self.write_batch()?;
        (meta.rows, meta.twins) = (self.rows, self.twins);
        self.writer.finish(serde_json::to_string(&meta)?)
    }
}
