//! Statistics of a table from its metadata: the number of rows, and the bounds of columns.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use quarrier_filter::{Expr, Query, Scan, Select};
use quarrier_messages::column::{Data, Zone};
use quarrier_messages::{Column, Kind, Table};

use super::translate::Condition;

/// Approximate size of a value in Arrow.
const VALUE_BYTES: usize = 16;

/// Exact statistics of all rows; `columns` are indices in the table.
pub(crate) fn of_columns(table: &Table, columns: &[usize]) -> Statistics {
    let rows = table.rows() as usize;
    Statistics {
        num_rows: Precision::Exact(rows),
        total_byte_size: Precision::Inexact(rows * columns.len() * VALUE_BYTES),
        column_statistics: columns.iter().map(|&column| of_column(table, column)).collect(),
    }
}

/// Estimated statistics of the rows that satisfy `condition`, from a sample.
pub(crate) fn of_rows(
    table: &Arc<Table>,
    columns: &[usize],
    condition: &Condition,
    fetch: Option<usize>,
) -> Statistics {
    let share = condition.expr().map_or(1.0, |expr| share_of_rows(table, expr));
    let rows = ((share * table.rows() as f64).ceil() as usize).max(1);
    let rows = fetch.map_or(rows, |fetch| rows.min(fetch));
    let mut statistics = of_columns(table, columns).to_inexact();
    statistics.num_rows = Precision::Inexact(rows);
    statistics.total_byte_size = Precision::Inexact(rows * columns.len() * VALUE_BYTES);
    statistics
}

/// The approximate share of rows that satisfy `expr`, from a sample.
pub(crate) fn share_of_rows(table: &Table, expr: &Expr) -> f64 {
    let query = Query {
        select: Select::Count { name: "rows".into() },
        condition: Some(expr.clone()),
        order: Vec::new(),
        limit: None,
        offset: 0,
    };
    let explained = Scan::new(table, std::slice::from_ref(&query)).explain();
    let first = explained.queries.first().and_then(|query| query.steps.first());
    first.map_or(1.0, |step| step.share)
}

fn of_column(table: &Table, place: usize) -> ColumnStatistics {
    let column = &table.columns()[place];
    let kind = table.schema().fields[place].kind;
    let zones = column.segments().iter().map(|segment| segment.zone());
    let zone = zones.fold(Zone::EMPTY, Zone::joined);
    let nulls: u64 = column.segments().iter().map(|segment| u64::from(segment.zone().nulls)).sum();
    let mut statistics = ColumnStatistics::new_unknown();
    statistics.null_count = Precision::Exact(nulls as usize);
    let is_plain_text = column.segments().iter().any(|s| matches!(s.data(), Data::Text(_)));
    if zone.is_without_values() || is_plain_text {
        return statistics;
    }
    let bound = |key: i128| {
        if let Kind::Decimal { scale } = kind {
            let precision = column.precision(scale);
            return Some(ScalarValue::Decimal128(Some(key), precision, scale as i8));
        }
        narrow_bound(column, kind, i64::try_from(key).ok()?)
    };
    if let (Some(min), Some(max)) = (bound(zone.min), bound(zone.max)) {
        statistics.min_value = Precision::Exact(min);
        statistics.max_value = Precision::Exact(max);
    }
    if let (Kind::Text, Some(dictionary)) = (kind, column.dictionary()) {
        statistics.distinct_count = Precision::Inexact(dictionary.len());
    }
    statistics
}

/// The value of a 64-bit key of a zone map.
fn narrow_bound(column: &Column, kind: Kind, key: i64) -> Option<ScalarValue> {
    match kind {
        Kind::Boolean => Some(ScalarValue::Boolean(Some(key != 0))),
        Kind::Integer => Some(ScalarValue::Int64(Some(key))),
        Kind::Date => Some(ScalarValue::Date32(Some(key as i32))),
        Kind::Timestamp => Some(ScalarValue::TimestampNanosecond(Some(key), None)),
        Kind::Text => {
            let dictionary = column.dictionary()?;
            let code = usize::try_from(key).ok().filter(|&code| code < dictionary.len())?;
            Some(ScalarValue::Utf8View(Some(dictionary.get(code).to_string())))
        }
        // A key of zero or NaN does not identify the float's bits.
        Kind::Float => float_of(key).map(|float| ScalarValue::Float64(Some(float))),
        Kind::Decimal { .. } | Kind::Null => None,
    }
}

/// The float with this [`float_key`](quarrier_messages::column::float_key); `None` for zero and
/// NaN, whose keys stand for several floats.
fn float_of(key: i64) -> Option<f64> {
    let bits = key ^ (((key >> 63) as u64) >> 1) as i64;
    let float = f64::from_bits(bits as u64);
    (!float.is_nan() && float != 0.0).then_some(float)
}
