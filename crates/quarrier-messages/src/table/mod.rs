//! Tables: columns of packed segments, and the assembly of workers' parts into a table.

use std::collections::HashMap;
use std::sync::Arc;

use crate::column::{Data, Dictionary, SegmentColumn, Strings};
use crate::{Field, HiddenColumns, Kind, LIST_ENDS_COLUMN, Schema, Value, exact};

mod assemble;

mod arrow;
mod merge;
pub use arrow::{Batches, Places, Views};

mod described;
pub use described::{ColumnDescription, Description};

mod stored;

mod take;

/// Messages as columns. Cheap to clone, since clones share segments and dictionaries.
#[derive(Debug, Clone, Default)]
pub struct Table {
    schema: Schema,
    columns: Vec<Column>,
    /// The first row of each segment, and the number of rows at the end.
    starts: Vec<u64>,
    hidden: HiddenColumns,
}

/// One field of all messages.
#[derive(Debug, Clone, Default)]
pub struct Column {
    dictionary: Option<Arc<Dictionary>>,
    segments: Vec<Arc<SegmentColumn>>,
    /// Whether there is a dictionary, but some segments have plain strings.
    is_mixed: bool,
    is_wide: bool,
    rounded: u64,
}

/// The number of digits of 64-bit integers.
const PRECISION_MIN: u8 = 19;

/// The number of digits in Arrow of exact numbers with `scale` decimals, given the least and the greatest
/// mantissas.
fn precision_of(scale: u8, bounds: impl Iterator<Item = (i128, i128)>) -> u8 {
    let digits = bounds.map(|(min, max)| exact::digits(min).max(exact::digits(max)));
    digits.fold(PRECISION_MIN.max(scale), u8::max)
}

impl Table {
    /// Makes a table of matching columns.
    pub(crate) fn of(schema: Schema, columns: Vec<Column>, segment_rows: &[u32]) -> Table {
        debug_assert!(columns.iter().all(|column| column.segments.len() == segment_rows.len()));
        let mut starts = vec![0];
        let mut end = 0;
        for &rows in segment_rows {
            end += u64::from(rows);
            starts.push(end);
        }
        Table { schema, columns, starts, hidden: HiddenColumns::default() }
    }

    /// Makes a table without rows, with columns of these names and unknown type.
    pub(crate) fn empty(names: Vec<Box<str>>) -> Table {
        let columns = vec![Column::default(); names.len()];
        let field = |name| Field { name, kind: Kind::Null };
        Table::of(Schema { fields: names.into_iter().map(field).collect() }, columns, &[])
    }

    /// Returns the columns' names and types.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the columns, in the order of the schema.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the hidden columns of the table, which are its last ones. Statements refer to them
    /// by name, and `*` leaves them out.
    pub fn hidden(&self) -> HiddenColumns {
        self.hidden
    }

    /// Returns the number of columns that are not hidden.
    pub fn visible(&self) -> usize {
        self.columns.len() - self.hidden.fields().count()
    }

    /// Hides columns, and moves them to the end. If the table has no rows, adds the missing ones. Drops
    /// the column of the ends of lists if all lists end with a value.
    #[must_use]
    pub fn hiding(mut self, hidden: HiddenColumns) -> Table {
        let mut columns: Vec<_> =
            self.schema.fields.drain(..).zip(self.columns.drain(..)).collect();
        for wanted in hidden.fields() {
            let place = columns.iter().position(|(field, _)| field.name == wanted.name);
            let column = match place {
                Some(place) => columns.remove(place).1,
                None if self.starts.len() <= 1 => Column::default(),
                None => continue,
            };
            if *wanted.name == *LIST_ENDS_COLUMN && column.has_no_value() {
                continue;
            }
            self.hidden = self.hidden | HiddenColumns::of_name(&wanted.name);
            columns.push((wanted, column));
        }
        (self.schema.fields, self.columns) = columns.into_iter().unzip();
        self
    }

    /// Returns the table without its hidden columns; shares the others.
    #[must_use]
    pub fn without_hidden(&self) -> Table {
        self.with_columns(self.visible())
    }

