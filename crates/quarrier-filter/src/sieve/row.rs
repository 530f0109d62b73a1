//! Takes values from the parser.

use quarrier_core::civil::midnight;
use quarrier_messages::build::{Cell, FieldId, Row};
use quarrier_messages::column::float_key;
use quarrier_messages::{Kind, Table, Value};

use super::{HeldValue, Sieve};

impl Row for Sieve {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        if !self.lists.is_empty() {
            return self.field_in_lists(name);
        }
        let found = self.column_named(name)?;
        self.columns[found].is_seen = true;
        Some(FieldId::new(found))
    }

    #[inline]
    fn takes_list_ends(&self) -> bool {
        !self.lists.is_empty()
    }

    fn list_end(&mut self, list: &str, length: usize) {
        self.note_list_end(list, length);
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.any(field, Cell::Boolean(value));
    }

    #[inline(always)]
    fn integer(&mut self, field: FieldId, value: i64) {
        let column = &self.columns[field.index()];
        if matches!(column.kind, Kind::Integer | Kind::Decimal { .. }) && !column.is_held {
            if column.is_element {
                self.note_element(field, Cell::Integer(value));
            }
            return self.exact(field, value, 0);
        }
        self.any(field, Cell::Integer(value));
    }

    #[inline(always)]
    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        let column = &self.columns[field.index()];
        if matches!(column.kind, Kind::Integer | Kind::Decimal { .. }) && !column.is_held {
            if column.is_element {
                self.note_element(field, Cell::Decimal { mantissa, scale });
            }
            return self.exact(field, mantissa, scale);
        }
        self.any(field, Cell::Decimal { mantissa, scale });
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.any(field, number);
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.any(field, Cell::Float(value));
    }

    fn date(&mut self, field: FieldId, days: i32) {
        self.any(field, Cell::Date(days));
    }

    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        self.any(field, Cell::Timestamp(nanoseconds));
    }

    #[inline(always)]
    fn text(&mut self, field: FieldId, value: &str) {
        if self.columns[field.index()].is_element {
            return self.any(field, Cell::Text(value));
        }
        let column = &self.columns[field.index()];
        if column.kind == Kind::Text && !column.is_held {
            for (test, asked) in &column.strings {
                self.truths[*test as usize] = u8::from(asked.holds(value));
            }
            if column.is_indexed {
                self.held[field.index()] = self.held(Cell::Text(value));
            }
            return;
        }
        self.any(field, Cell::Text(value));
    }

    #[inline(always)]
    fn text_ahead(&mut self, field: FieldId, value: &str, _ahead: &[u8; 32]) {
        self.text(field, value);
    }

    #[inline]
    fn null(&mut self, field: FieldId) {
        self.clear_column(field);
        for place in 0..self.columns[field.index()].also.len() {
            self.clear_column(FieldId::new(self.columns[field.index()].also[place]));
        }
    }
}

impl Sieve {
    /// Takes a row of a table with the sieve's schema, in place of the current row. Such a row fits.
    ///
    /// # Panics
    /// If the table has no such row, or fewer columns than the schema.
    pub fn take_row(&mut self, table: &Table, row: u64) {
        self.clear();
        let (segment, row) = table.locate(row);
        for at in 0..self.columns.len() {
            let field = FieldId::new(at);
            let column = &table.columns()[self.columns[at].place];
            let cell = match column.value(segment, row) {
                Value::Boolean(truth) => Cell::Boolean(truth),
                Value::Integer(number) => {
                    Row::integer(self, field, number);
                    continue;
                }
                Value::Decimal { mantissa, scale } => Cell::exact(mantissa, scale),
                Value::Float(number) => Cell::Float(number),
                Value::Date(day) => Cell::Date(day),
                Value::Timestamp(nanoseconds) => Cell::Timestamp(nanoseconds),
                Value::Text(text) => {
                    Row::text(self, field, text);
                    continue;
                }
                // No column has intervals or times of day.
                Value::Null | Value::Time(_) | Value::Interval { .. } => continue,
            };
            match cell {
                Cell::Decimal { mantissa, scale } => Row::decimal(self, field, mantissa, scale),
                other => self.any(field, other),
            }
        }
    }

    #[inline]
    fn clear_column(&mut self, field: FieldId) {
        let column = &self.columns[field.index()];
        let tests = column.numbers.iter().map(|(test, _)| test);
        for test in tests.chain(column.strings.iter().map(|(test, _)| test)) {
            self.truths[*test as usize] = self.absent[*test as usize];
        }
        self.held[field.index()] = HeldValue::Null;
        let place = column.place;
        self.misfits.retain(|(misfit, _)| *misfit != place);
    }

    /// The column for a field of this name.
    pub(super) fn column_named(&self, name: &str) -> Option<usize> {
        let alike = || {
            self.columns
                .iter()
                .position(|column| column.is_open && column.name.eq_ignore_ascii_case(name))
        };
        self.names.get(name).copied().or_else(alike)
    }

