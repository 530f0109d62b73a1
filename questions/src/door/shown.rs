//! Writes the values of an answer as [`Value::shown`](crate::value::Value::shown) does.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::value::{Value, whole};

/// The rows of a batch, with `|` between their values.
pub(super) fn rows(batch: &RecordBatch) -> Vec<String> {
    let row = |row: usize| {
        let values = batch.columns().iter().map(|column| value(&**column, row).shown());
        values.collect::<Vec<_>>().join("|")
    };
    (0..batch.num_rows()).map(row).collect()
}

fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let moment = |at: i64, unit: i64| Value::Moment(at.wrapping_mul(unit));
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Truth(array.as_boolean().value(row)),
        DataType::Int8 => whole(array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => whole(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => whole(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => whole(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => whole(array.as_primitive::<UInt8Type>().value(row)),
        DataType::UInt16 => whole(array.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt32 => whole(array.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt64 => whole(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Decimal128(_, scale) => {
            let mantissa = array.as_primitive::<Decimal128Type>().value(row);
            Value::Exact { mantissa, scale: u8::try_from(*scale).unwrap_or(0) }
        }
        DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => Value::Day(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Second, _) => {
            moment(array.as_primitive::<TimestampSecondType>().value(row), 1_000_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            moment(array.as_primitive::<TimestampMillisecondType>().value(row), 1_000_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            moment(array.as_primitive::<TimestampMicrosecondType>().value(row), 1_000)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            moment(array.as_primitive::<TimestampNanosecondType>().value(row), 1)
        }
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).into()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).into()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).into()),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            value(&**dictionary.values(), dictionary.normalized_keys()[row])
        }
        other => Value::Text(format!("a value of type {other}").into()),
    }
}
