//! Rows of types that packed columns lack: lists, bytes, times of day, intervals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    IntervalMonthDayNano, IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use quarrier_messages::Table;

use super::values::column;
use crate::errors::{of_messages, raise};
use crate::sql::Batches;

type Objects<'py> = Vec<Bound<'py, PyAny>>;

/// Converts all rows to dicts.
pub(super) fn dicts<'py>(py: Python<'py>, shown: &Batches) -> PyResult<Bound<'py, PyList>> {
    let fields = shown.schema.fields();
    let names: Vec<_> = fields.iter().map(|field| PyString::new(py, field.name())).collect();
    let list = PyList::empty(py);
    for batch in &shown.batches {
        let columns = fields.iter().zip(batch.columns());
        let columns = columns.map(|(field, array)| objects(py, field.name(), array));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let dict = PyDict::new(py);
            for (name, column) in names.iter().zip(&columns) {
                dict.set_item(name, &column[row])?;
            }
            list.append(dict)?;
        }
        py.check_signals()?;
    }
    Ok(list)
}

/// Returns the SQL type of each column.
pub(super) fn kind(data_type: &DataType) -> String {
    use DataType as T;
    match data_type {
        T::List(inner)
        | T::LargeList(inner)
        | T::ListView(inner)
        | T::LargeListView(inner)
        | T::FixedSizeList(inner, _) => format!("{} ARRAY", kind(inner.data_type())),
        T::Struct(_) => "ROW".into(),
        T::Dictionary(_, values) => kind(values),
        T::Null => "NULL".into(),
        T::Boolean => "BOOLEAN".into(),
        T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 => {
            "BIGINT".into()
        }
        T::UInt64 => "DECIMAL(20,0)".into(),
        T::Decimal32(digits, scale)
        | T::Decimal64(digits, scale)
        | T::Decimal128(digits, scale)
        | T::Decimal256(digits, scale) => format!("DECIMAL({digits},{scale})"),
        T::Float16 | T::Float32 | T::Float64 => "DOUBLE PRECISION".into(),
        T::Date32 | T::Date64 => "DATE".into(),
        T::Time32(_) | T::Time64(_) => "TIME".into(),
        T::Timestamp(..) => "TIMESTAMP".into(),
        T::Duration(_) | T::Interval(_) => "INTERVAL".into(),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => "VARCHAR".into(),
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => "VARBINARY".into(),
        other => other.to_string(),
    }
}

/// Converts an array to Python values.
fn objects<'py>(py: Python<'py>, name: &str, array: &ArrayRef) -> PyResult<Objects<'py>> {
    use DataType as T;
    let rows = array.len();
    match array.data_type() {
        T::List(_) => {
            let lists = array.as_list::<i32>();
            let ends = lists.value_offsets();
            let range = |row: usize| ends[row] as usize..ends[row + 1] as usize;
            nested(py, name, array, lists.values(), range)
        }
        T::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let ends = lists.value_offsets();
            let range = |row: usize| ends[row] as usize..ends[row + 1] as usize;
            nested(py, name, array, lists.values(), range)
        }
        T::FixedSizeList(_, length) => {
            let length = *length as usize;
            let lists = array.as_fixed_size_list();
            nested(py, name, array, lists.values(), |row| row * length..(row + 1) * length)
        }
        T::Struct(_) => structs(py, name, array.as_struct()),
        T::Binary => bytes(py, rows, array.as_binary::<i32>().iter()),
        T::LargeBinary => bytes(py, rows, array.as_binary::<i64>().iter()),
        T::BinaryView => bytes(py, rows, array.as_binary_view().iter()),
        T::FixedSizeBinary(_) => bytes(py, rows, array.as_fixed_size_binary().iter()),
        T::Time32(TimeUnit::Second) => times::<Time32SecondType>(py, array, 1_000_000, 1),
        T::Time32(_) => times::<Time32MillisecondType>(py, array, 1_000, 1),
        T::Time64(TimeUnit::Microsecond) => times::<Time64MicrosecondType>(py, array, 1, 1),
        T::Time64(_) => times::<Time64NanosecondType>(py, array, 1, 1_000),
        T::Interval(IntervalUnit::MonthDayNano) => intervals(py, name, array),
        T::Duration(TimeUnit::Second) => spans::<DurationSecondType>(py, array, 1_000_000, 1),
        T::Duration(TimeUnit::Millisecond) => spans::<DurationMillisecondType>(py, array, 1_000, 1),
        T::Duration(TimeUnit::Microsecond) => spans::<DurationMicrosecondType>(py, array, 1, 1),
        T::Duration(TimeUnit::Nanosecond) => spans::<DurationNanosecondType>(py, array, 1, 1_000),
        _ => packed(py, name, array),
    }
}

