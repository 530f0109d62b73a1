//! Converts record batches to a table.
//!
//! ```text
//!  batches ─→ pieces of a segment's rows ─→ workers: RawColumn, packed ─→ parts ─→ Table
//! ```

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use quarrier_core::parallel::planned_workers;
use quarrier_core::sync::lock;
use quarrier_core::threads;

use super::leaves::{Leaf, leaves_of, refused};
use super::values::{append_exact, append_floats, append_numbers, for_each_text, rounded};
use crate::build::{FieldId, Row, RowBuilder};
use crate::column::raw::{RawColumn, RawData, SEGMENT_ROWS};
use crate::column::{SegmentColumn, Strings};
use crate::{Kind, Part, PartField, PartSegment, Result, Table};

/// The rows of one segment: consecutive batches, or slices of them.
#[derive(Default)]
struct Pieces {
    /// The number of the first row in the table.
    first_row: u64,
    rows: usize,
    /// The maximum size of strings.
    text_bytes: usize,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Copies the rows of record batches, all of `schema`, into packed columns, on `workers`
    /// threads (0: one per CPU) besides this one, which fetches the batches. Fields of structs
    /// become separate columns, `order.qty`. Numbers beyond 38 digits become floats, strings in
    /// binary columns must be UTF-8, timestamps become UTC, without their zone.
    ///
    /// Batches wait until a segment is full, for at most two segments per worker.
    ///
    /// # Errors
    ///
    /// If a batch cannot be fetched, a type is unsupported (lists, maps, times of day, intervals),
    /// a timestamp is outside the years 1677 to 2262, or bytes are not UTF-8.
    pub fn from_batches(
        schema: &SchemaRef,
        batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
        workers: usize,
    ) -> Result<Table> {
        let leaves = leaves_of(schema.fields())?;
        let workers = planned_workers(workers);
        let (to_workers, segments) = sync_channel(workers);
        let segments = Mutex::new(Some(segments));
        let parts = std::thread::scope(|scope| {
            let work = || Worker::new(&leaves).run(&segments);
            let mut team = Vec::new();
            for _ in 0..workers {
                match threads::in_scope(scope, "", work) {
                    Ok(thread) => team.push(thread),
                    // Continue with fewer threads.
                    Err(_) if !team.is_empty() => break,
                    Err(error) => return Err(no_thread(error).into()),
                }
            }
            let result = cut(&leaves, schema, batches, &to_workers);
            drop(to_workers);
            let parts: Result<Vec<Part>> = team.into_iter().map(threads::joined).collect();
            // The source's error takes precedence: the workers have seen only the batches before
            // it.
            parts.and_then(|parts| result.map(|()| parts))
        })?;
        let columns = leaves.into_iter();
        let fields = columns.map(|leaf| crate::Field { name: leaf.name.into(), kind: leaf.kind });
        Ok(Table::assemble_as(&crate::Schema { fields: fields.collect() }, parts, workers))
    }
}

/// Converts an error of threads to one of batches.
fn no_thread(error: std::io::Error) -> ArrowError {
    ArrowError::IoError("cannot read it".to_string(), error)
}

/// Passes batches on in pieces of a segment's rows, until no worker takes any more.
fn cut(
    leaves: &[Leaf],
    schema: &SchemaRef,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    to_workers: &SyncSender<Pieces>,
) -> Result<()> {
    let mut pieces = Pieces::default();
    for batch in batches {
        let batch = batch?;
        if batch.schema_ref().fields() != schema.fields() {
            return Err(ArrowError::SchemaError("a batch has another schema".into()).into());
        }
        let mut left = batch;
        while left.num_rows() > 0 {
            let rows = pieces.room(leaves, &left)?;
            pieces.push(leaves, left.slice(0, rows));
            left = left.slice(rows, left.num_rows() - rows);
            if pieces.is_full(leaves, &left) && to_workers.send(pieces.take()).is_err() {
                return Ok(());
            }
        }
    }
    if pieces.rows > 0 {
        // If all workers have ended, one of them has an error to report.
        let _ = to_workers.send(pieces);
    }
    Ok(())
}

/// Maximum bytes of strings of a segment, in all columns together: their offsets have 32 bits.
const TEXT_BYTES_MAX: usize = 1 << 30;

