//! Parsers write rows, field by field, into the columns of a segment.
//!
//! ```text
//!  parser ─→ RowBuilder ─→ one ColumnBuilder a field ─→ RawColumn
//!            commit row     type inferred,           passed on when
//!            or roll back   widened if necessary     the segment is full
//! ```
//!
//! Every format writes through [`RowBuilder`]. A worker keeps its own over all its segments, with
//! the dictionaries and the state of fields.

mod cell;
mod column;
mod interner;
mod kinds;
mod numbered;
mod short;
mod text;
mod time;
mod values;
mod widen;

pub use cell::Cell;
pub use kinds::KindFinder;
pub(crate) use time::{Shapes, digits, shape_of};

use std::collections::HashMap;

use crate::column::raw::{BLOCK_ROWS, RawColumn, SEGMENT_ROWS};
use crate::{Packing, PartField, Schema, push_list_end};
use column::ColumnBuilder;

/// A field of one builder: look it up once by its name, then use it for every row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(u32);

impl FieldId {
    /// Makes the id of the `index`-th field, in the order of first appearance.
    pub fn new(index: usize) -> Self {
        FieldId(index as u32)
    }

    /// Returns its index among the fields, in the order of first appearance.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Receives the values of one message after another. If a message sets a field twice, the later
/// value counts.
pub trait Row {
    /// Returns the field with this name, known or new; `None` if nobody requested it.
    fn field(&mut self, name: &str) -> Option<FieldId>;

    /// Counts a value without a field, because its name exceeds the limits.
    fn refuse(&mut self) {}

    /// Whether fields have gone since the last call, with a rejected message that was the first to name them.
    /// Then parsers look up again all fields but those of accepted messages.
    fn has_lost_fields(&mut self) -> bool {
        false
    }

    /// Whether the row uses [`list_end`](Self::list_end).
    fn takes_list_ends(&self) -> bool {
        false
    }

    /// Receives the path and the length of a list whose last element has no value, after all fields
    /// of the message. No field shows that such an element exists.
    fn list_end(&mut self, list: &str, length: usize) {
        let _ = (list, length);
    }

    /// Sets a field to TRUE or FALSE.
    fn boolean(&mut self, field: FieldId, value: bool);
    /// Sets a field to an integer.
    fn integer(&mut self, field: FieldId, value: i64);
    /// Sets a field to `mantissa` divided by 10^`scale`, `scale` at most 18.
    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8);
    /// Sets a field to a number that no other method takes: [`Cell::Wide`] or [`Cell::Rounded`].
    fn number(&mut self, field: FieldId, number: Cell<'static>);
    /// Sets a field to a float.
    fn float(&mut self, field: FieldId, value: f64);
    /// Sets a field to a day, counted from 1970-01-01.
    fn date(&mut self, field: FieldId, days: i32);
    /// Sets a field to nanoseconds from 1970-01-01 00:00:00 UTC.
    fn timestamp(&mut self, field: FieldId, nanoseconds: i64);
    /// Sets a field to a string of at most 1 GiB.
    fn text(&mut self, field: FieldId, value: &str);
    /// Sets a field to a string that is a prefix of `ahead`, whatever follows it there: short
    /// strings are copied without a branch on their length.
    fn text_ahead(&mut self, field: FieldId, value: &str, ahead: &[u8; 32]) {
        let _ = ahead;
        self.text(field, value);
    }
    /// Sets a field to `value`, which is also its string in the row before.
    fn text_again(&mut self, field: FieldId, value: &str) {
        self.text(field, value);
    }
    /// Sets a field to NULL, the default.
    fn null(&mut self, field: FieldId);
}

/// A segment, and a row in it.
type RowNumber = (u64, usize);

/// Maximum number of cells (rows × columns) of a segment, so that wide tables have short segments.
const SEGMENT_CELLS_MAX: usize = 1 << 24;

/// Maximum bytes of plain strings of a segment, since their offsets have 32 bits.
const SEGMENT_TEXT_BYTES_MAX: usize = 1 << 30;

/// The columns of a segment while rows are written; see the module.
#[derive(Debug)]
pub struct RowBuilder {
    names: HashMap<Box<str>, FieldId>,
    columns: Vec<ColumnBuilder>,
    /// The row that is being written.
    row: usize,
    /// The number of segments before this one.
    segments: u64,
    rows_max: usize,
    columns_max: usize,
    /// Whether fields that are not in the schema are ignored.
    is_closed: bool,
    finds_times: bool,
    refused: Refused,
    /// The last row with refused fields, and how many names and fields were refused before it.
    refused_before: Option<(RowNumber, usize, u64)>,
    has_lost_fields: bool,
    packing: Packing,
    /// The ends of the row's lists, if the builder keeps them: see [`push_list_end`].
    list_ends: Option<String>,
}

/// Fields that were refused because the table has too many columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// The names of the first hundred.
    pub names: Vec<Box<str>>,
    /// Number of refused new names; a repeated name may count again.
    pub count: u64,
}

