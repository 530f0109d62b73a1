//! The values of one message.

use std::collections::HashMap;

use quarrier_messages::build::{Cell, FieldId, Row};

/// Maximum number of fields that are remembered by name.
const FIELDS_MAX: usize = 4_096;

/// A requested column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    /// Whether this is the exact name of a field; if not, a field whose name differs only in ASCII case
    /// also matches.
    pub(super) is_known: bool,
}

/// The values of a message, by field. Reused from one message to the next, with its fields.
#[derive(Debug)]
pub(super) struct Record {
    /// Whether only the initial fields are requested.
    is_closed: bool,
    /// The fields that match by name, ignoring case.
    open: Vec<usize>,
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// The fields that have occurred in any message.
    seen: Vec<bool>,
    left_out: Vec<String>,
    cells: Vec<Option<Held>>,
    /// The fields of the current message, in its order.
    set: Vec<usize>,
    text: String,
}

#[derive(Debug, Clone, Copy)]
enum Held {
    Cell(Cell<'static>),
    /// The start and end in `text`.
    Text(usize, usize),
}

/// The number of omitted fields whose names are listed.
const LEFT_OUT_MAX: usize = 8;

impl Record {
    /// Creates a record of only these columns, or of all fields.
    pub(super) fn new(columns: Option<&[Wanted]>) -> Self {
        let wanted = columns.unwrap_or_default();
        let names: Vec<String> = wanted.iter().map(|wanted| wanted.name.clone()).collect();
        let mut places = HashMap::new();
        for (place, name) in names.iter().enumerate() {
            places.entry(name.clone()).or_insert(place);
        }
        Record {
            is_closed: columns.is_some(),
            open: (0..names.len()).filter(|&place| !wanted[place].is_known).collect(),
            seen: vec![false; names.len()],
            cells: vec![None; names.len()],
            names,
            places,
            left_out: Vec::new(),
            set: Vec::new(),
            text: String::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        for place in self.set.drain(..) {
            self.cells[place] = None;
        }
        self.text.clear();
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The fields of the current message, in its order.
    pub(super) fn set(&self) -> &[usize] {
        &self.set
    }

    pub(super) fn cell(&self, place: usize) -> Cell<'_> {
        match self.cells[place] {
            None => Cell::Null,
            Some(Held::Cell(cell)) => cell,
            Some(Held::Text(from, to)) => Cell::Text(&self.text[from..to]),
        }
    }

    /// Whether an initial field has occurred.
    pub(super) fn has_seen(&self, name: &str) -> bool {
        self.names.iter().zip(&self.seen).any(|(known, seen)| known == name && *seen)
    }

    /// Names of fields that occurred but were not requested.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn put(&mut self, field: FieldId, held: Held) {
        let place = field.index();
        if self.cells[place].is_none() {
            self.set.push(place);
        }
        self.cells[place] = Some(held);
    }
}

impl Row for Record {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        if let Some(&place) = self.places.get(name) {
            self.seen[place] = true;
            return Some(FieldId::new(place));
        }
        if self.is_closed {
            let alike = |place: &usize| self.names[*place].eq_ignore_ascii_case(name);
            let alike = self.open.iter().copied().find(alike);
            if alike.is_none() && self.left_out.len() < LEFT_OUT_MAX {
                self.left_out.push(name.to_string());
            }
            if let Some(place) = alike {
                self.seen[place] = true;
            }
            return alike.map(FieldId::new);
        }
        if self.names.len() >= FIELDS_MAX {
            return None;
        }
        let place = self.names.len();
        self.names.push(name.to_string());
        self.cells.push(None);
        self.seen.push(true);
        self.places.insert(name.to_string(), place);
        Some(FieldId::new(place))
    }

    fn boolean(&mut self, field: FieldId, value: bool) {
        self.put(field, Held::Cell(Cell::Boolean(value)));
    }

    fn integer(&mut self, field: FieldId, value: i64) {
        self.put(field, Held::Cell(Cell::Integer(value)));
    }

    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.put(field, Held::Cell(Cell::Decimal { mantissa, scale }));
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        self.put(field, Held::Cell(number));
    }

    fn float(&mut self, field: FieldId, value: f64) {
        self.put(field, Held::Cell(Cell::Float(value)));
    }

    fn date(&mut self, field: FieldId, days: i32) {
        self.put(field, Held::Cell(Cell::Date(days)));
    }

    fn timestamp(&mut self, field: FieldId, nanoseconds: i64) {
        self.put(field, Held::Cell(Cell::Timestamp(nanoseconds)));
    }

    fn text(&mut self, field: FieldId, value: &str) {
        let from = self.text.len();
        self.text.push_str(value);
        self.put(field, Held::Text(from, self.text.len()));
    }

    fn null(&mut self, field: FieldId) {
        self.put(field, Held::Cell(Cell::Null));
    }
}
