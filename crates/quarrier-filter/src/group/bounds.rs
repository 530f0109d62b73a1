//! Bounds of columns from their zone maps: they prove that no sum overflows, so that rows need no
//! checks.

use std::sync::Arc;

use quarrier_messages::column::{Data, SegmentColumn};
use quarrier_messages::{Column, Kind, Table};

use super::Number;

/// Numbers and intermediate results stay this far from the limits of 64 bits.
const NUMBER_MAX: i128 = 1 << 62;

/// The possible values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Domain {
    /// The least value.
    pub(super) least: i64,
    /// Whether the first code stands for NULL.
    pub(super) has_null: bool,
    /// The number of codes.
    pub(super) size: usize,
}

impl Domain {
    /// Returns `None` if the values have no codes.
    pub(super) fn of(column: &Column) -> Option<Domain> {
        let is_coded = |segment: &Arc<SegmentColumn>| {
            matches!(segment.data(), Data::Whole(_) | Data::Codes(_) | Data::Null)
        };
        if !column.segments().iter().all(is_coded) {
            return None;
        }
        let zone = joined(column);
        let has_null = zone.nulls;
        let values = match zone.range {
            Some((min, max)) => usize::try_from(max.checked_sub(min)?).ok()?.checked_add(1)?,
            None => 0,
        };
        let least = zone.range.map_or(0, |(min, _)| min);
        let size = values.checked_add(usize::from(has_null))?.max(1);
        Some(Domain { least, has_null, size })
    }

    /// Returns the value of a code.
    pub(super) fn value(self, code: usize) -> Option<i64> {
        let number = code.checked_sub(usize::from(self.has_null))?;
        Some(self.least + number as i64)
    }
}

/// How to sum a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    /// As an integer within this range, which includes 0.
    Whole(i64, i64),
    /// As a float.
    Float,
    /// Not summed: only whether it is NULL matters.
    Counted,
}

/// The range of a number, and how it is summed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reach {
    pub(super) kind: NumberKind,
    /// The columns in it that contain NULL.
    pub(super) with_null: Vec<usize>,
}

impl Reach {
    /// Returns the maximum absolute value of an integer.
    pub(super) fn most(&self) -> Option<u64> {
        match self.kind {
            NumberKind::Whole(min, max) => Some(min.unsigned_abs().max(max.unsigned_abs())),
            NumberKind::Float | NumberKind::Counted => None,
        }
    }
}

/// Returns the ranges of the numbers; `None` if one does not fit or is unknown.
pub(super) fn reaches(table: &Table, numbers: &[Number]) -> Option<Vec<Reach>> {
    let mut reaches: Vec<Reach> = Vec::with_capacity(numbers.len());
    for number in numbers {
        let pair = |a: usize, b: usize| {
            let (a, b) = (&reaches[a], &reaches[b]);
            let mut with_null = a.with_null.clone();
            with_null.extend(b.with_null.iter().filter(|column| !a.with_null.contains(column)));
            let wide = |reach: &Reach| match reach.kind {
                NumberKind::Whole(min, max) => Some((i128::from(min), i128::from(max))),
                NumberKind::Float | NumberKind::Counted => None,
            };
            Some((wide(a)?, wide(b)?, with_null))
        };
        let (range, with_null) = match *number {
            Number::Column(column) => {
                reaches.push(of_column(table, column)?);
                continue;
            }
            Number::Constant(value) => ((value.into(), value.into()), Vec::new()),
            Number::Plus(a, b) => {
                let (a, b, with_null) = pair(a, b)?;
                ((a.0 + b.0, a.1 + b.1), with_null)
            }
            Number::Minus(a, b) => {
                let (a, b, with_null) = pair(a, b)?;
                ((a.0 - b.1, a.1 - b.0), with_null)
            }
            Number::Times(a, b) => {
                let (a, b, with_null) = pair(a, b)?;
                let ends = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
                let least = ends.into_iter().fold(i128::MAX, i128::min);
                ((least, ends.into_iter().fold(i128::MIN, i128::max)), with_null)
            }
        };
        if range.0 < -NUMBER_MAX || range.1 > NUMBER_MAX {
            return None;
        }
        // Rows without a value may hold any value of the column, or 0.
        let kind = NumberKind::Whole(range.0.min(0) as i64, range.1.max(0) as i64);
        reaches.push(Reach { kind, with_null });
    }
    Some(reaches)
}

fn of_column(table: &Table, at: usize) -> Option<Reach> {
    let column = &table.columns()[at];
    let kind = table.schema().fields[at].kind;
    let zone = joined(column);
    let with_null = if zone.nulls { vec![at] } else { Vec::new() };
    if kind == Kind::Float {
        // NaN is neither less nor greater than a number.
        let is_nan = zone.range.is_some_and(|(_, max)| max == i64::MAX);
        return (!is_nan).then_some(Reach { kind: NumberKind::Float, with_null });
    }
    if matches!(kind, Kind::Text | Kind::Boolean) {
        return Some(Reach { kind: NumberKind::Counted, with_null });
    }
    let is_whole =
        |segment: &Arc<SegmentColumn>| matches!(segment.data(), Data::Whole(_) | Data::Null);
    if !column.segments().iter().all(is_whole) {
        return None;
    }
    let (min, max) = zone.range.unwrap_or((0, 0));
    let fits = |value: i64| i128::from(value).abs() <= NUMBER_MAX;
    let kind = NumberKind::Whole(min.min(0), max.max(0));
    (fits(min) && fits(max)).then_some(Reach { kind, with_null })
}

/// The least and greatest value of a column whose values fit 64 bits, and whether it has NULL.
struct ColumnRange {
    range: Option<(i64, i64)>,
    nulls: bool,
}

fn joined(column: &Column) -> ColumnRange {
    let zones = column.segments().iter().map(|segment| segment.zone());
    let (mut min, mut max, mut nulls) = (i64::MAX, i64::MIN, false);
    for zone in zones {
        nulls |= zone.nulls > 0;
        if let Some((least, greatest)) = zone.narrow() {
            (min, max) = (min.min(least), max.max(greatest));
        }
    }
    ColumnRange { range: (min <= max).then_some((min, max)), nulls }
}