const REFUSED_NAMES_MAX: usize = 100;

impl Refused {
    /// Adds the refused fields of another builder.
    pub fn add(&mut self, other: Refused) {
        self.count += other.count;
        for name in other.names {
            if self.names.len() < REFUSED_NAMES_MAX && !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }
}

impl RowBuilder {
    /// Makes a builder without fields and rows, for at most `columns_max` fields.
    pub fn new(columns_max: usize) -> Self {
        RowBuilder {
            names: HashMap::new(),
            columns: Vec::new(),
            row: 0,
            segments: 0,
            rows_max: SEGMENT_ROWS,
            columns_max,
            is_closed: false,
            finds_times: false,
            refused: Refused::default(),
            refused_before: None,
            has_lost_fields: false,
            packing: Packing::default(),
            list_ends: None,
        }
    }

    /// Keeps the ends of lists, for [`list_ends`](Self::list_ends).
    #[must_use]
    pub(crate) fn keeping_list_ends(mut self, keeps: bool) -> Self {
        self.list_ends = keeps.then(String::new);
        self
    }

    /// Returns the ends of the lists of the current row.
    pub(crate) fn list_ends(&self) -> &str {
        self.list_ends.as_deref().unwrap_or_default()
    }

    /// Clears the ends of lists, for the next row.
    pub(crate) fn clear_list_ends(&mut self) {
        if let Some(ends) = &mut self.list_ends {
            ends.clear();
        }
    }

    /// Makes columns of dates or timestamps if all strings of a column are such in ISO 8601
    /// ([`Cell::of_time`]), for formats without types for them.
    #[must_use]
    pub fn finding_times(mut self) -> Self {
        self.finds_times = true;
        self.columns.iter_mut().for_each(|column| column.find_times());
        self
    }

    /// Sets the packing of all fields; must come before the first field.
    #[must_use]
    pub(crate) fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self.rows_max = self.rows_allowed();
        self
    }

    /// Makes a builder with the fields of `schema` and no others.
    pub fn with_fields(schema: &Schema) -> Self {
        Self::with_fields_packed(schema, Packing::default())
    }

    pub(crate) fn with_fields_packed(schema: &Schema, packing: Packing) -> Self {
        let mut builder = RowBuilder::new(schema.fields.len()).packing(packing);
        for field in &schema.fields {
            builder.field(&field.name);
        }
        builder.is_closed = true;
        builder
    }

    /// Ends the row: fields that were not set are NULL.
    #[inline]
    pub fn commit(&mut self) {
        self.row += 1;
    }

    /// Removes the values set since the last row ended, and the fields that this row was the first to name: the
    /// order of fields must not depend on rejected messages. Ids of these fields are invalid from now on.
    pub fn rollback(&mut self) {
        self.clear_list_ends();
        let here = self.row_number();
        if let Some((_, names, count)) = self.refused_before.take_if(|(row, ..)| *row == here) {
            self.refused.names.truncate(names);
            self.refused.count = count;
            self.has_lost_fields = true;
        }
        while !self.is_closed
            && let Some(column) = self.columns.pop_if(|column| column.first_row == here)
        {
            self.names.remove(&column.name);
            self.has_lost_fields = true;
        }
        for column in &mut self.columns {
            column.rollback(self.row);
        }
    }

    fn row_number(&self) -> RowNumber {
        (self.segments, self.row)
    }

    /// Returns the number of rows of the segment so far.
    pub fn rows(&self) -> usize {
        self.row
    }

