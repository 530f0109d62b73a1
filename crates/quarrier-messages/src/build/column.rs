//! One column of a segment while its rows are written.

use super::Cell;
use super::text::TextBuilder;
use super::time::{Shape, Shapes, shape_of, timed};
use super::values::{Values, rescaled};
use super::widen;
use crate::column::Strings;
use crate::column::raw::{RawColumn, RawData};
use crate::{Packing, PartField};

#[derive(Debug)]
pub(super) struct ColumnBuilder {
    pub(super) name: Box<str>,
    /// The row that was the first to name the field, and the number of segments before its own.
    pub(super) first_row: (u64, usize),
    pub(super) values: Values,
    /// Rows of the segment without a value, ascending. They have 0 in `values`.
    nulls: Vec<u32>,
    /// The last row before which missing rows were filled with NULL, and the number of rows before
    /// the fill.
    filled: (usize, usize),
    /// The shapes in which the segment's dates and timestamps were written.
    shapes: Shapes,
    /// The row at which the type last changed, and the state before it.
    before: Option<(usize, Values, Shapes)>,
    /// Whether strings may be dates and timestamps.
    finds_times: bool,
    /// Whether a message had the field.
    is_used: bool,
    packing: Packing,
    /// Number of values so far that lost digits by becoming floats.
    rounded: u64,
    /// The row at which that number last changed, and its value before.
    rounded_before: (usize, u64),
    /// The last row whose own value lost digits, which may be set again.
    rounded_row: usize,
}

const NEVER: (usize, usize) = (usize::MAX, 0);
const NEVER_ROUNDED: (usize, u64) = (usize::MAX, 0);

impl ColumnBuilder {
    pub(super) fn new(name: Box<str>, finds_times: bool, packing: Packing) -> Self {
        ColumnBuilder {
            name,
            first_row: (0, 0),
            values: Values::Null(0),
            nulls: Vec::new(),
            filled: NEVER,
            shapes: Shapes::new(),
            before: None,
            finds_times,
            is_used: false,
            packing,
            rounded: 0,
            rounded_before: NEVER_ROUNDED,
            rounded_row: usize::MAX,
        }
    }

    pub(super) fn find_times(&mut self) {
        self.finds_times = true;
    }

    #[inline(always)]
    pub(super) fn integer(&mut self, row: usize, value: i64) {
        match &mut self.values {
            Values::Integer(values) if values.len() == row => values.push(value),
            _ => self.number(row, Cell::Integer(value)),
        }
    }

    #[inline(always)]
    pub(super) fn decimal(&mut self, row: usize, mantissa: i64, scale: u8) {
        if let Values::Decimal(column_scale, values) = &mut self.values
            && values.len() == row
            && let Some(mantissa) = rescaled(mantissa, scale, *column_scale)
        {
            return values.push(mantissa);
        }
        self.number(row, Cell::Decimal { mantissa, scale });
    }

    /// Sets row `row` to a number, whatever the type of the column.
    #[inline(never)]
    pub(super) fn number(&mut self, row: usize, cell: Cell<'_>) {
        if let Values::Wide(scale, values) = &mut self.values
            && values.len() == row
            && let Some(mantissa) = cell.mantissa(*scale)
        {
            return values.push(mantissa);
        }
        self.put(row, cell);
    }

    #[inline]
    pub(super) fn float(&mut self, row: usize, value: f64) {
        match &mut self.values {
            Values::Float(values) if values.len() == row => values.push(value),
            _ => self.put(row, Cell::Float(value)),
        }
    }

    #[inline]
    pub(super) fn timestamp(&mut self, row: usize, nanoseconds: i64) {
        match &mut self.values {
            Values::Timestamp(values) if values.len() == row && self.shapes.is_empty() => {
                values.push(nanoseconds);
            }
            _ => self.put(row, Cell::Timestamp(nanoseconds)),
        }
    }

    /// Sets row `row` to a string; returns the segment's bytes of plain strings.
    #[inline(always)]
    pub(super) fn text(&mut self, row: usize, value: &str) -> usize {
        match &mut self.values {
            Values::Text(strings) if strings.rows == row => strings.push(value),
            _ => {
                self.put_text(row, value);
                0
            }
        }
    }

    /// Like [`text`](Self::text), for a string that is a prefix of the readable bytes `ahead`.
    #[inline(always)]
    pub(super) fn text_ahead(&mut self, row: usize, value: &str, ahead: &[u8; 32]) -> usize {
        match &mut self.values {
            Values::Text(strings) if strings.rows == row => strings.push_ahead(value, ahead),
            _ => self.text_after_gap(row, value),
        }
    }

