//! Converts DataFusion's values to those of quarrier-filter.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use quarrier_messages::Value;

/// Classes of types whose values compare with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Null,
    Boolean,
    Number,
    Text,
    Time,
}

/// The class of a type; `None` if no message column has the type.
pub(crate) fn class_of(data_type: &DataType) -> Option<Class> {
    use DataType as T;
    Some(match data_type {
        T::Null => Class::Null,
        T::Boolean => Class::Boolean,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => Class::Text,
        T::Date32 | T::Date64 | T::Timestamp(..) => Class::Time,
        T::Dictionary(_, values) => return class_of(values),
        data_type if data_type.is_numeric() => Class::Number,
        _ => return None,
    })
}

/// The value of a literal in conditions; `None` if conditions have no such value.
pub(crate) fn value(scalar: &ScalarValue) -> Option<Value> {
    use ScalarValue as S;
    if scalar.is_null() {
        return class_of(&scalar.data_type()).map(|_| Value::Null);
    }
    let scaled = |value: Option<i64>, by: i64| Some(Value::Timestamp(value?.checked_mul(by)?));
    match scalar {
        S::Boolean(Some(truth)) => Some(Value::Boolean(*truth)),
        S::Int8(Some(number)) => Some(Value::Integer((*number).into())),
        S::Int16(Some(number)) => Some(Value::Integer((*number).into())),
        S::Int32(Some(number)) => Some(Value::Integer((*number).into())),
        S::Int64(Some(number)) => Some(Value::Integer(*number)),
        S::UInt8(Some(number)) => Some(Value::Integer((*number).into())),
        S::UInt16(Some(number)) => Some(Value::Integer((*number).into())),
        S::UInt32(Some(number)) => Some(Value::Integer((*number).into())),
        S::UInt64(Some(number)) => Some(Value::Decimal { mantissa: (*number).into(), scale: 0 }),
        S::Float32(Some(number)) => Some(Value::Float((*number).into())),
        S::Float64(Some(number)) => Some(Value::Float(*number)),
        S::Decimal128(Some(mantissa), _, scale) => {
            Some(Value::Decimal { mantissa: *mantissa, scale: u8::try_from(*scale).ok()? })
        }
        S::Decimal256(Some(mantissa), _, scale) => Some(Value::Decimal {
            mantissa: mantissa.to_i128()?,
            scale: u8::try_from(*scale).ok()?,
        }),
        S::Utf8(Some(text)) | S::LargeUtf8(Some(text)) | S::Utf8View(Some(text)) => {
            Some(Value::Text(text.as_str().into()))
        }
        S::Date32(Some(day)) => Some(Value::Date(*day)),
        S::TimestampSecond(value, None) => scaled(*value, 1_000_000_000),
        S::TimestampMillisecond(value, None) => scaled(*value, 1_000_000),
        S::TimestampMicrosecond(value, None) => scaled(*value, 1_000),
        S::TimestampNanosecond(value, None) => scaled(*value, 1),
        S::Dictionary(_, inner) => value(inner),
        _ => None,
    }
}
