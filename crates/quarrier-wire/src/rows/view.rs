//! Downcasts an array of any type once, so that each of its values takes one step.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
    Decimal256Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, StructArray};
use arrow_buffer::{IntervalMonthDayNano, NullBuffer, i256};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::unwritable;
use crate::failure::Result;
use crate::kind;

/// Maximum nesting of lists and structures.
const DEPTH_MAX: usize = 32;

/// A column of an Arrow array.
pub(crate) struct View<'a> {
    /// The type, as PostgreSQL's OID.
    pub(crate) kind: u32,
    pub(super) nulls: Option<NullBuffer>,
    pub(super) values: Values<'a>,
}

/// The values of a column.
pub(super) enum Values<'a> {
    Null,
    Bool(&'a arrow_array::BooleanArray),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// Half-precision floats, widened.
    F16(Vec<f32>),
    D32(&'a [i32], i8),
    D64(&'a [i64], i8),
    D128(&'a [i128], i8),
    D256(&'a [i256], i8),
    Text(&'a arrow_array::StringArray),
    LargeText(&'a arrow_array::LargeStringArray),
    TextView(&'a arrow_array::StringViewArray),
    Bytes(&'a arrow_array::BinaryArray),
    LargeBytes(&'a arrow_array::LargeBinaryArray),
    BytesView(&'a arrow_array::BinaryViewArray),
    FixedBytes(&'a arrow_array::FixedSizeBinaryArray),
    /// Days.
    Date(&'a [i32]),
    /// Milliseconds.
    DateMs(&'a [i64]),
    /// Parts of a day, and the nanoseconds of each.
    Time32(&'a [i32], i64),
    Time64(&'a [i64], i64),
    /// Timestamps, the number of units per second, and whether they have a zone.
    Timestamp(&'a [i64], i64, bool),
    /// Intervals, and the number of units per second.
    Duration(&'a [i64], i64),
    Interval(Vec<IntervalMonthDayNano>),
    /// The index of each row's value in another view.
    Coded(Vec<usize>, Box<View<'a>>),
    /// The start of each list, and the end of the last one.
    List(Vec<usize>, Box<View<'a>>),
    Struct(Vec<(&'a str, View<'a>)>),
}

fn primitives<T: ArrowPrimitiveType>(array: &dyn Array) -> &[T::Native] {
    array.as_primitive::<T>().values()
}

impl<'a> View<'a> {
    /// Makes a view of an array.
    ///
    /// # Errors
    /// If the type is unsupported.
    pub(crate) fn of(array: &'a ArrayRef) -> Result<Self> {
        View::at(array, 0)
    }

    fn at(array: &'a ArrayRef, depth: usize) -> Result<Self> {
        if depth > DEPTH_MAX {
            return Err(unwritable("a column of lists nests too deeply"));
        }
        let array: &'a dyn Array = Arc::as_ref(array);
        let kind = kind::of(array.data_type());
        let values = values(array, depth)?;
        Ok(View { kind, nulls: array.nulls().cloned(), values })
    }

    /// Whether a row is NULL.
    #[inline]
    pub(crate) fn is_null(&self, row: usize) -> bool {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return true;
        }
        match &self.values {
            Values::Null => true,
            Values::Coded(places, values) => {
                places.get(row).is_none_or(|place| values.is_null(*place))
            }
            _ => false,
        }
    }
}

fn values(array: &dyn Array, depth: usize) -> Result<Values<'_>> {
    use DataType as D;
    Ok(match array.data_type() {
        D::Null => Values::Null,
        D::Boolean => Values::Bool(array.as_boolean()),
        D::Int8 => Values::I8(primitives::<Int8Type>(array)),
        D::Int16 => Values::I16(primitives::<Int16Type>(array)),
        D::Int32 => Values::I32(primitives::<Int32Type>(array)),
        D::Int64 => Values::I64(primitives::<Int64Type>(array)),
        D::UInt8 => Values::U8(primitives::<UInt8Type>(array)),
        D::UInt16 => Values::U16(primitives::<UInt16Type>(array)),
        D::UInt32 => Values::U32(primitives::<UInt32Type>(array)),
        D::UInt64 => Values::U64(primitives::<UInt64Type>(array)),
        D::Float16 => {
            Values::F16(primitives::<Float16Type>(array).iter().map(|v| v.to_f32()).collect())
        }
        D::Float32 => Values::F32(primitives::<Float32Type>(array)),
        D::Float64 => Values::F64(primitives::<Float64Type>(array)),
        D::Decimal32(_, scale) => Values::D32(primitives::<Decimal32Type>(array), *scale),
        D::Decimal64(_, scale) => Values::D64(primitives::<Decimal64Type>(array), *scale),
        D::Decimal128(_, scale) => Values::D128(primitives::<Decimal128Type>(array), *scale),
        D::Decimal256(_, scale) => Values::D256(primitives::<Decimal256Type>(array), *scale),
        D::Utf8 => Values::Text(array.as_string()),
        D::LargeUtf8 => Values::LargeText(array.as_string()),
        D::Utf8View => Values::TextView(array.as_string_view()),
        D::Binary => Values::Bytes(array.as_binary()),
        D::LargeBinary => Values::LargeBytes(array.as_binary()),
        D::BinaryView => Values::BytesView(array.as_binary_view()),
        D::FixedSizeBinary(_) => Values::FixedBytes(array.as_fixed_size_binary()),
        D::Date32 => Values::Date(primitives::<Date32Type>(array)),
        D::Date64 => Values::DateMs(primitives::<Date64Type>(array)),
        D::Time32(_) | D::Time64(_) | D::Timestamp(..) | D::Duration(_) | D::Interval(_) => {
            times(array)
        }
        D::List(_) | D::LargeList(_) | D::FixedSizeList(..) => lists(array, depth)?,
        D::Struct(_) => structure(array.as_struct(), depth)?,
        D::Dictionary(..) => coded(array, depth)?,
        other => return Err(unwritable(&format!("a column of type {other} cannot be sent"))),
    })
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

fn times(array: &dyn Array) -> Values<'_> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match array.data_type() {
        DataType::Time32(Second) => {
            Values::Time32(primitives::<Time32SecondType>(array), 1_000_000_000)
        }
        DataType::Time32(_) => {
            Values::Time32(primitives::<Time32MillisecondType>(array), 1_000_000)
        }
        DataType::Time64(Nanosecond) => {
            Values::Time64(primitives::<Time64NanosecondType>(array), 1)
        }
        DataType::Time64(_) => Values::Time64(primitives::<Time64MicrosecondType>(array), 1_000),
        DataType::Timestamp(unit, zone) => {
            let values = match unit {
                Second => primitives::<TimestampSecondType>(array),
                Millisecond => primitives::<TimestampMillisecondType>(array),
                Microsecond => primitives::<TimestampMicrosecondType>(array),
                Nanosecond => primitives::<TimestampNanosecondType>(array),
            };
            Values::Timestamp(values, per_second(*unit), zone.is_some())
        }
        DataType::Duration(unit) => {
            let values = match unit {
                Second => primitives::<DurationSecondType>(array),
                Millisecond => primitives::<DurationMillisecondType>(array),
                Microsecond => primitives::<DurationMicrosecondType>(array),
                Nanosecond => primitives::<DurationNanosecondType>(array),
            };
            Values::Duration(values, per_second(*unit))
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            let months = primitives::<IntervalYearMonthType>(array).iter();
            Values::Interval(months.map(|m| IntervalMonthDayNano::new(*m, 0, 0)).collect())
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let parts = primitives::<IntervalDayTimeType>(array).iter();
            let whole = |ms: i32| i64::from(ms) * 1_000_000;
            Values::Interval(
                parts
                    .map(|p| IntervalMonthDayNano::new(0, p.days, whole(p.milliseconds)))
                    .collect(),
            )
        }
        _ => Values::Interval(primitives::<IntervalMonthDayNanoType>(array).to_vec()),
    }
}

fn lists(array: &dyn Array, depth: usize) -> Result<Values<'_>> {
    let (starts, items): (Vec<usize>, &ArrayRef) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.value_offsets().iter().map(|at| *at as usize).collect(), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.value_offsets().iter().map(|at| *at as usize).collect(), list.values())
        }
        _ => {
            let list = array.as_fixed_size_list();
            let length = list.value_length() as usize;
            ((0..=list.len()).map(|row| row * length).collect(), list.values())
        }
    };
    Ok(Values::List(starts, Box::new(View::at(items, depth + 1)?)))
}

fn structure(array: &StructArray, depth: usize) -> Result<Values<'_>> {
    let fields = array.fields().iter().zip(array.columns());
    let fields =
        fields.map(|(field, column)| Ok((field.name().as_str(), View::at(column, depth + 1)?)));
    Ok(Values::Struct(fields.collect::<Result<_>>()?))
}

fn coded(array: &dyn Array, depth: usize) -> Result<Values<'_>> {
    use DataType as D;
    let D::Dictionary(key, _) = array.data_type() else { return Ok(Values::Null) };
    match **key {
        D::Int8 => coded_by::<Int8Type>(array, depth),
        D::Int16 => coded_by::<Int16Type>(array, depth),
        D::Int32 => coded_by::<Int32Type>(array, depth),
        D::Int64 => coded_by::<Int64Type>(array, depth),
        D::UInt8 => coded_by::<UInt8Type>(array, depth),
        D::UInt16 => coded_by::<UInt16Type>(array, depth),
        D::UInt32 => coded_by::<UInt32Type>(array, depth),
        _ => coded_by::<UInt64Type>(array, depth),
    }
}

fn coded_by<K: ArrowDictionaryKeyType>(array: &dyn Array, depth: usize) -> Result<Values<'_>> {
    let coded = array.as_dictionary::<K>();
    let places = (0..coded.len()).map(|row| coded.key(row).unwrap_or(usize::MAX)).collect();
    Ok(Values::Coded(places, Box::new(View::at(coded.values(), depth + 1)?)))
}
