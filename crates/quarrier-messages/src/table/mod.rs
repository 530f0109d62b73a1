//! All messages: columns of packed segments, and what workers make them of.

use std::sync::Arc;

use crate::column::{Data, Dictionary, SegmentColumn, Texts};
use crate::{Field, Kind, Schema, Value, exact};

mod assemble;

mod arrow;
mod merge;
pub use arrow::{Batches, Places, Views};

mod stored;

mod take;

/// Messages as columns. Cheap to clone: segments and dictionaries are shared.
#[derive(Debug, Clone, Default)]
pub struct Table {
    schema: Schema,
    columns: Vec<Column>,
    /// The first row of each segment, and at the end the number of rows.
    starts: Vec<u64>,
}

/// One field of all messages.
#[derive(Debug, Clone, Default)]
pub struct Column {
    dictionary: Option<Arc<Dictionary>>,
    segments: Vec<Arc<SegmentColumn>>,
    /// Whether there is a dictionary, but some segments have plain text.
    is_mixed: bool,
    is_wide: bool,
    rounded: u64,
}

/// Digits of every integer of 64 bits.
const PRECISION_MIN: u8 = 19;

impl Table {
    /// A table of matching columns.
    pub(crate) fn of(schema: Schema, columns: Vec<Column>, segment_rows: &[u32]) -> Table {
        debug_assert!(columns.iter().all(|column| column.segments.len() == segment_rows.len()));
        let mut starts = vec![0];
        let mut end = 0;
        for &rows in segment_rows {
            end += u64::from(rows);
            starts.push(end);
        }
        Table { schema, columns, starts }
    }

    /// A table without rows: columns of these names, of unknown type.
    pub(crate) fn empty(names: Vec<Box<str>>) -> Table {
        let columns = vec![Column::default(); names.len()];
        let field = |name| Field { name, kind: Kind::Null };
        Table::of(Schema { fields: names.into_iter().map(field).collect() }, columns, &[])
    }

    /// The columns' names and types.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The columns, in the order of the schema.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// How many segments there are; the same for each column.
    pub fn segments(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The first row of a segment; of the number of segments, the number of rows.
    ///
    /// # Panics
    ///
    /// If there is no such segment.
    pub fn segment_start(&self, segment: usize) -> u64 {
        self.starts[segment]
    }

    /// How many rows a segment has: one to [`SEGMENT_ROWS`](crate::column::raw::SEGMENT_ROWS), any
    /// segment.
    ///
    /// # Panics
    ///
    /// If there is no such segment.
    pub fn segment_rows(&self, segment: usize) -> usize {
        (self.starts[segment + 1] - self.starts[segment]) as usize
    }

    /// The segment of a row, and the row's index in it. A binary search.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn locate(&self, row: u64) -> (usize, usize) {
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        let segment = self.starts.partition_point(|&start| start <= row) - 1;
        (segment, (row - self.starts[segment]) as usize)
    }

    /// One value. For showing rows, not for scans.
    ///
    /// # Panics
    ///
    /// If there is no such row or column.
    pub fn value(&self, row: u64, column: usize) -> Value {
        let (segment, row) = self.locate(row);
        self.columns[column].value(segment, row).map_text(Into::into)
    }

    /// The same columns under other names, one for each.
    ///
    /// # Panics
    ///
    /// If the number of names differs from that of columns.
    #[must_use]
    pub fn renamed(mut self, names: Vec<Box<str>>) -> Table {
        assert_eq!(names.len(), self.columns.len(), "a name for each column");
        for (field, name) in self.schema.fields.iter_mut().zip(names) {
            field.name = name;
        }
        self
    }

    /// Its size in memory, including parts shared with other tables.
    pub fn nbytes(&self) -> usize {
        let names: usize = self.schema.fields.iter().map(|field| field.name.len()).sum();
        names + 8 * self.starts.capacity() + self.columns.iter().map(Column::nbytes).sum::<usize>()
    }
}

impl Column {
    /// A column of segments whose codes, if they have any, are codes of `dictionary`.
    pub(crate) fn of(
        dictionary: Option<Arc<Dictionary>>,
        segments: Vec<Arc<SegmentColumn>>,
    ) -> Column {
        let is_plain = |segment: &Arc<SegmentColumn>| matches!(segment.data(), Data::Text(_));
        let is_mixed = dictionary.is_some() && segments.iter().any(is_plain);
        let is_wide = segments.iter().any(|segment| segment.is_wide());
        Column { dictionary, segments, is_mixed, is_wide, rounded: 0 }
    }

    /// The distinct strings, if segments have codes. Every code is less than its length. Some segments
    /// may have plain strings nevertheless: see [`is_mixed`](Self::is_mixed).
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Whether there is a dictionary and some segments have plain text, as where strings that come
    /// again and again are too long to be spelled out: codes, sets of them and zones in codes then
    /// say nothing about those segments.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// How many values that were loaded into the column have lost digits: it is one of floats, for
    /// some are floats in the source, or exact numbers of more than 38 digits. Rows that are
    /// [taken](Table::take) know of none.
    pub fn rounded(&self) -> u64 {
        self.rounded
    }

    /// Whether it has numbers that 64 bits do not hold.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// The number of digits that its exact numbers, with `scale` decimals, have in Arrow: that of
    /// 64-bit integers, or more if necessary.
    pub fn precision(&self, scale: u8) -> u8 {
        let digits = |segment: &Arc<SegmentColumn>| {
            let zone = segment.zone();
            let ends = if zone.is_without_values() { [0, 0] } else { [zone.min, zone.max] };
            ends.map(exact::digits).into_iter().max()
        };
        self.segments.iter().filter_map(digits).fold(PRECISION_MIN.max(scale), u8::max)
    }

    /// The segments, in order.
    pub fn segments(&self) -> &[Arc<SegmentColumn>] {
        &self.segments
    }

    /// The value of a row of a segment. For showing rows, not for scans.
    ///
    /// # Panics
    ///
    /// If there is no such segment or row.
    pub fn value(&self, segment: usize, row: usize) -> Value<&str> {
        self.segments[segment].value(row, self.texts())
    }

    /// The text of a row of a segment, of a column of text.
    ///
    /// # Panics
    ///
    /// If there is no such segment or row.
    pub fn text(&self, segment: usize, row: usize) -> Option<&str> {
        self.segments[segment].text(row, self.texts())
    }

    fn texts(&self) -> Option<&Texts> {
        self.dictionary.as_ref().map(|dictionary| &***dictionary)
    }

    /// Bytes of memory taken.
    pub fn nbytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(|segment| segment.nbytes()).sum();
        let list = size_of::<Arc<SegmentColumn>>() * self.segments.capacity();
        segments + list + self.dictionary.as_ref().map_or(0, |dictionary| dictionary.nbytes())
    }
}