    /// Returns the columns with these names, in this order; `None` if one is missing. Shares them.
    pub(crate) fn with_names<'n>(&self, names: impl Iterator<Item = &'n str>) -> Option<Table> {
        let fields = self.schema.fields.iter().enumerate();
        let places: HashMap<&str, usize> = fields.map(|(at, field)| (&*field.name, at)).collect();
        let places = names.map(|name| places.get(name).copied()).collect::<Option<Vec<_>>>()?;
        let fields = places.iter().map(|&at| self.schema.fields[at].clone()).collect();
        let columns = places.iter().map(|&at| self.columns[at].clone()).collect();
        let (starts, hidden) = (self.starts.clone(), HiddenColumns::default());
        Some(Table { schema: Schema { fields }, columns, starts, hidden })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the number of segments; the same for each column.
    pub fn segments(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the first row of a segment; the number of rows for `segments()`.
    ///
    /// # Panics
    ///
    /// If the segment does not exist.
    pub fn segment_start(&self, segment: usize) -> u64 {
        self.starts[segment]
    }

    /// Returns the number of rows of a segment: one to
    /// [`SEGMENT_ROWS`](crate::column::raw::SEGMENT_ROWS).
    ///
    /// # Panics
    ///
    /// If the segment does not exist.
    pub fn segment_rows(&self, segment: usize) -> usize {
        (self.starts[segment + 1] - self.starts[segment]) as usize
    }

    /// Returns the segment of a row, and the row's index in it. A binary search.
    ///
    /// # Panics
    ///
    /// If the row does not exist.
    pub fn locate(&self, row: u64) -> (usize, usize) {
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        let segment = self.starts.partition_point(|&start| start <= row) - 1;
        (segment, (row - self.starts[segment]) as usize)
    }

    /// Returns one value. For display, not for scans.
    ///
    /// # Panics
    ///
    /// If the row or column does not exist.
    pub fn value(&self, row: u64, column: usize) -> Value {
        let (segment, row) = self.locate(row);
        self.columns[column].value(segment, row).map_text(Into::into)
    }

    /// Returns the table with other names for its columns, one for each.
    ///
    /// # Panics
    ///
    /// If the number of names differs from the number of columns.
    #[must_use]
    pub fn renamed(mut self, names: Vec<Box<str>>) -> Table {
        assert_eq!(names.len(), self.columns.len(), "a name for each column");
        for (field, name) in self.schema.fields.iter_mut().zip(names) {
            field.name = name;
        }
        self
    }

    /// Returns the size in memory in bytes, including parts shared with other tables.
    pub fn nbytes(&self) -> usize {
        let names: usize = self.schema.fields.iter().map(|field| field.name.len()).sum();
        names + 8 * self.starts.capacity() + self.columns.iter().map(Column::nbytes).sum::<usize>()
    }
}

impl Column {
    /// Makes a column of segments; any codes are those of `dictionary`.
    pub(crate) fn of(
        dictionary: Option<Arc<Dictionary>>,
        segments: Vec<Arc<SegmentColumn>>,
    ) -> Column {
        let is_plain = |segment: &Arc<SegmentColumn>| matches!(segment.data(), Data::Text(_));
        let is_mixed = dictionary.is_some() && segments.iter().any(is_plain);
        let is_wide = segments.iter().any(|segment| segment.is_wide());
        Column { dictionary, segments, is_mixed, is_wide, rounded: 0 }
    }

    /// Returns the distinct strings, if segments have codes. Every code is less than its length.
    /// Some segments may still have plain strings: see [`is_mixed`](Self::is_mixed).
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Whether there is a dictionary, but some segments have plain strings, for example because
    /// repeated strings are too long to store for each row. Codes, sets of codes and zone maps of
    /// codes do not apply to those segments.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// Returns the number of values that lost digits when they were loaded into the column: a
    /// column of floats, because some values are floats in the source, or exact numbers exceed 38
    /// digits. Rows that are [taken](Table::take) do not keep this number.
    pub fn rounded(&self) -> u64 {
        self.rounded
    }

    /// Whether some numbers exceed 64 bits.
    pub fn is_wide(&self) -> bool {
        self.is_wide
    }

    /// Returns the number of digits in Arrow of its exact numbers with `scale` decimals: that of
    /// 64-bit integers, or more if necessary.
    pub fn precision(&self, scale: u8) -> u8 {
        let zones = self.segments.iter().map(|segment| segment.zone());
        let zones = zones.filter(|zone| !zone.is_without_values());
        precision_of(scale, zones.map(|zone| (zone.min, zone.max)))
    }

    /// Returns the segments, in order.
    pub fn segments(&self) -> &[Arc<SegmentColumn>] {
        &self.segments
    }

    /// Returns the value of a row of a segment. For display, not for scans.
    ///
    /// # Panics
    ///
    /// If the segment or row does not exist.
    pub fn value(&self, segment: usize, row: usize) -> Value<&str> {
        self.segments[segment].value(row, self.strings())
    }

    /// Returns the string of a row of a segment, in a column of strings.
    ///
    /// # Panics
    ///
    /// If the segment or row does not exist.
    pub fn text(&self, segment: usize, row: usize) -> Option<&str> {
        self.segments[segment].text(row, self.strings())
    }

    fn has_no_value(&self) -> bool {
        self.segments.iter().all(|segment| matches!(segment.data(), Data::Null))
    }

    fn strings(&self) -> Option<&Strings> {
        self.dictionary.as_ref().map(|dictionary| &***dictionary)
    }

    /// Returns the bytes of memory.
    pub fn nbytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(|segment| segment.nbytes()).sum();
        let list = size_of::<Arc<SegmentColumn>>() * self.segments.capacity();
        segments + list + self.dictionary.as_ref().map_or(0, |dictionary| dictionary.nbytes())
    }
}
