//! The elements of a row's lists, even those without a column in the schema.
//!
//! ```text
//!  leg[7].qty ─→ length of leg: at least 8
//!             └→ the column of the element, if it has one; else it is beyond the columns
//! ```

use quarrier_messages::Kind;
use quarrier_messages::build::{Cell, FieldId};

use super::{Column, HeldValue, Sieve};
use crate::sql::{List, Lists};

/// A list, and its state in the current row.
#[derive(Debug, Clone)]
pub(super) struct RowList {
    list: List,
    /// Its index among the lists that conditions name.
    number: usize,
    /// The column of its length.
    length_at: usize,
    length: u64,
    /// Whether a row had a field that the path names.
    is_seen: bool,
}

/// An element of a list, as a property of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Membership {
    /// Which of the sieve's lists.
    list: usize,
    index: u64,
    /// Whether conditions compare its value, but it has no column.
    is_beyond: bool,
}

/// The place of columns that the schema lacks.
const NO_PLACE: usize = usize::MAX;

impl Sieve {
    pub(super) fn add_lists(&mut self, lists: &Lists) {
        for (number, list) in lists.iter().enumerate() {
            // No condition depends on the list.
            let Some(length_at) = self.places[list.length] else { continue };
            for &column in list.values.values() {
                if let Some(at) = self.places[column] {
                    // The list decides which fields are its elements.
                    self.columns[at].is_open = false;
                }
            }
            self.names.remove(&self.columns[length_at].name);
            let list = list.clone();
            self.lists.push(RowList { list, number, length_at, length: 0, is_seen: false });
        }
    }

    /// Returns the field of this name, if the sieve has lists.
    pub(super) fn field_in_lists(&mut self, name: &str) -> Option<FieldId> {
        let mut found = self.column_named(name);
        if let Some(at) = found.filter(|&at| self.columns[at].is_placed) {
            return Some(FieldId::new(at));
        }
        let (mut elements, mut also) = (Vec::new(), Vec::new());
        for (at, row) in self.lists.iter_mut().enumerate() {
            let Some((index, is_value)) = row.list.element_of(name) else { continue };
            row.is_seen |= is_value;
            let column = row.list.values.get(&index).and_then(|&column| self.places[column]);
            match column.filter(|_| is_value) {
                Some(column) if found.is_none() => found = Some(column),
                Some(column) if found != Some(column) => also.push(column),
                _ => {}
            }
            let is_beyond = is_value && row.list.is_beyond(index);
            elements.push(Membership { list: at, index, is_beyond });
        }
        if found.is_none() && elements.is_empty() {
            return None;
        }
        let at = found.unwrap_or_else(|| self.add_column(name));
        let column = &mut self.columns[at];
        column.is_element |= !elements.is_empty();
        (column.elements, column.also) = (elements, also);
        column.is_placed = true;
        column.is_seen = true;
        self.names.insert(name.into(), at);
        Some(FieldId::new(at))
    }

    /// Adds a column without tests, for an element's other fields.
    fn add_column(&mut self, name: &str) -> usize {
        self.columns.push(Column::new(name.into(), NO_PLACE, Kind::Null));
        self.held.push(HeldValue::Null);
        self.columns.len() - 1
    }

    /// Records a value of an element. Returns whether the column has no other use.
    pub(super) fn note_element(&mut self, field: FieldId, cell: Cell<'_>) -> bool {
        let at = field.index();
        for place in 0..self.columns[at].elements.len() {
            let Membership { list, index, is_beyond } = self.columns[at].elements[place];
            let row = &mut self.lists[list];
            row.length = row.length.max(index.saturating_add(1));
            if is_beyond {
                self.beyond.push((row.number, index));
            }
        }
        for place in 0..self.columns[at].also.len() {
            self.any(FieldId::new(self.columns[at].also[place]), cell);
        }
        self.columns[at].place == NO_PLACE
    }

    /// Records that a list ends with an element without a value.
    pub(super) fn note_list_end(&mut self, list: &str, length: usize) {
        for row in self.lists.iter_mut().filter(|row| row.list.is_of(list)) {
            row.length = row.length.max(length as u64);
        }
    }

    /// Completes the row after all its fields were set: sets the lengths of its lists, which
    /// conditions may compare.
    #[inline]
    pub fn complete(&mut self) {
        for list in 0..self.lists.len() {
            self.set_length(list);
        }
    }

    fn set_length(&mut self, list: usize) {
        let RowList { length_at, length, .. } = self.lists[list];
        if length == 0 {
            return;
        }
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let column = &self.columns[length_at];
        for (test, asked) in &column.numbers {
            self.truths[*test as usize] = u8::from(asked.holds(length, 0));
        }
        self.held[length_at] = HeldValue::Integer(length);
    }

    pub(super) fn clear_lists(&mut self) {
        for list in &mut self.lists {
            list.length = 0;
        }
        self.beyond.clear();
    }

    /// Whether a row had a field of the list that this column stands for.
    pub(super) fn has_seen_list(&self, column: usize) -> bool {
        self.lists.iter().any(|row| row.list.unknown == Some(column) && row.is_seen)
    }

    /// Adds the columns and lists that another sieve, for a shorter schema, has seen.
    pub fn inherit_seen(&mut self, other: &Sieve) {
        for (column, at) in other.places.iter().enumerate() {
            if let (Some(before), Some(now)) = (at, self.places.get(column).copied().flatten()) {
                self.columns[now].is_seen |= other.columns[*before].is_seen;
            }
        }
        for before in &other.lists {
            let mut rows = self.lists.iter_mut();
            if let Some(row) = rows.find(|row| row.number == before.number) {
                row.is_seen |= before.is_seen;
            }
        }
    }
}

impl Column {
    pub(super) fn new(name: Box<str>, place: usize, kind: Kind) -> Self {
        Column {
            name,
            is_open: false,
            place,
            kind,
            numbers: Vec::new(),
            strings: Vec::new(),
            is_held: false,
            is_element: false,
            elements: Vec::new(),
            also: Vec::new(),
            is_placed: false,
            is_indexed: false,
            is_seen: false,
        }
    }
}
