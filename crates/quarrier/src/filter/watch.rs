//! The receiver of a run's output: rows in order, and progress.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use quarrier_core::pipeline::Run;

use super::columns::arrow_schema;
use super::conditions::Conditions;
use super::rejects::SourceRejects;
use super::show::{OutputKind, header};
use super::worker::ChunkOutput;
use crate::{Error, Result};

/// Receives rows in the order of the sources, and the progress of the run. A closure that takes rows
/// implements it.
pub trait Watch: Send {
    /// Announces rows and their header; called once, when there are bytes to read.
    ///
    /// # Errors
    /// An error ends the run.
    fn open(&mut self, header: &Header) -> io::Result<()> {
        let _ = header;
        Ok(())
    }

    /// Every requested column has occurred. Until then the run may still fail over a column that no
    /// message has; see [`Header::is_certain`].
    ///
    /// # Errors
    /// An error ends the run.
    fn certain(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Takes the next rows.
    ///
    /// # Errors
    /// Ends the run.
    fn rows(&mut self, rows: &Rows<'_>) -> io::Result<()>;

    /// A stream has no more bytes for now: flush any output held back.
    ///
    /// # Errors
    /// An error ends the run.
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A pass over a source begins; `end` is its length, or [`u64::MAX`] if unknown.
    fn begin(&mut self, name: &str, end: u64) {
        let _ = (name, end);
    }

    /// Everything before this offset is done.
    fn advance(&mut self, offset: u64) {
        let _ = offset;
    }

    /// The pass has ended.
    fn end(&mut self) {}

    /// A source has a notice that people should read before they trust its messages, such as that a
    /// segment of an image is missing: a line that begins with the name of the source.
    fn notice(&mut self, notice: &str) {
        let _ = notice;
    }

    /// A damaged part of a source was skipped; the line says what and where.
    fn damaged(&mut self, name: &str, damage: &str) {
        let _ = (name, damage);
    }

    /// A source has rejected messages.
    fn rejected(&mut self, name: &str, rejects: &SourceRejects) {
        let _ = (name, rejects);
    }

    /// A source is done.
    fn done(&mut self, done: &Done<'_>) {
        let _ = done;
    }

    /// A source failed, or no source has a requested column. `Ok` continues with the rest.
    ///
    /// # Errors
    /// An error ends the run; the default returns the error unchanged.
    fn failed(&mut self, error: Error) -> Result<()> {
        Err(error)
    }
}

impl<F> Watch for F
where
    F: FnMut(&Rows<'_>) -> io::Result<()> + Send,
{
    fn rows(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        self(rows)
    }
}

/// Facts about the rows, passed before the first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Header {
    /// The bytes before the first row: the header of CSV.
    pub text: Vec<u8>,
    /// The schema of record batches.
    pub schema: Option<SchemaRef>,
    /// Whether all requested columns were seen, or the source is a stream, whose rows must not wait.
    /// Otherwise hold rows back until [`Watch::certain`], or the end.
    pub is_certain: bool,
    /// The conditions, in the order in which [`Rows::conditions`] numbers them.
    pub conditions: Arc<Conditions>,
}

impl Header {
    pub(super) fn new(
        output_kind: &OutputKind,
        is_certain: bool,
        conditions: &Arc<Conditions>,
    ) -> Self {
        let text = match output_kind {
            OutputKind::Rows(format, columns) => header(*format, columns),
            _ => Vec::new(),
        };
        let schema = match output_kind {
            OutputKind::Batches(schema) => Some(arrow_schema(schema)),
            _ => None,
        };
        Header { text, schema, is_certain, conditions: Arc::clone(conditions) }
    }
}

/// Consecutive matching messages of one source; at least one.
pub struct Rows<'r> {
    source: &'r str,
    offset: u64,
    data: &'r [u8],
    found: &'r ChunkOutput,
    these: Range<usize>,
}

/// A message in its original form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'r> {
    /// The offset of the message, after decompression.
    pub offset: u64,
    /// The bytes of the message, without the line ending.
    pub bytes: &'r [u8],
}

impl<'r> Rows<'r> {
    /// `these` of the messages found in `data`, which starts at `offset`.
    pub(super) fn new(
        source: &'r str,
        (offset, data): (u64, &'r [u8]),
        found: &'r ChunkOutput,
        these: Range<usize>,
    ) -> Self {
        Rows { source, offset, data, found, these }
    }

    /// The name of the source.
    pub fn source(&self) -> &'r str {
        self.source
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.these.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.these.is_empty()
    }

    /// The messages themselves, in any output format.
    pub fn messages(&self) -> impl Iterator<Item = Message<'r>> + use<'r> {
        let (offset, data) = (self.offset, self.data);
        self.found.spans[self.these.clone()].iter().map(move |&(from, to)| Message {
            offset: offset + u64::from(from),
            bytes: &data[from as usize..to as usize],
        })
    }

    /// For [`Form::Matches`](super::Form::Matches), the index of the condition that is true, from 0,
    /// for each message: a message occurs once for each condition.
    pub fn conditions(&self) -> impl Iterator<Item = usize> + use<'r> {
        let matches = self.found.matches.get(self.these.clone()).unwrap_or_default();
        matches.iter().map(|&condition| condition as usize)
    }

    /// The rows as lines of text, JSON or CSV, if such a format was requested.
    pub fn text(&self) -> &'r [u8] {
        let shown = &self.found.shown;
        let end_of = |rows: usize| match rows.checked_sub(1) {
            Some(last) => shown.ends.get(last).copied().unwrap_or(0),
            None => 0,
        };
        &shown.bytes[end_of(self.these.start)..end_of(self.these.end)]
    }

    /// The rows as a record batch, if requested.
    pub fn batch(&self) -> Option<RecordBatch> {
        let batch = self.found.shown.batch.as_ref()?;
        Some(batch.slice(self.these.start, self.these.len()))
    }
}

/// A source that was read to its end, or until the run ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Done<'d> {
    /// The source.
    pub name: &'d str,
    /// The run: bytes, time, load of stages, unreadable ranges.
    pub run: &'d Run,
    /// The offset of an interruption; all messages before it were filtered.
    pub interrupted_at: Option<u64>,
    /// Fields that occurred after the columns of rows were fixed, and so have no column: the first few.
    pub fields_left_out: Vec<String>,
}