impl Pieces {
    /// Returns the number of rows of a batch that still belong to the segment, at least one.
    fn room(&self, leaves: &[Leaf], batch: &RecordBatch) -> Result<usize> {
        let mut rows = batch.num_rows().min(SEGMENT_ROWS - self.rows);
        while self.text_bytes + text_bytes_of(leaves, &batch.slice(0, rows)) > TEXT_BYTES_MAX {
            if rows == 1 {
                let row = self.first_row + self.rows as u64;
                let reason = "has more than 1 GiB of text; leave the column out";
                let longest = leaves.iter().max_by_key(|leaf| leaf.text_bytes(&batch.slice(0, 1)));
                let name = longest.map_or("", |leaf| &leaf.name);
                return Err(refused(name, &format!("row {row} {reason}")));
            }
            rows /= 2;
        }
        Ok(rows)
    }

    fn push(&mut self, leaves: &[Leaf], batch: RecordBatch) {
        self.text_bytes += text_bytes_of(leaves, &batch);
        self.rows += batch.num_rows();
        self.batches.push(batch);
    }

    /// Whether the first row of `next` belongs to the next segment.
    fn is_full(&self, leaves: &[Leaf], next: &RecordBatch) -> bool {
        let text_bytes = || text_bytes_of(leaves, &next.slice(0, 1));
        self.rows == SEGMENT_ROWS
            || next.num_rows() > 0 && self.text_bytes + text_bytes() > TEXT_BYTES_MAX
    }

    /// Returns the pieces so far, and begins the next segment.
    fn take(&mut self) -> Pieces {
        let next = Pieces { first_row: self.first_row + self.rows as u64, ..Pieces::default() };
        std::mem::replace(self, next)
    }
}

/// Returns the maximum bytes of strings of a batch.
fn text_bytes_of(leaves: &[Leaf], batch: &RecordBatch) -> usize {
    leaves.iter().map(|leaf| leaf.text_bytes(batch)).sum()
}

/// Makes segments from pieces.
struct Worker<'l> {
    leaves: &'l [Leaf],
    /// Builders of string columns.
    strings: Vec<Option<RowBuilder>>,
    segments: Vec<PartSegment>,
    /// Number of values that lost digits, by column.
    rounded: Vec<u64>,
}

impl<'l> Worker<'l> {
    fn new(leaves: &'l [Leaf]) -> Self {
        let text = |leaf: &Leaf| (leaf.kind == Kind::Text).then(|| RowBuilder::new(1));
        let strings = leaves.iter().map(text).collect();
        Worker { leaves, strings, segments: Vec::new(), rounded: vec![0; leaves.len()] }
    }

    /// Processes pieces until there are no more. After an error, no worker gets any.
    fn run(mut self, segments: &Mutex<Option<Receiver<Pieces>>>) -> Result<Part> {
        loop {
            let next = {
                let guard = lock(segments);
                guard.as_ref().and_then(|receiver| receiver.recv().ok())
            };
            let Some(pieces) = next else { return Ok(self.into_part()) };
            if let Err(error) = self.segment(&pieces) {
                *lock(segments) = None;
                return Err(error);
            }
        }
    }

    fn segment(&mut self, pieces: &Pieces) -> Result<()> {
        let mut columns = Vec::with_capacity(self.leaves.len());
        for ((leaf, strings), lost) in
            self.leaves.iter().zip(&mut self.strings).zip(&mut self.rounded)
        {
            columns.push(Some(match strings {
                Some(strings) => text_column(leaf, pieces, strings)?,
                None => SegmentColumn::pack(&number_column(leaf, pieces, lost)?),
            }));
        }
        let (place, rows) = (pieces.first_row, pieces.rows as u32);
        self.segments.push(PartSegment { place, rows, columns });
        Ok(())
    }

    fn into_part(self) -> Part {
        let fields = self.leaves.iter().zip(self.strings).zip(self.rounded);
        let fields = fields.map(|((leaf, strings), rounded)| {
            let dictionary = match strings {
                Some(strings) if !self.segments.is_empty() => {
                    let (ends, bytes) = strings.dictionary(FieldId::new(0));
                    Strings::from_parts(ends.to_vec(), bytes.to_vec())
                }
                _ => Strings::new(),
            };
            PartField { name: leaf.name.as_str().into(), dictionary, rounded }
        });
        Part { fields: fields.collect(), segments: self.segments }
    }
}