    /// Fills missing rows with NULL before a string, after messages that lack the field.
    #[inline(never)]
    fn text_after_gap(&mut self, row: usize, value: &str) -> usize {
        match &mut self.values {
            Values::Text(strings) if strings.rows < row => {
                self.filled = (row, strings.rows);
                while strings.rows < row {
                    self.nulls.push(strings.rows as u32);
                    strings.push_null();
                }
                strings.push(value)
            }
            _ => self.text(row, value),
        }
    }

    /// Sets the row to the value of the row before; returns false if that value is not available.
    #[inline(always)]
    pub(super) fn text_again(&mut self, row: usize) -> bool {
        match &mut self.values {
            Values::Text(strings) if strings.rows == row => strings.push_again(),
            _ => false,
        }
    }

    #[inline(always)]
    pub(super) fn null(&mut self, row: usize) {
        if self.rows() != row {
            self.make_room(row);
        }
        self.nulls.push(row as u32);
        self.values.push_zero();
    }

    /// Sets row `row` to a value of any type, and the column to a type that holds it.
    #[cold]
    #[inline(never)]
    pub(super) fn put(&mut self, row: usize, cell: Cell<'_>) {
        match cell {
            Cell::Null => return self.null(row),
            Cell::Text(text) => return self.put_text(row, text),
            _ => {}
        }
        self.make_room(row);
        self.hold(row, cell, Shape::Plain);
    }

    /// Sets a string, which may be a date or a timestamp.
    #[inline(never)]
    fn put_text(&mut self, row: usize, text: &str) {
        self.make_room(row);
        let may_be_time = self.finds_times
            && matches!(self.values, Values::Null(_) | Values::Date(_) | Values::Timestamp(_));
        match timed(text).filter(|_| may_be_time) {
            Some((cell, shape)) => self.hold(row, cell, shape),
            None => self.hold(row, Cell::Text(text), Shape::Plain),
        }
    }

    fn hold(&mut self, row: usize, cell: Cell<'_>, shape: Shape) {
        let written = (&*self.nulls, &*self.shapes, self.packing);
        if let Some(wider) = widen::to_hold(&self.values, written, cell) {
            self.lose_digits(row, wider.rounded);
            let values = std::mem::replace(&mut self.values, wider.values);
            if self.before.as_ref().is_none_or(|(known, ..)| *known != row) {
                self.before = Some((row, values, self.shapes.clone()));
            }
        }
        match &mut self.values {
            Values::Date(_) | Values::Timestamp(_) => {
                self.values.push(cell);
                if shape_of(&self.shapes, row) != shape {
                    self.shapes.push((row as u32, shape));
                }
            }
            Values::Text(strings) => {
                self.shapes.clear();
                if shape == Shape::Plain {
                    self.values.push(cell);
                } else {
                    let mut text = String::new();
                    shape.write(cell, &mut text);
                    strings.push(&text);
                }
            }
            Values::Float(_) => {
                if cell.is_rounded() {
                    self.lose_digits(row, 1);
                    self.rounded_row = row;
                }
                self.values.push(cell);
            }
            _ => self.values.push(cell),
        }
    }

    /// Counts values that lose digits by becoming floats.
    fn lose_digits(&mut self, row: usize, values: u64) {
        if self.rounded_before.0 != row {
            self.rounded_before = (row, self.rounded);
        }
        self.rounded += values;
    }

    pub(super) fn rounded(&self) -> u64 {
        self.rounded
    }

    /// Returns the shapes of the segment's dates and timestamps, and clears them.
    pub(super) fn take_shapes(&mut self) -> Shapes {
        std::mem::take(&mut self.shapes)
    }

    /// Makes this a column of strings from now on.
    pub(super) fn make_text(&mut self) {
        if !matches!(self.values, Values::Text(_)) {
            self.values = Values::Text(Box::new(TextBuilder::new(self.packing)));
        }
    }

