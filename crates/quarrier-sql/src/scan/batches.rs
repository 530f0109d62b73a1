//! The rows that were found as record batches, one partition's after another.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use quarrier_messages::{Places, Views};

use super::figures::Figures;
use super::selection::Found;

/// What every partition makes batches of.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) views: Views,
    pub(super) schema: SchemaRef,
    pub(super) columns: Vec<usize>,
    pub(super) batch_rows: usize,
    /// At most so many rows in all.
    pub(super) fetch: Option<usize>,
    pub(super) figures: Figures,
}

/// Rows of a segment from which they are taken one by one: below, a batch would have too few.
const SEGMENT_ROWS_MIN: usize = 64;

/// The share of what was found that a partition hands out.
pub(super) struct Share {
    pub(super) number: usize,
    pub(super) of: usize,
}

impl Share {
    fn range(&self, length: usize) -> Range<usize> {
        let at = |number: usize| (length as u128 * number as u128 / self.of as u128) as usize;
        at(self.number)..at(self.number + 1)
    }
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, DataFusionError>> + Send>;

impl Maker {
    /// The batches of one partition.
    pub(super) fn batches(self, found: &Arc<Found>, share: &Share) -> Batches {
        match &**found {
            Found::Count(count) => {
                let count = if share.number == 0 { *count as usize } else { 0 };
                self.counted(count)
            }
            Found::Everything if self.columns.is_empty() => {
                let rows = self.views.table().rows() as usize;
                let count = share.range(rows.min(self.fetch.unwrap_or(rows))).len();
                self.counted(count)
            }
            Found::Everything => self.everything(share),
            Found::Rows(rows) => {
                let range = share.range(rows.len());
                if self.columns.is_empty() {
                    return self.counted(range.len());
                }
                self.rows(Arc::clone(found), range)
            }
        }
    }

    /// Rows without a column.
    fn counted(self, count: usize) -> Batches {
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema, Vec::new(), &options);
        Box::new((count > 0).then(|| Ok(batch?)).into_iter())
    }

    fn everything(self, share: &Share) -> Batches {
        let table = Arc::clone(self.views.table());
        let segments = share.range(table.segments());
        let (rows, mut left) = (self.batch_rows, self.fetch.unwrap_or(usize::MAX));
        let ranges = segments.flat_map(move |segment| {
            let end = table.segment_rows(segment);
            let range = move |start: usize| (segment, start..(start + rows).min(end));
            (0..end).step_by(rows).map(range)
        });
        let cut = ranges.map_while(move |(segment, range)| {
            let range = range.start..range.start + range.len().min(left);
            left -= range.len();
            (!range.is_empty()).then_some((segment, range))
        });
        Box::new(cut.map(move |(segment, range)| Ok(self.made(segment, &Places::Range(range))?)))
    }

    fn rows(self, found: Arc<Found>, range: Range<usize>) -> Batches {
        let mut at = range.start;
        Box::new(std::iter::from_fn(move || {
            let Found::Rows(rows) = &*found else { return None };
            let left = rows.get(at..range.end).filter(|left| !left.is_empty())?;
            let chunk = &left[..left.len().min(self.batch_rows)];
            let neighbours = self.neighbours(chunk);
            let (batch, length) = if neighbours.len() >= SEGMENT_ROWS_MIN.min(chunk.len()) {
                let (segment, _) = self.views.table().locate(chunk[0]);
                (self.made(segment, &Places::These(&neighbours)), neighbours.len())
            } else {
                (self.gathered(chunk), chunk.len())
            };
            at += length;
            Some(batch.map_err(Into::into))
        }))
    }

    /// How many of the first rows lie in one segment, as places of it.
    fn neighbours(&self, rows: &[u64]) -> Vec<u32> {
        let table = self.views.table();
        let (segment, _) = table.locate(rows[0]);
        let (start, end) = (table.segment_start(segment), table.segment_start(segment + 1));
        let within = rows.iter().take_while(|row| (start..end).contains(row));
        within.map(|row| (row - start) as u32).collect()
    }

    /// Rows of one segment.
    fn made(&self, segment: usize, places: &Places<'_>) -> Result<RecordBatch, ArrowError> {
        let start = Instant::now();
        let batch = self.views.batch(&self.schema, &self.columns, segment, places);
        let table = self.views.table();
        let columns = self.columns.iter().map(|&column| &table.columns()[column]);
        let bytes: usize = columns.map(|column| column.segments()[segment].nbytes()).sum();
        self.count(bytes, places.len(), table.segment_rows(segment) as u64, start);
        batch
    }

    /// Counts so many rows of columns that take `bytes` for `of` rows.
    fn count(&self, bytes: usize, rows: usize, of: u64, start: Instant) {
        let bytes = bytes as u128 * rows as u128 / u128::from(of.max(1));
        self.figures.made(bytes as u64, start.elapsed());
    }

    /// Rows of any segments.
    fn gathered(&self, rows: &[u64]) -> Result<RecordBatch, ArrowError> {
        let (table, start) = (self.views.table(), Instant::now());
        let bytes = self.columns.iter().map(|&column| table.columns()[column].nbytes()).sum();
        let batch = self.taken(rows);
        self.count(bytes, rows.len(), table.rows(), start);
        batch
    }

    fn taken(&self, rows: &[u64]) -> Result<RecordBatch, ArrowError> {
        let taken = Arc::new(self.views.table().take(rows, &self.columns, 1));
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        let views = Views::new(Arc::clone(&taken));
        let mut batches = Vec::with_capacity(taken.segments());
        for segment in 0..taken.segments() {
            let places = Places::Range(0..taken.segment_rows(segment));
            batches.push(views.batch(&self.schema, &columns, segment, &places)?);
        }
        match batches.len() {
            1 => Ok(batches.remove(0)),
            _ => datafusion::arrow::compute::concat_batches(&self.schema, &batches),
        }
    }
}