fn text_column(leaf: &Leaf, pieces: &Pieces, strings: &mut RowBuilder) -> Result<SegmentColumn> {
    let Some(field) = strings.field("") else { unreachable!("a builder without fields takes one") };
    for (number, batch) in pieces.batches.iter().enumerate() {
        let (array, nulls) = leaf.array(batch);
        for_each_text(&array, nulls.as_ref(), &mut |text| {
            match text {
                Some(text) => strings.text(field, text),
                None => strings.null(field),
            }
            strings.commit();
        })
        .map_err(|row| {
            let row = row_number(pieces, number, row);
            refused(&leaf.name, &format!("row {row} is not UTF-8; leave the column out"))
        })?;
    }
    let mut packed = SegmentColumn::nulls(Kind::Text, pieces.rows);
    strings.finish_segment(|_, raw| packed = SegmentColumn::pack(raw));
    Ok(packed)
}

/// Makes a column of numbers; adds to `lost` the number of values that lost digits.
fn number_column(leaf: &Leaf, pieces: &Pieces, lost: &mut u64) -> Result<RawColumn> {
    let valid = validity(leaf, pieces);
    if leaf.kind == Kind::Float {
        return Ok(RawColumn { valid, data: floats(leaf, pieces, lost) });
    }
    if leaf.kind == Kind::Null {
        return Ok(RawColumn { valid: Vec::new(), data: RawData::Null(pieces.rows) });
    }
    let mut numbers = Vec::with_capacity(pieces.rows);
    for (number, batch) in pieces.batches.iter().enumerate() {
        let (array, nulls) = leaf.array(batch);
        match append_numbers(&array, nulls.as_ref(), &mut numbers) {
            Ok(()) => {}
            Err(_) if matches!(leaf.kind, Kind::Integer | Kind::Decimal { .. }) => {
                let data = exact_numbers(leaf, pieces);
                let data = data.unwrap_or_else(|| floats(leaf, pieces, lost));
                return Ok(RawColumn { valid, data });
            }
            Err(row) => {
                let row = row_number(pieces, number, row);
                let reason = "is outside of the years 1677 to 2262; cast the column to text";
                return Err(refused(&leaf.name, &format!("row {row} {reason}")));
            }
        }
    }
    Ok(RawColumn { valid, data: RawData::of_numbers(leaf.kind, numbers) })
}

/// Returns exact numbers, if 38 digits hold all of them.
fn exact_numbers(leaf: &Leaf, pieces: &Pieces) -> Option<RawData> {
    let mut mantissas = Vec::with_capacity(pieces.rows);
    for batch in &pieces.batches {
        let (array, nulls) = leaf.array(batch);
        append_exact(&array, nulls.as_ref(), &mut mantissas).ok()?;
    }
    let scale = if let Kind::Decimal { scale } = leaf.kind { scale } else { 0 };
    Some(RawData::Wide { scale, mantissas })
}

fn floats(leaf: &Leaf, pieces: &Pieces, lost: &mut u64) -> RawData {
    let mut floats = Vec::with_capacity(pieces.rows);
    for batch in &pieces.batches {
        let (array, nulls) = leaf.array(batch);
        append_floats(&array, nulls.as_ref(), &mut floats);
        *lost += rounded(&array, nulls.as_ref());
    }
    RawData::Float(floats)
}

/// Returns the number of a row in the table, from its index in a piece.
fn row_number(pieces: &Pieces, piece: usize, row: usize) -> u64 {
    let before: usize = pieces.batches[..piece].iter().map(RecordBatch::num_rows).sum();
    pieces.first_row + (before + row) as u64
}

fn validity(leaf: &Leaf, pieces: &Pieces) -> Vec<u64> {
    let nulls: Vec<_> = pieces.batches.iter().map(|batch| leaf.array(batch).1).collect();
    if nulls.iter().all(Option::is_none) {
        return Vec::new();
    }
    let mut bits = arrow_buffer::BooleanBufferBuilder::new(pieces.rows.next_multiple_of(64));
    for (batch, nulls) in pieces.batches.iter().zip(nulls) {
        match nulls {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(batch.num_rows(), true),
        }
    }
    bits.append_n(pieces.rows.next_multiple_of(64) - pieces.rows, false);
    let bytes = bits.finish().into_inner();
    bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
}
