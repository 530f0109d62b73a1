//! Converts packed segments to another type, or to other codes.

use std::sync::Arc;

use quarrier_core::civil::midnight;

use crate::build::{Cell, Row, RowBuilder};
use crate::column::raw::{RawColumn, RawData};
use crate::column::{Data, Packed, SegmentColumn, Strings};
use crate::{Kind, Value, exact};

/// Returns the narrowest type that holds `least` and the values of all segments.
pub(super) fn kind_of_all<'s>(
    least: Kind,
    segments: impl Iterator<Item = &'s SegmentColumn> + Clone,
) -> Kind {
    let kind = segments.clone().fold(least, |kind, segment| kind.widened(segment.kind()));
    let bounds = segments.map(|segment| {
        let zone = segment.zone();
        (segment.kind(), (!zone.is_without_values()).then_some((zone.min, zone.max)))
    });
    kind_within(kind, bounds)
}

/// Returns `kind`, which is at least as wide as the types of `parts`, or a wider one if their bounds need it.
fn kind_within(kind: Kind, mut parts: impl Iterator<Item = (Kind, Bounds)>) -> Kind {
    let mut fit = |bound: fn(i128, Kind, Kind) -> Option<i128>| {
        parts.all(|(from, bounds)| {
            bounds.is_none_or(|(min, max)| {
                bound(min, from, kind).is_some() && bound(max, from, kind).is_some()
            })
        })
    };
    match kind {
        Kind::Decimal { .. } if !fit(exact_in) => Kind::Float,
        Kind::Timestamp if !fit(|day, from, to| time_in(day, from, to).map(i128::from)) => {
            Kind::Text
        }
        kind => kind,
    }
}

/// Returns the narrowest type that holds the values of two types with these bounds, as far as they have values.
pub(in crate::table) fn kind_of_both(one: (Kind, Bounds), other: (Kind, Bounds)) -> Kind {
    kind_within(one.0.widened(other.0), [one, other].into_iter())
}

/// The least and the greatest value as in a zone map; `None` without values.
pub(in crate::table) type Bounds = Option<(i128, i128)>;

/// Returns the bounds of values in a wider type of exact numbers or times; `None` for other types.
pub(in crate::table) fn bounds_in(bounds: Bounds, from: Kind, to: Kind) -> Bounds {
    let (min, max) = bounds?;
    if from == to {
        return bounds;
    }
    match to {
        Kind::Decimal { .. } => exact_in(min, from, to).zip(exact_in(max, from, to)),
        Kind::Timestamp => {
            let time = |number| time_in(number, from, to).map(i128::from);
            time(min).zip(time(max))
        }
        _ => None,
    }
}

/// Returns the mantissa of a number in another type of exact numbers, if it fits 38 digits.
fn exact_in(mantissa: i128, from: Kind, to: Kind) -> Option<i128> {
    match (from, to) {
        (Kind::Integer, Kind::Decimal { scale }) => exact::rescaled(mantissa, 0, scale),
        (Kind::Decimal { scale: from }, Kind::Decimal { scale: to }) => {
            exact::rescaled(mantissa, from, to)
        }
        _ => None,
    }
}

/// Converts a date or timestamp to a timestamp, if it fits 64 bits.
fn time_in(number: i128, from: Kind, to: Kind) -> Option<i64> {
    let number = i64::try_from(number).ok()?;
    match (from, to) {
        (from, to) if from == to => Some(number),
        (Kind::Date, Kind::Timestamp) => i32::try_from(number).ok().and_then(midnight),
        _ => None,
    }
}

