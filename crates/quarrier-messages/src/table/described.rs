//! What is known of a table without its rows, so that processes that load parts of a source agree on its
//! columns.

use std::collections::HashMap;

use arrow_schema::SchemaRef;

use super::arrow::views_schema;
use super::assemble::convert::{bounds_in, kind_of_both, rounded};
use super::precision_of;
use crate::{Column, Field, HiddenColumns, Kind, Schema, Table};

/// The columns of a table, and its number of rows. Descriptions of consecutive parts of a source, joined in
/// order, are that of the source.
///
/// ```
/// use quarrier_core::source::Memory;
/// use quarrier_messages::{Format, Kind, Load};
///
/// let log = Memory::new("log", "{\"qty\":7}\n{\"qty\":8.5}\n");
/// let part = |range| Load::new(Format::Json).range(range).run(&[&log]);
/// let mut all = part(0..10)?.table.description();
/// let rest = part(10..22)?.table.description();
/// assert_eq!(all.columns[0].kind, Kind::Integer);
/// all.join(&rest);
/// assert_eq!(all.columns[0].kind, Kind::Decimal { scale: 1 });
/// assert_eq!(all.rows, 2);
/// # Ok::<(), quarrier_messages::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// The columns, in the order in which they first occur.
    pub columns: Vec<ColumnDescription>,
    /// The number of rows.
    pub rows: u64,
}

/// What is known of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDescription {
    /// The name.
    pub name: Box<str>,
    /// The narrowest type that holds all values.
    pub kind: Kind,
    /// The least and the greatest mantissa, day or nanosecond of a column of exact numbers or times that has
    /// values.
    pub bounds: Option<(i128, i128)>,
    /// The number of values that lost digits: see [`Column::rounded`].
    pub rounded: u64,
    /// That number if the column must become one of floats.
    pub rounded_as_floats: u64,
}

impl Table {
    /// Describes the table. Exact numbers of more than 15 digits take some time.
    pub fn description(&self) -> Description {
        let columns = self.schema.fields.iter().zip(&self.columns);
        let columns = columns.map(|(field, column)| ColumnDescription::of(field, column)).collect();
        Description { columns, rows: self.rows() }
    }
}

impl Description {
    /// Adds the description of the part that follows.
    pub fn join(&mut self, next: &Description) {
        self.rows += next.rows;
        let names = self.columns.iter().enumerate();
        let places: HashMap<Box<str>, usize> =
            names.map(|(at, column)| (column.name.clone(), at)).collect();
        for column in &next.columns {
            match places.get(&column.name).and_then(|&at| self.columns.get_mut(at)) {
                Some(known) => known.join(column),
                None => self.columns.push(column.clone()),
            }
        }
    }

    /// Returns the names and types of the columns, hidden ones last, and their types in Arrow as
    /// [`Views`](crate::Views) have them.
    pub fn schemas(&self, hidden: HiddenColumns) -> (Schema, SchemaRef) {
        let (last, first): (Vec<_>, Vec<_>) =
            self.columns.iter().partition(|column| hidden.has(&column.name));
        let columns: Vec<&ColumnDescription> = first.into_iter().chain(last).collect();
        let field =
            |column: &&ColumnDescription| Field { name: column.name.clone(), kind: column.kind };
        let schema = Schema { fields: columns.iter().map(field).collect() };
        let precision = |at: usize, scale: u8| precision_of(scale, columns[at].bounds.into_iter());
        let arrow = views_schema(&schema, precision);
        (schema, arrow)
    }
}

impl ColumnDescription {
    fn of(field: &Field, column: &Column) -> Self {
        let zones = column.segments.iter().map(|segment| segment.zone());
        let zones = zones.filter(|zone| !zone.is_without_values());
        let bounds = zones.map(|zone| (zone.min, zone.max)).reduce(both);
        let lost = column.segments.iter().map(|segment| rounded(segment, Kind::Float));
        ColumnDescription {
            name: field.name.clone(),
            kind: field.kind,
            bounds: bounds.filter(|_| is_ordered(field.kind)),
            rounded: column.rounded,
            rounded_as_floats: column.rounded + lost.sum::<u64>(),
        }
    }

    fn join(&mut self, next: &ColumnDescription) {
        let kind = kind_of_both((self.kind, self.bounds), (next.kind, next.bounds));
        let bounds = [(self.bounds, self.kind), (next.bounds, next.kind)];
        let bounds = bounds.map(|(bounds, from)| bounds_in(bounds, from, kind));
        self.bounds = match bounds {
            [Some(one), Some(other)] => Some(both(one, other)),
            [one, other] => one.or(other),
        };
        self.kind = kind;
        self.rounded_as_floats += next.rounded_as_floats;
        self.rounded = match kind {
            Kind::Float => self.rounded_as_floats,
            _ => self.rounded + next.rounded,
        };
    }
}

fn both(one: (i128, i128), other: (i128, i128)) -> (i128, i128) {
    (one.0.min(other.0), one.1.max(other.1))
}

fn is_ordered(kind: Kind) -> bool {
    matches!(kind, Kind::Integer | Kind::Decimal { .. } | Kind::Date | Kind::Timestamp)
}
