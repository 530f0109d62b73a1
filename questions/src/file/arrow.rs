//! Writes the table as Arrow IPC and Parquet, with a random type for each column that can hold it.

use std::io;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, Date32Array, Decimal128Array, Float64Array,
    LargeStringArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray,
    TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::draw::Draw;
use crate::table::{Column, Kind, Table};
use crate::value::Value;

pub(super) fn ipc(draw: &mut Draw, table: &Table) -> io::Result<Vec<u8>> {
    let batch = batch(draw, table, true);
    let codec = *draw.of(&[None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)]);
    let options =
        IpcWriteOptions::default().try_with_compression(codec).map_err(io::Error::other)?;
    let slices = slices(draw, &batch);
    let mut bytes = Vec::new();
    let written = if draw.chance(50) {
        FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).and_then(
            |mut writer| {
                slices
                    .iter()
                    .try_for_each(|slice| writer.write(slice))
                    .and_then(|()| writer.finish())
            },
        )
    } else {
        StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options).and_then(
            |mut writer| {
                slices
                    .iter()
                    .try_for_each(|slice| writer.write(slice))
                    .and_then(|()| writer.finish())
            },
        )
    };
    written.map_err(io::Error::other)?;
    Ok(bytes)
}

pub(super) fn parquet(draw: &mut Draw, table: &Table) -> io::Result<Vec<u8>> {
    let batch = batch(draw, table, false);
    let codec = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let properties = WriterProperties::builder()
        .set_compression(*draw.of(&codec))
        .set_max_row_group_row_count(Some(
            draw.magnitude(table.rows.div_ceil(9).max(1), table.rows.max(2)),
        ))
        .set_data_page_row_count_limit(*draw.of(&[7, 500, 20_000]))
        .set_dictionary_enabled(draw.chance(70))
        .set_dictionary_page_size_limit(*draw.of(&[1 << 10, 1 << 20]))
        .build();
    let mut bytes = Vec::new();
    let written = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).and_then(
        |mut writer| {
            slices(draw, &batch)
                .iter()
                .try_for_each(|slice| writer.write(slice))
                .and_then(|()| writer.close())
        },
    );
    written.map_err(io::Error::other)?;
    Ok(bytes)
}

fn slices(draw: &mut Draw, batch: &RecordBatch) -> Vec<RecordBatch> {
    let size = draw.magnitude(batch.num_rows().div_ceil(12).max(1), batch.num_rows().max(2));
    let starts = (0..batch.num_rows()).step_by(size);
    starts.map(|from| batch.slice(from, size.min(batch.num_rows() - from))).collect()
}

fn batch(draw: &mut Draw, table: &Table, is_ipc: bool) -> RecordBatch {
    let columns =
        table.columns.iter().map(|column| (&*column.name, array(draw, column, is_ipc), true));
    match RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()) {
        Ok(batch) => batch,
        Err(error) => panic!("columns of one length make no batch: {error}"),
    }
}

fn array(draw: &mut Draw, column: &Column, is_ipc: bool) -> ArrayRef {
    let values = &column.values;
    match column.kind {
        Kind::Whole => whole(draw, values),
        Kind::Wide => wide(draw, values),
        Kind::Exact => exact(values),
        Kind::Float => Arc::new(
            values
                .iter()
                .map(|value| match value {
                    Value::Float(number) => Some(*number),
                    _ => None,
                })
                .collect::<Float64Array>(),
        ),
        Kind::Text => strings(draw, values, is_ipc),
        Kind::Truth => Arc::new(
            values
                .iter()
                .map(|value| match value {
                    Value::Truth(truth) => Some(*truth),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        Kind::Day => Arc::new(
            values
                .iter()
                .map(|value| match value {
                    Value::Day(day) => Some(*day),
                    _ => None,
                })
                .collect::<Date32Array>(),
        ),
        Kind::Moment => moments(values),
    }
}

fn mantissas(values: &[Value]) -> impl Iterator<Item = Option<i128>> + '_ {
    values.iter().map(|value| match value {
        Value::Exact { mantissa, .. } => Some(*mantissa),
        _ => None,
    })
}

/// Makes an array of the narrowest integer type that holds all values, or of a wider one.
fn whole(draw: &mut Draw, values: &[Value]) -> ArrayRef {
    let holds = |low: i128, high: i128| {
        mantissas(values).flatten().all(|number| (low..=high).contains(&number))
    };
    let is_wider = draw.chance(40);
    match draw.below(2) {
        0 if !is_wider && holds(-128, 127) => primitive::<Int8Type>(values),
        0 if !is_wider && holds(-32_768, 32_767) => primitive::<Int16Type>(values),
        0 if !is_wider && holds(i32::MIN.into(), i32::MAX.into()) => primitive::<Int32Type>(values),
        1 if !is_wider && holds(0, 255) => primitive::<UInt8Type>(values),
        1 if !is_wider && holds(0, 65_535) => primitive::<UInt16Type>(values),
        1 if !is_wider && holds(0, u32::MAX.into()) => primitive::<UInt32Type>(values),
        _ => primitive::<Int64Type>(values),
    }
}

fn primitive<T>(values: &[Value]) -> ArrayRef
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let native = |number: i128| match T::Native::try_from(number) {
        Ok(native) => native,
        Err(_) => panic!("{number} does not fit"),
    };
    Arc::new(mantissas(values).map(|number| number.map(native)).collect::<PrimitiveArray<T>>())
}

fn wide(draw: &mut Draw, values: &[Value]) -> ArrayRef {
    let unsigned = |number: Option<i128>| number.map(u64::try_from).transpose();
    match mantissas(values).map(unsigned).collect::<Result<UInt64Array, _>>() {
        Ok(array) if draw.chance(70) => Arc::new(array),
        _ => decimal(values, 0),
    }
}

fn exact(values: &[Value]) -> ArrayRef {
    let scale = values.iter().filter_map(|value| match value {
        Value::Exact { scale, .. } => Some(*scale),
        _ => None,
    });
    decimal(values, scale.max().unwrap_or(0))
}

fn decimal(values: &[Value], scale: u8) -> ArrayRef {
    let grown = |value: &Value| match value {
        Value::Exact { mantissa, scale: own } => {
            Some(mantissa * 10_i128.pow(u32::from(scale - own)))
        }
        _ => None,
    };
    let array: Decimal128Array = values.iter().map(grown).collect();
    match array.with_precision_and_scale(38, scale as i8) {
        Ok(array) => Arc::new(array),
        Err(error) => panic!("38 digits, {scale} of them after the point: {error}"),
    }
}

fn moments(values: &[Value]) -> ArrayRef {
    let at = |value: &Value| match value {
        Value::Moment(at) => Some(*at),
        _ => None,
    };
    if values.iter().filter_map(at).all(|at| at % 1_000_000 == 0) {
        return Arc::new(
            values
                .iter()
                .map(|value| at(value).map(|at| at / 1_000_000))
                .collect::<TimestampMillisecondArray>(),
        );
    }
    Arc::new(values.iter().map(at).collect::<TimestampNanosecondArray>())
}

fn strings(draw: &mut Draw, values: &[Value], is_ipc: bool) -> ArrayRef {
    let strings = values.iter().map(|value| match value {
        Value::Text(text) => Some(&**text),
        _ => None,
    });
    match draw.below(4) {
        0 => Arc::new(strings.collect::<StringArray>()),
        1 => Arc::new(strings.collect::<LargeStringArray>()),
        2 if is_ipc => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            strings.for_each(|text| builder.append_option(text));
            Arc::new(builder.finish())
        }
        _ => Arc::new(strings.collect::<StringViewArray>()),
    }
}