    /// Whether the field has become a column of strings.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.values, Values::Text(_))
    }

    /// Removes the value set at `row`, as if the field had been missing.
    pub(super) fn rollback(&mut self, row: usize) {
        if let Some((_, values, shapes)) = self.before.take_if(|(known, ..)| *known == row) {
            (self.values, self.shapes) = (values, shapes);
        }
        if self.rounded_before.0 == row {
            self.rounded = self.rounded_before.1;
            self.rounded_row = usize::MAX;
        }
        let (filled_for, rows) = self.filled;
        self.truncate(if filled_for == row { rows } else { row });
    }

    fn truncate(&mut self, row: usize) {
        while self.rows() > row {
            self.values.pop();
        }
        while self.nulls.last().is_some_and(|&null| null as usize >= row) {
            self.nulls.pop();
        }
        while self.shapes.last().is_some_and(|&(first, _)| first as usize >= row) {
            self.shapes.pop();
        }
    }

    /// Lends the segment's column of `rows` rows to `take` if a message had the field, and begins
    /// the next segment.
    pub(super) fn finish(&mut self, rows: usize, take: impl FnOnce(&RawColumn)) {
        self.filled = NEVER;
        self.before = None;
        self.rounded_before = NEVER_ROUNDED;
        self.rounded_row = usize::MAX;
        if self.rows() == 0 {
            return;
        }
        self.is_used = true;
        self.make_room(rows);
        self.filled = NEVER;
        let raw = RawColumn { valid: self.valid(rows), data: self.take_data(rows) };
        take(&raw);
        self.nulls.clear();
        self.shapes.clear();
        self.reuse(raw.data);
    }

    pub(super) fn dictionary(&self) -> (&[u32], &[u8]) {
        match &self.values {
            Values::Text(strings) => strings.dictionary(),
            _ => (&[], &[]),
        }
    }

    /// Returns the field with its dictionary; `None` if no message had it.
    pub(super) fn into_field(self) -> Option<PartField> {
        let (ends, bytes) = match self.values {
            Values::Text(strings) => strings.into_dictionary(),
            _ => (Vec::new(), Vec::new()),
        };
        let dictionary = Strings::from_parts(ends, bytes);
        let rounded = self.rounded;
        self.is_used.then_some(PartField { name: self.name, dictionary, rounded })
    }

    fn rows(&self) -> usize {
        self.values.rows()
    }

    /// Fills missing rows with NULL up to `row`, or removes the row if it is set twice.
    #[cold]
    fn make_room(&mut self, row: usize) {
        if self.rows() > row && self.rounded_row == row {
            self.rounded -= 1;
            self.rounded_row = usize::MAX;
        }
        self.truncate(row);
        if self.rows() < row {
            self.filled = (row, self.rows());
        }
        while self.rows() < row {
            self.nulls.push(self.rows() as u32);
            self.values.push_zero();
        }
    }

    fn valid(&self, rows: usize) -> Vec<u64> {
        if self.nulls.is_empty() {
            return Vec::new();
        }
        let mut valid = vec![!0u64; rows.div_ceil(64)];
        if let Some(last) = valid.last_mut().filter(|_| !rows.is_multiple_of(64)) {
            *last = (1 << (rows % 64)) - 1;
        }
        for &row in &self.nulls {
            valid[row as usize / 64] &= !(1 << (row % 64));
        }
        valid
    }

    fn take_data(&mut self, rows: usize) -> RawData {
        if self.nulls.len() == rows {
            // The type comes from an earlier segment: this one has only NULL.
            self.values.clear();
            return RawData::Null(rows);
        }
        match &mut self.values {
            Values::Null(rows) => RawData::Null(std::mem::take(rows)),
            Values::Boolean(values) => {
                let mut bits = vec![0u64; rows.div_ceil(64)];
                for (row, &value) in values.iter().enumerate() {
                    bits[row / 64] |= u64::from(value) << (row % 64);
                }
                values.clear();
                RawData::Boolean { bits, rows }
            }
            Values::Integer(values) => RawData::Integer(std::mem::take(values)),
            Values::Decimal(scale, values) => {
                RawData::Decimal { scale: *scale, mantissas: std::mem::take(values) }
            }
            Values::Wide(scale, values) => {
                RawData::Wide { scale: *scale, mantissas: std::mem::take(values) }
            }
            Values::Float(values) => RawData::Float(std::mem::take(values)),
            Values::Date(values) => RawData::Date(std::mem::take(values)),
            Values::Timestamp(values) => RawData::Timestamp(std::mem::take(values)),
            Values::Text(strings) => strings.finish(&self.nulls),
        }
    }

    /// Takes back the memory of a segment's data for the next one.
    fn reuse(&mut self, data: RawData) {
        match (&mut self.values, data) {
            (Values::Integer(to), RawData::Integer(from))
            | (Values::Timestamp(to), RawData::Timestamp(from))
            | (Values::Decimal(_, to), RawData::Decimal { mantissas: from, .. }) => *to = from,
            (Values::Wide(_, to), RawData::Wide { mantissas: from, .. }) => *to = from,
            (Values::Float(to), RawData::Float(from)) => *to = from,
            (Values::Date(to), RawData::Date(from)) => *to = from,
            (Values::Text(strings), data) => strings.reuse(data),
            _ => {}
        }
        self.values.clear();
    }
}
