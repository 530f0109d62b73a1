//! Loads Parquet into packed columns. Row groups are read and decoded in parallel, and passed on in
//! order.
//!
//! ```text
//!  Source ─→ metadata ─→ one thread per lane: row group ─→ batches ─→ InOrder ─→ quarrier_messages::Load
//! ```
//!
//! This is a separate crate because the Parquet library takes as long to build as any two of our
//! own crates, and the `quarrier` binary does not need it.
//!
//! ```
//! use quarrier_core::source::Memory;
//! use quarrier_messages::{Format, Load};
//!
//! let load = Load::new(Format::Parquet).parquet(&quarrier_parquet::Reader);
//! let error = load.run(&[&Memory::new("cut.parquet", "PAR1")]).unwrap_err();
//! assert!(error.to_string().starts_with("cut.parquet: it is damaged"));
//! ```

use std::io::Cursor;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FooterTail, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use quarrier_core::source::{Source, read_exact_at};
use quarrier_core::threads;
use quarrier_messages::{ColumnReader, Columns, guarded};

/// Rows per decoded batch.
const BATCH_ROWS: usize = 16_384;

/// Number of decoded batches that may wait per lane.
const BATCHES_AHEAD: usize = 2;

const FOOTER_BYTES: u64 = 8;

/// Maximum size of the metadata, whose length the file itself declares.
const METADATA_BYTES_MAX: u64 = 1 << 30;

/// Reads Parquet for [`Load::parquet`](quarrier_messages::Load::parquet).
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader;

impl ColumnReader for Reader {
    fn open<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        source: &'env dyn Source,
        workers: usize,
    ) -> Result<Columns<'scope>, ArrowError> {
        let metadata = guarded(|| metadata(source))?;
        let schema = Arc::clone(metadata.schema());
        // Threads start when the first batch is requested.
        let start = move || start(scope, source, metadata, workers);
        Ok((schema, Box::new(std::iter::once_with(start).flatten())))
    }
}

fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    source: &'env dyn Source,
    metadata: ArrowReaderMetadata,
    workers: usize,
) -> InOrder {
    let groups = metadata.metadata().num_row_groups();
    let lanes = workers.clamp(1, groups.max(1));
    let (mut receivers, mut begun) = (Vec::new(), Vec::new());
    for lane in 0..lanes {
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        let (begin, lanes) = sync_channel(1);
        let (metadata, failed) = (metadata.clone(), sender.clone());
        let started = threads::in_scope(scope, "", move || {
            // The number of lanes is known only after all threads have started.
            let Ok(lanes) = lanes.recv() else { return };
            for group in (lane..groups).step_by(lanes) {
                if !decode(source, &metadata, group, &sender) {
                    return;
                }
            }
        });
        match started {
            Ok(_) => {}
            // Fewer threads decode the same row groups.
            Err(_) if lane > 0 => break,
            Err(error) => {
                let error = ArrowError::IoError("cannot read it".to_string(), error);
                // The channel has room, and its receiver exists.
                let _ = failed.send(Some(Err(error)));
                return InOrder { receivers: vec![receiver], group: 0, groups: groups.max(1) };
            }
        }
        receivers.push(receiver);
        begun.push(begin);
    }
    for begin in &begun {
        // Each thread waits for this value, and the channel has room for it.
        let _ = begin.send(begun.len());
    }
    InOrder { receivers, group: 0, groups }
}

type Batch = Result<RecordBatch, ArrowError>;

/// A batch of a row group; `None` at the end of the group.
type Piece = Option<Batch>;

/// The batches of all row groups, in order. Group `g` arrives through receiver `g` modulo their
/// number.
struct InOrder {
    receivers: Vec<Receiver<Piece>>,
    group: usize,
    groups: usize,
}

impl Iterator for InOrder {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        while self.group < self.groups {
            match self.receivers[self.group % self.receivers.len()].recv() {
                Ok(Some(batch)) => {
                    if batch.is_err() {
                        self.group = self.groups;
                    }
                    return Some(batch);
                }
                Ok(None) => self.group += 1,
                // The thread ended after an error that was returned.
                Err(_) => self.group = self.groups,
            }
        }
        None
    }
}

/// Sends the batches of a row group. Returns false if the receiver is gone, or after an error.
fn decode(
    source: &dyn Source,
    metadata: &ArrowReaderMetadata,
    group: usize,
    sender: &SyncSender<Piece>,
) -> bool {
    let reader = guarded(|| {
        let pages = Pages::read(source, metadata.metadata().row_group(group))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata.clone());
        Ok(builder.with_row_groups(vec![group]).with_batch_size(BATCH_ROWS).build()?)
    });
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            // If the receiver is gone, the load has failed already.
            let _ = sender.send(Some(Err(error)));
            return false;
        }
    };
    loop {
        let next: Result<Option<RecordBatch>, ArrowError> = guarded(|| reader.next().transpose());
        let next = next.transpose();
        let is_good = next.as_ref().is_none_or(Result::is_ok);
        let is_end = next.is_none();
        if sender.send(next).is_err() || !is_good {
            return false;
        }
        if is_end {
            return true;
        }
    }
}

fn metadata(source: &dyn Source) -> Result<ArrowReaderMetadata, ArrowError> {
    let footer_at = source.length().checked_sub(FOOTER_BYTES);
    let footer_at = footer_at.ok_or(ParquetError::EOF("shorter than its footer".into()))?;
    let footer = read_exact_at(source, footer_at, FOOTER_BYTES)?;
    let footer = FooterTail::try_from(&footer[..])?;
    let length = footer.metadata_length() as u64;
    let start = footer_at.checked_sub(length).filter(|_| length <= METADATA_BYTES_MAX);
    let start = start.ok_or(ParquetError::EOF("metadata longer than the file".into()))?;
    let metadata = ParquetMetaDataReader::decode_metadata(&read_exact_at(source, start, length)?)?;
    let metadata = Arc::new(metadata);
    let found = ArrowReaderMetadata::try_new(Arc::clone(&metadata), ArrowReaderOptions::new())?;
    // Reading strings as views saves a copy.
    let options = ArrowReaderOptions::new().with_schema(with_views(found.schema()));
    Ok(ArrowReaderMetadata::try_new(metadata, options).unwrap_or(found))
}

fn with_views(schema: &SchemaRef) -> SchemaRef {
    let view = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        }
        _ => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().map(view).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The bytes of a row group's columns, each with its offset in the file.
struct Pages {
    columns: Vec<(u64, Bytes)>,
    length: u64,
}

impl Pages {
    fn read(source: &dyn Source, group: &RowGroupMetaData) -> Result<Self, ArrowError> {
        let columns = group.columns().iter().map(|column| {
            let (start, length) = column.byte_range();
            Ok((start, Bytes::from(read_exact_at(source, start, length)?)))
        });
        let columns: Result<Vec<_>, ArrowError> = columns.collect();
        Ok(Pages { columns: columns?, length: source.length() })
    }

    /// The bytes from offset `start` to the end of its column.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let found = self.columns.iter().find_map(|(column, bytes)| {
            let at = usize::try_from(start.checked_sub(*column)?).ok()?;
            (at < bytes.len()).then(|| bytes.slice(at..))
        });
        found.ok_or_else(|| ParquetError::EOF(format!("no column has byte {start}")))
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Pages {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(Cursor::new(self.from(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        match bytes.len() >= length {
            true => Ok(bytes.slice(..length)),
            false => Err(ParquetError::EOF(format!("no {length} bytes at byte {start}"))),
        }
    }
}