/// Converts lists, whose values are stored consecutively.
fn nested<'py>(
    py: Python<'py>,
    name: &str,
    lists: &dyn Array,
    values: &ArrayRef,
    range: impl Fn(usize) -> std::ops::Range<usize>,
) -> PyResult<Objects<'py>> {
    let inner = objects(py, name, values)?;
    let list = |row: usize| match lists.is_null(row) {
        true => Ok(py.None().into_bound(py)),
        false => Ok(PyList::new(py, &inner[range(row)])?.into_any()),
    };
    (0..lists.len()).map(list).collect()
}

fn structs<'py>(py: Python<'py>, name: &str, array: &StructArray) -> PyResult<Objects<'py>> {
    let columns = array.columns().iter().map(|column| objects(py, name, column));
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    let row = |row: usize| {
        if array.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        let dict = PyDict::new(py);
        for (field, column) in array.column_names().into_iter().zip(&columns) {
            dict.set_item(field, &column[row])?;
        }
        Ok(dict.into_any())
    };
    (0..array.len()).map(row).collect()
}

fn bytes<'py, 'a>(
    py: Python<'py>,
    rows: usize,
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> PyResult<Objects<'py>> {
    let mut all = Vec::with_capacity(rows);
    all.extend(values.map(|value| match value {
        Some(bytes) => PyBytes::new(py, bytes).into_any(),
        None => py.None().into_bound(py),
    }));
    Ok(all)
}

/// Passes each value as microseconds to `make`.
fn microseconds<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
    (times, over): (i64, i64),
    make: impl Fn(i64) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Objects<'py>>
where
    T::Native: Into<i64>,
{
    let value = |value: Option<T::Native>| match value {
        Some(value) => make(value.into().saturating_mul(times).div_euclid(over)),
        None => Ok(py.None().into_bound(py)),
    };
    array.as_primitive::<T>().iter().map(value).collect()
}

/// Converts times of day, to the microsecond.
fn times<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
    times: i64,
    over: i64,
) -> PyResult<Objects<'py>>
where
    T::Native: Into<i64>,
{
    let datetime = py.import("datetime")?;
    let midnight = datetime.getattr("datetime")?.call1((1970, 1, 1))?;
    let delta = datetime.getattr("timedelta")?;
    microseconds::<T>(py, array, (times, over), |value| {
        midnight.add(delta.call1((0, 0, value))?)?.call_method0("time")
    })
}

/// Converts durations, to the microsecond.
fn spans<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &ArrayRef,
    times: i64,
    over: i64,
) -> PyResult<Objects<'py>>
where
    T::Native: Into<i64>,
{
    let delta = py.import("datetime")?.getattr("timedelta")?;
    microseconds::<T>(py, array, (times, over), |value| delta.call1((0, 0, value)))
}

/// Converts intervals of days and time; Python has no type for months.
fn intervals<'py>(py: Python<'py>, name: &str, array: &ArrayRef) -> PyResult<Objects<'py>> {
    let delta = py.import("datetime")?.getattr("timedelta")?;
    let value = |value: Option<IntervalMonthDayNano>| match value {
        Some(span) if span.months != 0 => Err(refused(py, name, "has months in its spans")),
        Some(span) => delta.call1((span.days, 0, span.nanoseconds.div_euclid(1_000))),
        None => Ok(py.None().into_bound(py)),
    };
    array.as_primitive::<IntervalMonthDayNanoType>().iter().map(value).collect()
}

fn refused(py: Python<'_>, name: &str, reason: &str) -> PyErr {
    let message = format!("column {name} {reason}; take it as Arrow data, or cast it");
    raise(py, "ArrowColumnError", (message, name, reason))
}

/// Converts columns of the types that packed tables have, by way of a packed table.
fn packed<'py>(py: Python<'py>, name: &str, array: &ArrayRef) -> PyResult<Objects<'py>> {
    let schema = Schema::new(vec![Field::new(name, array.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(array)]);
    let table = batch.map(|batch| Table::from_batches(&batch.schema(), [Ok(batch)].into_iter(), 1));
    match table {
        Ok(Ok(table)) => column(py, &table, 0),
        Ok(Err(quarrier_messages::Error::ArrowColumn { .. })) => {
            Err(refused(py, name, &format!("has the type {}", array.data_type())))
        }
        Ok(Err(error)) => Err(of_messages(py, &error)),
        Err(error) => Err(of_messages(py, &error.into())),
    }
}