    /// Whether [`finish_segment`](Self::finish_segment) must be called before the next row.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.row >= self.rows_max
    }

    /// Yields the fields' names in the order of first appearance.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// Returns the fields beyond the maximum number.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Passes every column of the segment to `take`, field by field, and begins the next segment. A
    /// field that no message of the segment has is left out, and is NULL there.
    pub fn finish_segment(&mut self, mut take: impl FnMut(FieldId, &RawColumn)) {
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.finish(self.row, |raw| take(FieldId::new(index), raw));
        }
        self.row = 0;
        self.segments += 1;
        self.rows_max = self.rows_allowed();
    }

    /// Returns the dictionary of a field's codes, in order of code: the end of each string, and the
    /// bytes of all. Empty if the field has no codes.
    pub fn dictionary(&self, field: FieldId) -> (&[u32], &[u8]) {
        self.columns[field.index()].dictionary()
    }

    /// Returns the number of a field's values so far that lost digits by becoming floats.
    pub fn rounded(&self, field: FieldId) -> u64 {
        self.columns[field.index()].rounded()
    }

    /// Returns the shapes of a field's dates and timestamps in this segment, before it is finished;
    /// empty without any.
    pub(crate) fn take_shapes(&mut self, field: FieldId) -> Shapes {
        self.columns[field.index()].take_shapes()
    }

    /// Returns the number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.columns.len()
    }

    /// Whether a field has become a column of strings.
    pub(crate) fn is_text(&self, field: FieldId) -> bool {
        self.columns[field.index()].is_text()
    }

    /// Makes a field without a value in this segment a column of strings.
    pub(crate) fn make_text(&mut self, field: FieldId) {
        self.columns[field.index()].make_text();
    }

    /// Returns the fields in the order of first appearance, with their dictionaries, after the last
    /// segment; `None` for a field that no message had.
    pub(crate) fn into_fields(self) -> Vec<Option<PartField>> {
        self.columns.into_iter().map(ColumnBuilder::into_field).collect()
    }

    /// Sets a field to a value of any type.
    pub fn put(&mut self, field: FieldId, cell: Cell<'_>) {
        self.columns[field.index()].put(self.row, cell);
    }

    fn rows_allowed(&self) -> usize {
        let rows = SEGMENT_CELLS_MAX / self.columns.len().max(1);
        let rows = rows.clamp(BLOCK_ROWS, SEGMENT_ROWS) / BLOCK_ROWS * BLOCK_ROWS;
        rows.min(self.packing.segment_rows.max(1))
    }

    #[inline(never)]
    fn text_unlike(&mut self, field: FieldId, value: &str) {
        self.text(field, value);
    }

    fn count_refused(&mut self) {
        let here = self.row_number();
        if self.refused_before.is_none_or(|(row, ..)| row != here) {
            self.refused_before = Some((here, self.refused.names.len(), self.refused.count));
        }
        self.refused.count += 1;
    }

    #[cold]
    fn new_field(&mut self, name: &str) -> Option<FieldId> {
        if self.is_closed {
            return None;
        }
        if self.columns.len() >= self.columns_max {
            self.count_refused();
            if self.refused.names.len() < REFUSED_NAMES_MAX {
                self.refused.names.push(name.into());
            }
            return None;
        }
        let field = FieldId::new(self.columns.len());
        let mut column = ColumnBuilder::new(name.into(), self.finds_times, self.packing);
        column.first_row = self.row_number();
        self.columns.push(column);
        self.names.insert(name.into(), field);
        self.rows_max = self.rows_allowed().max(self.row + 1);
        Some(field)
    }
}

impl Row for RowBuilder {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        match self.names.get(name) {
            Some(&field) => Some(field),
            None => self.new_field(name),
        }
    }

    #[cold]
    fn refuse(&mut self) {
        self.count_refused();
    }

    fn has_lost_fields(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_fields)
    }

    fn takes_list_ends(&self) -> bool {
        self.list_ends.is_some()
    }

    fn list_end(&mut self, list: &str, length: usize) {
        if let Some(ends) = &mut self.list_ends {
            push_list_end(list, length, ends);
        }
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.columns[field.index()].put(self.row, Cell::Boolean(value));
    }

    #[inline(always)]
    fn integer(&mut self, field: FieldId, value: i64) {
        self.columns[field.index()].integer(self.row, value);
    }

    #[inline(always)]
    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.columns[field.index()].decimal(self.row, mantissa, scale);
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.columns[field.index()].number(self.row, number);
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.columns[field.index()].float(self.row, value);
    }

    fn date(&mut self, field: FieldId, days: i32) {
        self.columns[field.index()].put(self.row, Cell::Date(days));
    }

    #[inline]
    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        self.columns[field.index()].timestamp(self.row, nanoseconds);
    }

    #[inline(always)]
    fn text(&mut self, field: FieldId, value: &str) {
        let plain_bytes = self.columns[field.index()].text(self.row, value);
        if plain_bytes > SEGMENT_TEXT_BYTES_MAX {
            self.rows_max = self.row + 1;
        }
    }

    #[inline(always)]
    fn text_ahead(&mut self, field: FieldId, value: &str, ahead: &[u8; 32]) {
        let plain_bytes = self.columns[field.index()].text_ahead(self.row, value, ahead);
        if plain_bytes > SEGMENT_TEXT_BYTES_MAX {
            self.rows_max = self.row + 1;
        }
    }

    #[inline(always)]
    fn text_again(&mut self, field: FieldId, value: &str) {
        if !self.columns[field.index()].text_again(self.row) {
            self.text_unlike(field, value);
        }
    }

    #[inline(always)]
    fn null(&mut self, field: FieldId) {
        self.columns[field.index()].null(self.row);
    }
}
