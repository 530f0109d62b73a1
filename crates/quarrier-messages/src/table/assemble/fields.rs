//! Matches the fields of all parts: by name, in the order of first appearance.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Dictionaries, Piece, Pieces};
use crate::column::Strings;
use crate::part::{Part, PartSegment};
use crate::table::Table;
use crate::{Kind, Schema};

/// The parts of one column.
pub(super) struct ColumnParts<'p> {
    pub(super) name: Box<str>,
    /// The narrowest possible type.
    pub(super) kind: Kind,
    /// A dictionary for each part that has the column.
    pub(super) dictionaries: Dictionaries<'p>,
    /// A piece for each segment.
    pub(super) pieces: Vec<Piece>,
    /// Number of values that have already lost digits.
    pub(super) rounded: u64,
}

impl<'p> ColumnParts<'p> {
    fn new(name: &str, kind: Kind, segments: usize) -> Self {
        let pieces = (0..segments).map(|_| None).collect();
        ColumnParts { name: name.into(), kind, dictionaries: Vec::new(), pieces, rounded: 0 }
    }

    fn add_dictionary(&mut self, strings: &'p Strings) -> usize {
        self.dictionaries.push(strings);
        self.dictionaries.len() - 1
    }
}

/// A part's field in the table: the column, and the index of its dictionary there.
type Target = Option<(usize, usize)>;

impl<'p> Pieces<'p> {
    /// Returns the columns of parts, whose segments are in `taken`.
    pub(super) fn of_parts(
        parts: &'p [Part],
        taken: &mut [Vec<PartSegment>],
        schema: Option<&Schema>,
    ) -> Pieces<'p> {
        let count = taken.iter().map(Vec::len).sum();
        let mut columns: Vec<ColumnParts<'p>> = match schema {
            Some(schema) => schema
                .fields
                .iter()
                .map(|field| ColumnParts::new(&field.name, field.kind, count))
                .collect(),
            None => names_in_order(parts, taken)
                .into_iter()
                .map(|name| ColumnParts::new(name, Kind::Null, count))
                .collect(),
        };
        let targets = targets(parts, &mut columns);
        let mut segments: Vec<(usize, PartSegment)> = Vec::with_capacity(count);
        for (part, taken) in taken.iter_mut().enumerate() {
            segments.extend(taken.drain(..).map(|segment| (part, segment)));
        }
        segments.sort_by_key(|(_, segment)| segment.place);
        let rows = segments.iter().map(|(_, segment)| segment.rows).collect();
        for (at, (part, segment)) in segments.into_iter().enumerate() {
            let fields = &targets[part];
            assert!(segment.columns.len() <= fields.len(), "a column without a field");
            for (packed, target) in segment.columns.into_iter().zip(fields) {
                if let (Some(packed), &Some((column, dictionary))) = (packed, target) {
                    assert_eq!(packed.rows(), segment.rows as usize, "rows of a segment differ");
                    columns[column].pieces[at] = Some((Arc::new(packed), dictionary));
                }
            }
        }
        Pieces { rows, columns }
    }

    /// Returns the columns of tables, concatenated.
    pub(super) fn of_tables(tables: &'p [Table]) -> Pieces<'p> {
        let count = tables.iter().map(Table::segments).sum();
        let mut rows = Vec::with_capacity(count);
        let mut columns: Vec<ColumnParts<'p>> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for table in tables {
            for (field, column) in table.schema().fields.iter().zip(table.columns()) {
                let place = *places.entry(&field.name).or_insert_with(|| {
                    columns.push(ColumnParts::new(&field.name, Kind::Null, count));
                    columns.len() - 1
                });
                let parts = &mut columns[place];
                parts.kind = parts.kind.widened(field.kind);
                parts.rounded += column.rounded();
                let number = match column.dictionary() {
                    Some(dictionary) => parts.add_dictionary(dictionary),
                    None => 0,
                };
                for (at, segment) in column.segments().iter().enumerate() {
                    parts.pieces[rows.len() + at] = Some((Arc::clone(segment), number));
                }
            }
            rows.extend((0..table.segments()).map(|at| table.segment_rows(at) as u32));
        }
        Pieces { rows, columns }
    }
}

/// Returns the names of all fields of any segment, in the order in which they occur in the source.
fn names_in_order<'p>(parts: &'p [Part], taken: &[Vec<PartSegment>]) -> Vec<&'p str> {
    let mut first: HashMap<&str, (u64, usize)> = HashMap::new();
    for (part, segments) in parts.iter().zip(taken) {
        for segment in segments {
            for (field, column) in segment.columns.iter().enumerate() {
                if column.is_some() {
                    let sight = (segment.place, field);
                    let seen = first.entry(&part.fields[field].name).or_insert(sight);
                    *seen = sight.min(*seen);
                }
            }
        }
    }
    let mut names: Vec<_> = first.into_iter().collect();
    names.sort_unstable_by_key(|&(_, sight)| sight);
    names.into_iter().map(|(name, _)| name).collect()
}

/// Returns the target of each field, by part.
fn targets<'p>(parts: &'p [Part], columns: &mut [ColumnParts<'p>]) -> Vec<Vec<Target>> {
    let places: HashMap<Box<str>, usize> =
        columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect();
    let mut target = |field: &'p crate::PartField| {
        let &column = places.get(&field.name)?;
        columns[column].rounded += field.rounded;
        Some((column, columns[column].add_dictionary(&field.dictionary)))
    };
    parts.iter().map(|part| part.fields.iter().map(&mut target).collect()).collect()
}
