//! Record batches of the selected rows, partition by partition.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use quarrier_messages::{Places, Views};

use super::figures::Figures;
use super::selection::SelectedRows;

/// The state from which every partition makes batches.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) views: Views,
    pub(super) schema: SchemaRef,
    pub(super) columns: Vec<usize>,
    pub(super) batch_rows: usize,
    /// The maximum number of rows over all partitions.
    pub(super) fetch: Option<usize>,
    pub(super) figures: Figures,
}

/// Minimum number of selected rows in a segment for a batch of its own. Fewer rows go into a batch with rows
/// of other segments.
const SEGMENT_ROWS_MIN: usize = 64;

/// The share of the selected rows that a partition returns.
#[derive(Debug)]
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

/// The position of the next selected row.
struct Place {
    /// Index among the segments with selected rows.
    segment: usize,
    /// Index among the selected rows of the segment.
    row: usize,
}

impl Place {
    /// The position of the selected row with this number.
    fn of(found: &SelectedRows, number: usize) -> Place {
        let (mut place, mut before) = (Place { segment: 0, row: 0 }, number);
        let SelectedRows::Lying(segments) = found else { return place };
        while let Some((_, rows)) = segments.get(place.segment).filter(|(_, r)| r.len() <= before) {
            before -= rows.len();
            place.segment += 1;
        }
        place.row = before;
        place
    }

    /// Skips `rows` rows of the current segment.
    fn advance(&mut self, rows: usize, segments: &[(usize, Vec<u32>)]) {
        self.row += rows;
        if self.row == segments[self.segment].1.len() {
            (self.segment, self.row) = (self.segment + 1, 0);
        }
    }
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, DataFusionError>> + Send>;

/// The rows that a partition returns.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) maker: Maker,
    pub(super) found: Arc<SelectedRows>,
    pub(super) share: Share,
}

impl Part {
    /// The rows as batches.
    pub(super) fn batches(self) -> Batches {
        self.maker.batches(&self.found, &self.share)
    }

    /// The rows as segments with row indices; empty if the scan only counted rows, or sorted them.
    pub(super) fn pieces(&self) -> Vec<(usize, Places<'_>)> {
        let table = self.maker.views.table();
        match &*self.found {
            SelectedRows::Everything => {
                let whole =
                    |segment: usize| (segment, Places::Range(0..table.segment_rows(segment)));
                self.share.range(table.segments()).map(whole).collect()
            }
            SelectedRows::Lying(segments) => {
                let range = self.share.range(self.found.picked().unwrap_or_default());
                let mut before = 0;
                let mut pieces = Vec::new();
                for (segment, rows) in segments {
                    let of = |at: usize| at.clamp(before, before + rows.len()) - before;
                    let mine = &rows[of(range.start)..of(range.end)];
                    if !mine.is_empty() {
                        pieces.push((*segment, Places::These(mine)));
                    }
                    before += rows.len();
                }
                pieces
            }
            SelectedRows::Count(_) | SelectedRows::Best(_) => Vec::new(),
        }
    }

    /// Adds a piece, which was processed since `start`, to the metrics.
    pub(super) fn count(&self, segment: usize, places: &Places<'_>, start: Instant) {
        self.maker.count_segment(segment, places.len(), start);
    }
}

impl Maker {
    /// The batches of one partition.
    pub(super) fn batches(self, found: &Arc<SelectedRows>, share: &Share) -> Batches {
        match &**found {
            SelectedRows::Count(count) => {
                let count = if share.number == 0 { *count as usize } else { 0 };
                self.counted(count)
            }
            SelectedRows::Everything if self.columns.is_empty() => {
                let rows = self.views.table().rows() as usize;
                let count = share.range(rows.min(self.fetch.unwrap_or(rows))).len();
                self.counted(count)
            }
            SelectedRows::Everything => self.everything(share),
            SelectedRows::Best(_) | SelectedRows::Lying(_) => {
                let range = share.range(found.picked().unwrap_or_default());
                match &**found {
                    _ if self.columns.is_empty() => self.counted(range.len()),
                    SelectedRows::Best(_) => self.best(Arc::clone(found), range),
                    _ => self.lying(Arc::clone(found), range),
                }
            }
        }
    }

    /// A batch of `count` rows without columns.
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

    /// Sorted rows, from any segments.
    fn best(self, found: Arc<SelectedRows>, range: Range<usize>) -> Batches {
        let rows = self.batch_rows;
        Box::new(range.clone().step_by(rows).map_while(move |at| {
            let SelectedRows::Best(best) = &*found else { return None };
            Some(self.gathered(&best[at..range.end.min(at + rows)]).map_err(Into::into))
        }))
    }

    /// Rows in table order. A batch has rows of one segment if that has enough, and otherwise rows of
    /// several segments.
    fn lying(self, found: Arc<SelectedRows>, range: Range<usize>) -> Batches {
        let (mut at, mut left) = (Place::of(&found, range.start), range.len());
        Box::new(std::iter::from_fn(move || {
            let SelectedRows::Lying(segments) = &*found else { return None };
            let mut few = Vec::new();
            while left > few.len() {
                let (segment, rows) = segments.get(at.segment)?;
                let room = self.batch_rows.min(left) - few.len();
                let rows = &rows[at.row..];
                let rows = &rows[..rows.len().min(room)];
                let is_enough = rows.len() >= SEGMENT_ROWS_MIN;
                if is_enough && !few.is_empty() {
                    break;
                }
                at.advance(rows.len(), segments);
                if is_enough {
                    left -= rows.len();
                    return Some(self.made(*segment, &Places::These(rows)).map_err(Into::into));
                }
                let start = self.views.table().segment_start(*segment);
                few.extend(rows.iter().map(|&row| start + u64::from(row)));
                if few.len() == self.batch_rows {
                    break;
                }
            }
            left -= few.len();
            (!few.is_empty()).then(|| self.gathered(&few).map_err(Into::into))
        }))
    }

    /// A batch of rows of one segment.
    fn made(&self, segment: usize, places: &Places<'_>) -> Result<RecordBatch, ArrowError> {
        let start = Instant::now();
        let batch = self.views.batch(&self.schema, &self.columns, segment, places);
        self.count_segment(segment, places.len(), start);
        batch
    }

    /// Adds rows of a segment to the metrics.
    fn count_segment(&self, segment: usize, rows: usize, start: Instant) {
        let table = self.views.table();
        let columns = self.columns.iter().map(|&column| &table.columns()[column]);
        let bytes: usize = columns.map(|column| column.segments()[segment].nbytes()).sum();
        self.count(bytes, rows, table.segment_rows(segment) as u64, start);
    }

    /// Adds `rows` rows to the metrics. Their columns take `bytes` for `of` rows.
    fn count(&self, bytes: usize, rows: usize, of: u64, start: Instant) {
        let bytes = bytes as u128 * rows as u128 / u128::from(of.max(1));
        self.figures.made(bytes as u64, start.elapsed());
    }

    /// A batch of rows from any segments.
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