    #[inline(always)]
    fn exact(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        let column = &self.columns[field.index()];
        for (test, asked) in &column.numbers {
            self.truths[*test as usize] = u8::from(asked.holds(mantissa, scale.into()));
        }
        if column.is_indexed {
            self.held[field.index()] = HeldValue::Exact(mantissa.into(), scale);
        }
    }

    /// A value of any type.
    #[inline(never)]
    pub(super) fn any(&mut self, field: FieldId, cell: Cell<'_>) {
        if self.columns[field.index()].is_element && self.note_element(field, cell) {
            return;
        }
        self.clear_column(field);
        let column = &self.columns[field.index()];
        let mut written = String::new();
        let Some(cell) = fitted(column.kind, column.is_held, cell, &mut written) else {
            let kind = column.kind.widened(kind_of(cell));
            self.misfits.push((column.place, kind));
            return;
        };
        if let (Cell::Wide { .. }, Some((mantissa, scale))) = (cell, cell.as_exact()) {
            for (test, asked) in &column.numbers {
                self.truths[*test as usize] = u8::from(asked.holds_wide(mantissa, scale));
            }
        } else if let Some((key, scale)) = key(cell) {
            for (test, asked) in &column.numbers {
                self.truths[*test as usize] = u8::from(asked.holds(key, scale.into()));
            }
        }
        if let Cell::Text(text) = cell {
            for (test, asked) in &column.strings {
                self.truths[*test as usize] = u8::from(asked.holds(text));
            }
        }
        if column.is_held || column.is_indexed {
            self.held[field.index()] = self.held(cell);
        }
    }

    fn held(&mut self, cell: Cell<'_>) -> HeldValue {
        match cell {
            Cell::Null => HeldValue::Null,
            Cell::Boolean(truth) => HeldValue::Boolean(truth),
            Cell::Integer(number) => HeldValue::Integer(number),
            Cell::Decimal { mantissa, scale } => HeldValue::Exact(mantissa.into(), scale),
            Cell::Wide { mantissa, scale } => HeldValue::Exact(mantissa.into(), scale),
            Cell::Float(number) | Cell::Rounded(number) => HeldValue::Float(number),
            Cell::Date(day) => HeldValue::Date(day),
            Cell::Timestamp(nanoseconds) => HeldValue::Timestamp(nanoseconds),
            Cell::Text(text) => {
                let from = self.held_text.len();
                self.held_text.push_str(text);
                HeldValue::Text(from, self.held_text.len())
            }
        }
    }
}

/// Converts the value to the type, or to a narrower one with the same meaning; `None` if that is
/// impossible. Values that are only compared with constants stay exact, even with more decimals
/// than their column.
fn fitted<'c>(
    kind: Kind,
    is_held: bool,
    cell: Cell<'c>,
    written: &'c mut String,
) -> Option<Cell<'c>> {
    match (kind, cell) {
        (Kind::Boolean, Cell::Boolean(_))
        | (Kind::Integer, Cell::Integer(_))
        | (Kind::Decimal { .. }, Cell::Integer(_))
        | (Kind::Float, Cell::Float(_))
        | (Kind::Date, Cell::Date(_))
        | (Kind::Timestamp, Cell::Timestamp(_))
        | (Kind::Text, Cell::Text(_)) => Some(cell),
        (Kind::Integer, Cell::Decimal { .. } | Cell::Wide { .. }) => {
            Some(cell).filter(|_| !is_held)
        }
        (Kind::Decimal { scale: most }, Cell::Decimal { scale, .. } | Cell::Wide { scale, .. }) => {
            Some(cell).filter(|_| !is_held || scale <= most)
        }
        (
            Kind::Float,
            Cell::Integer(_) | Cell::Decimal { .. } | Cell::Wide { .. } | Cell::Rounded(_),
        ) => Some(Cell::Float(cell.as_float())),
        (Kind::Timestamp, Cell::Date(day)) => midnight(day).map(Cell::Timestamp),
        (Kind::Date | Kind::Timestamp, Cell::Text(text)) => {
            fitted(kind, is_held, Cell::of_time(text)?, written)
        }
        (Kind::Text, _) => {
            cell.write(written);
            Some(Cell::Text(written))
        }
        _ => None,
    }
}

/// Returns the type that holds the value, if all others of its column are like it.
fn kind_of(cell: Cell<'_>) -> Kind {
    match cell {
        Cell::Text(text) => Cell::of_time(text).unwrap_or(cell).kind(),
        other => other.kind(),
    }
}

/// Returns the key that sets contain, and its scale.
fn key(cell: Cell<'_>) -> Option<(i64, u8)> {
    Some(match cell {
        Cell::Boolean(truth) => (truth.into(), 0),
        Cell::Integer(number) => (number, 0),
        Cell::Decimal { mantissa, scale } => (mantissa, scale),
        Cell::Float(number) | Cell::Rounded(number) => (float_key(number), 0),
        Cell::Date(day) => (day.into(), 0),
        Cell::Timestamp(nanoseconds) => (nanoseconds, 0),
        Cell::Null | Cell::Text(_) | Cell::Wide { .. } => return None,
    })
}
