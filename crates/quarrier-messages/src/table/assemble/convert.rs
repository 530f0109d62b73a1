//! Packed segments become those of another kind, or with other codes.

use std::sync::Arc;

use crate::build::{Cell, Row, RowBuilder};
use crate::column::raw::{RawColumn, RawData};
use crate::column::{Data, Packed, SegmentColumn, Texts};
use crate::{Kind, Value};

const DAY_NANOSECONDS: i64 = 86_400_000_000_000;

/// The least kind that holds `least` and the values of all segments.
pub(super) fn kind_of_all<'s>(
    least: Kind,
    segments: impl Iterator<Item = &'s SegmentColumn> + Clone,
) -> Kind {
    let kind = segments.clone().fold(least, |kind, segment| kind.widened(segment.kind()));
    let mut bounds = segments.filter(|segment| !segment.zone().is_without_values());
    let mut fit = |factor: &dyn Fn(Kind) -> Option<i64>| {
        bounds.all(|segment| {
            let zone = segment.zone();
            factor(segment.kind()).is_some_and(|factor| {
                zone.min.checked_mul(factor).is_some() && zone.max.checked_mul(factor).is_some()
            })
        })
    };
    match kind {
        Kind::Decimal { .. } if !fit(&|from| factor(from, kind)) => Kind::Float,
        Kind::Timestamp if !fit(&|from| factor(from, kind)) => Kind::Text,
        kind => kind,
    }
}

/// By how much whole numbers of one kind are more in another.
fn factor(from: Kind, to: Kind) -> Option<i64> {
    match (from, to) {
        (from, to) if from == to => Some(1),
        (Kind::Integer, Kind::Decimal { scale }) => Some(10i64.pow(scale.into())),
        (Kind::Decimal { scale: from }, Kind::Decimal { scale: to }) => {
            Some(10i64.pow(u32::from(to.checked_sub(from)?)))
        }
        (Kind::Date, Kind::Timestamp) => Some(DAY_NANOSECONDS),
        _ => None,
    }
}

/// The segment with values of `kind`, which is no less than its own and, where it is text, the
/// same.
pub(super) fn widened(segment: Arc<SegmentColumn>, kind: Kind) -> Arc<SegmentColumn> {
    if segment.kind() == kind {
        return segment;
    }
    let Data::Whole(packed) = segment.data() else {
        let is_empty = *segment.data() == Data::Null;
        assert!(is_empty, "{:?} became {kind:?}, which is less", segment.kind());
        return Arc::new(SegmentColumn::nulls(kind, segment.rows()));
    };
    let data = match (kind, factor(segment.kind(), kind)) {
        (Kind::Decimal { scale }, Some(factor)) => {
            RawData::Decimal { scale, mantissas: multiplied(packed, factor) }
        }
        (Kind::Timestamp, Some(factor)) => RawData::Timestamp(multiplied(packed, factor)),
        (Kind::Float, _) => RawData::Float(floats(segment.kind(), packed)),
        (kind, _) => unreachable!("{:?} became {kind:?}", segment.kind()),
    };
    Arc::new(SegmentColumn::pack(&RawColumn { valid: segment.valid().to_vec(), data }))
}

/// Rows without a value have the least one, so that no product overflows.
fn multiplied(packed: &Packed, factor: i64) -> Vec<i64> {
    let mut numbers = packed.to_vec();
    numbers.iter_mut().for_each(|number| *number *= factor);
    numbers
}

fn floats(kind: Kind, packed: &Packed) -> Vec<f64> {
    let cell = |number| match kind {
        Kind::Decimal { scale } => Cell::Decimal { mantissa: number, scale },
        _ => Cell::Integer(number),
    };
    packed.to_vec().into_iter().map(|number| cell(number).as_float()).collect()
}

/// The segment with every value as its text; `writer` is the same for all segments of a column.
pub(super) fn written(segment: &SegmentColumn, writer: &mut RowBuilder) -> SegmentColumn {
    let field = writer.field("").expect("a field is free");
    let mut text = String::new();
    for row in 0..segment.rows() {
        text.clear();
        match cell(&segment.value(row, None)) {
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

/// What a column of another kind than text holds.
fn cell(value: &Value) -> Cell<'_> {
    match value {
        Value::Boolean(truth) => Cell::Boolean(*truth),
        Value::Integer(number) => Cell::Integer(*number),
        Value::Decimal { mantissa, scale } => {
            Cell::Decimal { mantissa: *mantissa as i64, scale: *scale }
        }
        Value::Float(float) => Cell::Float(*float),
        Value::Date(day) => Cell::Date(*day),
        Value::Timestamp(time) => Cell::Timestamp(*time),
        Value::Text(text) => Cell::Text(text),
        Value::Null | Value::Time(_) | Value::Interval { .. } => Cell::Null,
    }
}

/// How many bytes the texts of all rows have.
pub(super) fn spelled_bytes(segment: &SegmentColumn, codes: &Packed, all: &Texts) -> usize {
    let codes = codes.to_vec().into_iter().enumerate();
    let texts = codes.filter(|&(row, _)| segment.is_valid(row));
    texts.map(|(_, code)| all.get(code as usize).len()).sum()
}

/// The segment with its texts instead of their codes.
pub(super) fn spelled_out(segment: &SegmentColumn, codes: &Packed, all: &Texts) -> SegmentColumn {
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
