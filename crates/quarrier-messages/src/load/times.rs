//! Strings that are dates or timestamps: a column gets that type only if all of its strings are.
//!
//! A worker treats such strings as times until another string comes. Only when all workers are done
//! is it known whether one of them met another string; then the strings of earlier segments are
//! restored.

use std::collections::{HashMap, HashSet};

use crate::build::{Cell, FieldId, Row, RowBuilder, Shapes, shape_of};
use crate::column::SegmentColumn;
use crate::{Kind, PartSegment, Value};

/// The shapes of the times of a worker's segments.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// By segment and field; without fields that had no strings.
    shapes: HashMap<(usize, usize), Shapes>,
}

/// A worker's fields with times, by name.
#[derive(Debug, Default)]
pub(super) struct TimeFields<'b> {
    /// Fields with strings that are times.
    pub(super) timed: HashSet<&'b str>,
    /// Fields with values that are not times.
    pub(super) others: HashSet<&'b str>,
}

impl<'b> TimeFields<'b> {
    pub(super) fn new(rows: &'b RowBuilder, segments: &[PartSegment], times: &Times) -> Self {
        let names: Vec<&str> = rows.names().collect();
        let timed = times.shapes.keys().map(|&(_, field)| names[field]).collect();
        let others = names.into_iter().collect();
        TimeFields { timed, others: Self::untimed(others, rows, segments) }
    }

    fn untimed(
        mut names: HashSet<&'b str>,
        rows: &'b RowBuilder,
        segments: &[PartSegment],
    ) -> HashSet<&'b str> {
        for (index, name) in rows.names().enumerate() {
            let is_time = |segment: &PartSegment| match segment.columns.get(index) {
                Some(Some(column)) => {
                    matches!(column.kind(), Kind::Null | Kind::Date | Kind::Timestamp)
                }
                _ => true,
            };
            if !rows.is_text(FieldId::new(index)) && segments.iter().all(is_time) {
                names.remove(name);
            }
        }
        names
    }
}

impl Times {
    /// Stores the shapes of the times of the segment that is about to be packed.
    pub(super) fn keep(&mut self, segment: usize, rows: &mut RowBuilder) {
        for field in 0..rows.fields() {
            let shapes = rows.take_shapes(FieldId::new(field));
            if !shapes.is_empty() {
                self.shapes.insert((segment, field), shapes);
            }
        }
    }

    /// Restores the strings of the named fields, into the dictionaries of `rows`.
    pub(super) fn write_again(
        self,
        names: &HashSet<Box<str>>,
        rows: &mut RowBuilder,
        segments: &mut [PartSegment],
    ) {
        let wanted: Vec<bool> = rows.names().map(|name| names.contains(name)).collect();
        for ((segment, field), shapes) in self.shapes {
            if wanted[field]
                && let Some(Some(column)) = segments[segment].columns.get_mut(field)
            {
                *column = written(column, FieldId::new(field), &shapes, rows);
            }
        }
    }
}

fn written(
    column: &SegmentColumn,
    field: FieldId,
    shapes: &Shapes,
    rows: &mut RowBuilder,
) -> SegmentColumn {
    rows.make_text(field);
    let mut text = String::new();
    for row in 0..column.rows() {
        text.clear();
        let cell = match column.value(row, None) {
            Value::Date(days) => Cell::Date(days),
            Value::Timestamp(nanoseconds) => Cell::Timestamp(nanoseconds),
            _ => Cell::Null,
        };
        if cell == Cell::Null {
            rows.null(field);
        } else {
            shape_of(shapes, row).write(cell, &mut text);
            rows.text(field, &text);
        }
        rows.commit();
    }
    let mut packed = column.clone();
    rows.finish_segment(|_, raw| packed = SegmentColumn::pack(raw));
    packed
}
