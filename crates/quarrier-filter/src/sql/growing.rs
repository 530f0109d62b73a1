//! Lists in conditions on messages that are still to come, whose elements are not all known.
//!
//! A condition compares columns for the elements known so far and some in reserve, and a column for
//! the list's length: see [`Sieve::with_lists`](crate::Sieve::with_lists). When a message has an
//! element beyond them, [`Lists::grow`] adds columns, and the condition is bound again.

use std::collections::BTreeMap;

use quarrier_messages::{Field, Kind, Schema};

use super::lists::ALL;

/// Lists that conditions name, and the columns of a schema for their elements.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    lists: Vec<List>,
    has_reserve: bool,
}

/// A list that a condition names.
#[derive(Debug, Clone)]
pub(crate) struct List {
    /// As written: `leg[*].qty`.
    path: Box<str>,
    /// The columns' names before the index, and after it.
    head: Box<str>,
    field: Box<str>,
    /// Whether the case of names matters, because some column has exactly these names.
    is_exact: bool,
    /// The column of the list's length.
    pub(crate) length: usize,
    /// The column that stands for the list, if no message had it.
    pub(crate) unknown: Option<usize>,
    /// The columns of the elements, by index.
    pub(crate) values: BTreeMap<u64, usize>,
    /// The type of columns in reserve.
    kind: Kind,
}

/// Maximum number of elements that are compared. Messages have fewer: each element is a column.
const ELEMENTS_MAX: u64 = 1 << 15;

/// Minimum number of elements, with those in reserve.
const ELEMENTS_MIN: u64 = 4;

impl Lists {
    /// Makes an empty set of lists. With `has_reserve`, elements get columns before a message has them.
    pub fn new(has_reserve: bool) -> Self {
        Lists { lists: Vec::new(), has_reserve }
    }

    /// Whether no list was added.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &List> {
        self.lists.iter()
    }

    pub(super) fn get(&self, path: &str) -> Option<&List> {
        self.lists.iter().find(|list| *list.path == *path)
    }

    /// Adds the list of a path such as `leg[*].qty`, and columns for it. Returns whether a column
    /// of the schema is an element of it. If none is, a column of the path's name stands for them.
    pub fn add(&mut self, path: &str, schema: &mut Schema) -> bool {
        let (head, field) = path.split_once(ALL).unwrap_or((path, ""));
        let mut list = List {
            path: path.into(),
            head: head.into(),
            field: field.into(),
            is_exact: true,
            length: 0,
            unknown: None,
            values: BTreeMap::new(),
            kind: Kind::Null,
        };
        list.find_values(schema);
        if list.values.is_empty() {
            list.is_exact = false;
            list.find_values(schema);
        }
        // Values of other types would be rounded, or written as strings, to fit.
        let is_of = |kind: Kind, column: &usize| schema.fields[*column].kind == kind;
        let mut columns = list.values.values();
        if columns.any(|column| is_of(Kind::Integer, column))
            && list.values.values().all(|at| is_of(Kind::Integer, at) || is_of(Kind::Null, at))
        {
            list.kind = Kind::Integer;
        }
        let is_known = !list.values.is_empty();
        list.length = push(schema, format!("{path}\0"), Kind::Integer);
        if !is_known {
            list.unknown = Some(push(schema, path.to_string(), Kind::Null));
        }
        self.lists.push(list);
        if let (true, Some(last)) = (self.has_reserve && is_known, self.lists.last()) {
            let known = last.values.keys().filter(|&&index| index < ELEMENTS_MAX).max();
            let most = known.map_or(0, |most| (most + 1).max(ELEMENTS_MIN - 1));
            self.grow(self.lists.len() - 1, most, schema);
        }
        is_known
    }

    /// Whether an element has a column, or never gets one.
    pub fn has(&self, list: usize, index: u64) -> bool {
        !self.lists.get(list).is_some_and(|list| list.is_beyond(index))
    }

    /// Adds columns for an element of the list with this number, and for some after it.
    pub fn grow(&mut self, list: usize, index: u64, schema: &mut Schema) {
        if self.has(list, index) {
            return;
        }
        let end = (index + 1).next_power_of_two().clamp(ELEMENTS_MIN, ELEMENTS_MAX);
        let number = list;
        let list = &mut self.lists[list];
        for index in 0..end {
            let (head, field, kind) = (&list.head, &list.field, list.kind);
            // No field and no condition can have such a name.
            let name = || format!("{head}[{index}]{field}\0{number}");
            list.values.entry(index).or_insert_with(|| push(schema, name(), kind));
        }
    }
}

impl List {
    fn find_values(&mut self, schema: &Schema) {
        let mut found = BTreeMap::new();
        for (column, field) in schema.fields.iter().enumerate() {
            if let Some((index, true)) = self.element_of(&field.name) {
                found.entry(index).or_insert(column);
            }
        }
        self.values = found;
    }

    /// The index of the element that a field belongs to, and whether the list's path names the field.
    pub(crate) fn element_of(&self, name: &str) -> Option<(u64, bool)> {
        let is_same = |one: &str, other: &str| match self.is_exact {
            true => one == other,
            false => one.eq_ignore_ascii_case(other),
        };
        let (head, rest) = name.split_at_checked(self.head.len())?;
        let (index, rest) = rest.strip_prefix('[')?.split_once(']')?;
        let index = index.parse().ok().filter(|_| is_same(head, &self.head))?;
        Some((index, is_same(rest, &self.field)))
    }

    /// Whether an element has no column, and may get one.
    pub(crate) fn is_beyond(&self, index: u64) -> bool {
        index < ELEMENTS_MAX && !self.values.contains_key(&index)
    }

    /// Whether a path is that of the list without its elements.
    pub(crate) fn is_of(&self, list: &str) -> bool {
        match self.is_exact {
            true => *self.head == *list,
            false => self.head.eq_ignore_ascii_case(list),
        }
    }
}

fn push(schema: &mut Schema, name: String, kind: Kind) -> usize {
    schema.fields.push(Field { name: name.into(), kind });
    schema.fields.len() - 1
}