/// Converts the segment to type `kind`, which is at least as wide as its own; segments of strings
/// already have that type.
pub(super) fn widened(segment: Arc<SegmentColumn>, kind: Kind) -> Arc<SegmentColumn> {
    if segment.kind() == kind {
        return segment;
    }
    if !segment.is_wide() && !matches!(segment.data(), Data::Whole(_)) {
        let is_empty = *segment.data() == Data::Null;
        assert!(is_empty, "{:?} became {kind:?}, which is less", segment.kind());
        return Arc::new(SegmentColumn::nulls(kind, segment.rows()));
    }
    // Rows without a value have the least one or 0, so they fit if the others do.
    let (from, numbers) = (segment.kind(), segment.to_numbers().into_iter());
    let data = match kind {
        Kind::Decimal { scale } => {
            let mantissas = numbers.map(|it| exact_in(it, from, kind).unwrap_or(0)).collect();
            RawData::Wide { scale, mantissas }
        }
        Kind::Timestamp => {
            RawData::Timestamp(numbers.map(|it| time_in(it, from, kind).unwrap_or(0)).collect())
        }
        Kind::Float => {
            let scale = scale_of(from);
            RawData::Float(numbers.map(|mantissa| exact::as_float(mantissa, scale)).collect())
        }
        kind => unreachable!("{from:?} became {kind:?}"),
    };
    Arc::new(SegmentColumn::pack(&RawColumn { valid: segment.valid().to_vec(), data }))
}

fn scale_of(kind: Kind) -> u8 {
    match kind {
        Kind::Decimal { scale } => scale,
        _ => 0,
    }
}

/// Returns the number of values of a segment that lose digits by becoming `kind`.
pub(in crate::table) fn rounded(segment: &SegmentColumn, kind: Kind) -> u64 {
    let is_exact = matches!(segment.kind(), Kind::Integer | Kind::Decimal { .. });
    let (zone, is_sure) = (segment.zone(), |bound: i128| !exact::may_be_rounded(bound));
    if kind != Kind::Float || !is_exact || (is_sure(zone.min) && is_sure(zone.max)) {
        return 0;
    }
    let scale = scale_of(segment.kind());
    let is_rounded = |&row: &usize| {
        segment.number(row).is_some_and(|mantissa| exact::is_rounded(mantissa, scale))
    };
    (0..segment.rows()).filter(is_rounded).count() as u64
}

/// Converts every value of the segment to a string; `writer` is shared by all segments of a column.
pub(super) fn written(segment: &SegmentColumn, writer: &mut RowBuilder) -> SegmentColumn {
    let field = writer.field("").expect("a field is free");
    let mut text = String::new();
    for row in 0..segment.rows() {
        text.clear();
        match cell(segment.value(row, None)) {
            Cell::Null => writer.null(field),
            cell => {
                cell.write(&mut text);
                writer.text(field, &text);
            }
        }
        writer.commit();
    }
    let mut packed = None;
    writer.finish_segment(|_, raw| packed = Some(SegmentColumn::pack(raw)));
    packed.expect("the one field was lent")
}

/// Returns the cell of a value that is not a string.
fn cell(value: Value<&str>) -> Cell<'_> {
    match value {
        Value::Boolean(truth) => Cell::Boolean(truth),
        Value::Integer(number) => Cell::Integer(number),
        Value::Decimal { mantissa, scale } => Cell::exact(mantissa, scale),
        Value::Float(float) => Cell::Float(float),
        Value::Date(day) => Cell::Date(day),
        Value::Timestamp(time) => Cell::Timestamp(time),
        Value::Text(text) => Cell::Text(text),
        Value::Null | Value::Time(_) | Value::Interval { .. } => Cell::Null,
    }
}

/// Returns the total size of the strings of all rows.
pub(super) fn spelled_bytes(segment: &SegmentColumn, codes: &Packed, all: &Strings) -> usize {
    let codes = codes.to_vec().into_iter().enumerate();
    let strings = codes.filter(|&(row, _)| segment.is_valid(row));
    strings.map(|(_, code)| all.get(code as usize).len()).sum()
}

/// Returns the segment with strings in place of codes.
pub(super) fn spelled_out(segment: &SegmentColumn, codes: &Packed, all: &Strings) -> SegmentColumn {
    let codes = codes.to_vec();
    let (mut ends, mut bytes) = (Vec::with_capacity(codes.len()), Vec::new());
    for (row, code) in codes.into_iter().enumerate() {
        if segment.is_valid(row) {
            bytes.extend_from_slice(all.get(code as usize).as_bytes());
        }
        ends.push(bytes.len() as u32);
    }
    let raw = RawColumn { valid: segment.valid().to_vec(), data: RawData::Text { ends, bytes } };
    SegmentColumn::pack(&raw)
}
