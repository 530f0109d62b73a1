//! Chooses the packing of a segment's rows.

mod float;
mod recode;
mod whole;
mod wide;
mod zones;

pub(crate) use whole::pack_whole;
pub(crate) use zones::{Zones, text_zones};

use super::packed::Packed;
use super::raw::{RawColumn, RawData, SEGMENT_ROWS};
use super::segment::{Data, SegmentColumn};
use super::strings::Strings;
use crate::{DIGITS_MAX, Kind};

pub(super) fn pack(raw: &RawColumn) -> SegmentColumn {
    let rows = raw.data.rows();
    let valid = validity(&raw.valid, rows);
    let (kind, data, zones) = match &raw.data {
        RawData::Null(rows) => return SegmentColumn::nulls(Kind::Null, *rows),
        RawData::Boolean { bits, rows } => {
            let values: Vec<i64> =
                (0..*rows).map(|row| (bits[row / 64] >> (row % 64) & 1) as i64).collect();
            whole(Kind::Boolean, pack_whole(&values, &valid))
        }
        RawData::Integer(values) => whole(Kind::Integer, pack_whole(values, &valid)),
        RawData::Decimal { scale, mantissas } => {
            assert!(*scale <= DIGITS_MAX, "{scale} digits after the point");
            whole(Kind::Decimal { scale: *scale }, pack_whole(mantissas, &valid))
        }
        RawData::Wide { scale, mantissas } => {
            assert!(*scale <= DIGITS_MAX, "{scale} digits after the point");
            let (data, zones) = wide::pack_wide(mantissas, &valid);
            (Kind::Decimal { scale: *scale }, data, zones)
        }
        RawData::Date(days) => whole(Kind::Date, pack_whole(days, &valid)),
        RawData::Timestamp(values) => whole(Kind::Timestamp, pack_whole(values, &valid)),
        RawData::Codes(codes) => {
            let (packed, zones) = pack_whole(codes, &valid);
            (Kind::Text, Data::Codes(packed), zones)
        }
        RawData::Float(values) => {
            let (data, zones) = float::pack_floats(values, &valid);
            (Kind::Float, data, zones)
        }
        RawData::Text { ends, bytes } => {
            let strings = Strings::from_parts(ends.clone(), bytes.clone());
            let zones = text_zones(&strings, &valid);
            (Kind::Text, Data::Text(strings), zones)
        }
    };
    SegmentColumn::of(kind, rows, valid, data, zones)
}

impl SegmentColumn {
    /// Makes a segment from matching parts; drops the data if no row has a value.
    pub(crate) fn of(
        kind: Kind,
        rows: usize,
        valid: Vec<u64>,
        data: Data,
        zones: Zones,
    ) -> SegmentColumn {
        if zones.all.nulls as usize == rows {
            return SegmentColumn::nulls(kind, rows);
        }
        SegmentColumn {
            kind,
            rows: rows as u32,
            valid,
            data,
            zone: zones.all,
            blocks: zones.blocks,
        }
    }
}

fn whole(kind: Kind, (packed, zones): (Packed, Zones)) -> (Kind, Data, Zones) {
    (kind, Data::Whole(packed), zones)
}

/// Returns the validity bitmap in the form of segments: empty if every row has a value; bits after
/// the last row are 0.
fn validity(valid: &[u64], rows: usize) -> Vec<u64> {
    assert!((1..=SEGMENT_ROWS).contains(&rows), "a segment of {rows} rows");
    if valid.is_empty() {
        return Vec::new();
    }
    assert!(valid.len() >= rows.div_ceil(64), "{} words of validity for {rows} rows", valid.len());
    let mut kept = valid[..rows.div_ceil(64)].to_vec();
    if let Some(last) = kept.last_mut().filter(|_| !rows.is_multiple_of(64)) {
        *last &= (1 << (rows % 64)) - 1;
    }
    let set: usize = kept.iter().map(|word| word.count_ones() as usize).sum();
    if set == rows { Vec::new() } else { kept }
}
