//! Converts a table to record batches on request.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, NullArray, RecordBatch, RecordBatchReader, StringArray,
    TimestampNanosecondArray,
};
use arrow_buffer::alloc::Allocation;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::column::{Data, SegmentColumn, Strings};
use crate::table::Column;
use crate::{Kind, Table};

/// A table's rows as Arrow record batches, one per segment. Floats and strings that have Arrow's
/// layout are shared with the table; the rest is unpacked when a batch is requested.
///
/// | type | Arrow |
/// |---|---|
/// | Integer, Float, Boolean, Date, Null | Int64, Float64, Boolean, Date32, Null |
/// | Decimal | Decimal128 of 19 digits, or more if it needs them |
/// | Timestamp | Timestamp in nanoseconds, without a zone |
/// | Text | Dictionary of Int32 and Utf8 if the column has a dictionary, else Utf8 |
///
/// A column of strings of which only some segments have codes is Utf8View.
#[derive(Debug)]
pub struct Batches {
    table: Table,
    schema: SchemaRef,
    shown: Vec<Shown>,
    next: usize,
}

/// The Arrow form of a column.
#[derive(Debug)]
pub(super) enum Shown {
    Plain,
    /// A dictionary array, with the values that all batches share.
    Dictionary(ArrayRef),
    View,
}

impl Table {
    /// Returns the rows as Arrow record batches.
    pub fn batches(&self) -> Batches {
        let fields = self.schema().fields.iter().zip(self.columns());
        let (fields, shown): (Vec<_>, Vec<_>) = fields
            .map(|(field, column)| {
                let shown = shown(field.kind, column);
                let data_type = data_type(field.kind, column, &shown);
                (Field::new(&*field.name, data_type, true), shown)
            })
            .unzip();
        Batches { table: self.clone(), schema: Arc::new(Schema::new(fields)), shown, next: 0 }
    }
}

fn shown(kind: Kind, column: &Column) -> Shown {
    let Some(dictionary) = column.dictionary().filter(|_| kind == Kind::Text) else {
        return Shown::Plain;
    };
    let is_plain = |segment: &Arc<SegmentColumn>| matches!(segment.data(), Data::Text(_));
    if dictionary.len() > i32::MAX as usize || column.segments().iter().any(is_plain) {
        return Shown::View;
    }
    Shown::Dictionary(Arc::new(string_array(dictionary, dictionary.clone(), None)))
}

pub(super) fn data_type(kind: Kind, column: &Column, shown: &Shown) -> DataType {
    data_type_of(kind, shown, |scale| column.precision(scale))
}

/// The type of a column whose exact numbers have `precision` digits, given their decimals.
pub(super) fn data_type_of(kind: Kind, shown: &Shown, precision: impl Fn(u8) -> u8) -> DataType {
    match (kind, shown) {
        (Kind::Null, _) => DataType::Null,
        (Kind::Boolean, _) => DataType::Boolean,
        (Kind::Integer, _) => DataType::Int64,
        (Kind::Decimal { scale }, _) => DataType::Decimal128(precision(scale), scale as i8),
        (Kind::Float, _) => DataType::Float64,
        (Kind::Date, _) => DataType::Date32,
        (Kind::Timestamp, _) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        (Kind::Text, Shown::Plain) => DataType::Utf8,
        (Kind::Text, Shown::View) => DataType::Utf8View,
        (Kind::Text, Shown::Dictionary(_)) => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.table.segments() {
            return None;
        }
        let (schema, segment) = (Arc::clone(&self.schema), self.next);
        self.next += 1;
        let columns = self.table.columns().iter().zip(&self.shown).zip(schema.fields());
        let arrays = columns.map(|((column, shown), field)| {
            array(column, &column.segments()[segment], shown, field.data_type())
        });
        let arrays: Vec<ArrayRef> = arrays.collect();
        let rows = self.table.segment_rows(segment);
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        Some(RecordBatch::try_new_with_options(schema, arrays, &options))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn array(
    column: &Column,
    segment: &Arc<SegmentColumn>,
    shown: &Shown,
    data_type: &DataType,
) -> ArrayRef {
    let (rows, nulls) = (segment.rows(), nulls(segment));
    match (segment.data(), shown) {
        (Data::Null, Shown::Dictionary(values)) => {
            Arc::new(DictionaryArray::new(Int32Array::new_null(rows), Arc::clone(values)))
        }
        (Data::Null, _) => arrow_array::new_null_array(data_type, rows),
        (Data::Whole(_) | Data::Shifted { .. } | Data::Exact(_), _)
            if matches!(segment.kind(), Kind::Decimal { .. }) =>
        {
            decimals(segment.to_numbers(), nulls, data_type)
        }
        (Data::Shifted { .. } | Data::Exact(_), _) => unreachable!("only exact numbers are wide"),
        (Data::Whole(packed), _) => whole(segment.kind(), packed.to_vec(), nulls),
        (Data::Scaled { .. }, _) => Arc::new(Float64Array::new(segment.to_floats().into(), nulls)),
        (Data::Float(values), _) => {
            let buffer = shared(bytes_of(&values[..rows]), segment.clone());
            Arc::new(Float64Array::new(ScalarBuffer::new(buffer, 0, rows), nulls))
        }
        (Data::Text(strings), Shown::View) => view(segment, |row| strings.get(row)),
        (Data::Text(strings), _) => Arc::new(string_array(strings, segment.clone(), nulls)),
        (Data::Codes(packed), Shown::Dictionary(values)) => {
            let codes: Vec<i32> = packed.to_vec().into_iter().map(|code| code as i32).collect();
            let codes = Int32Array::new(codes.into(), nulls);
            // Every code has a string, so this does not panic.
            Arc::new(DictionaryArray::new(codes, Arc::clone(values)))
        }
        (Data::Codes(packed), _) => {
            let Some(dictionary) = column.dictionary() else {
                unreachable!("codes have a dictionary")
            };
            view(segment, |row| dictionary.get(packed.get(row) as usize))
        }
    }
}

/// Makes an array of mantissas that fit the digits of the type.
pub(super) fn decimals(
    mantissas: Vec<i128>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> ArrayRef {
    let array = Decimal128Array::new(mantissas.into(), nulls);
    Arc::new(array.with_data_type(data_type.clone()))
}

/// Makes an array of integers, dates, timestamps or booleans, according to the type.
pub(super) fn whole(kind: Kind, numbers: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
    match kind {
        Kind::Boolean => {
            let bits: BooleanBuffer = numbers.into_iter().map(|bit| bit != 0).collect();
            Arc::new(BooleanArray::new(bits, nulls))
        }
        Kind::Date => {
            let days: Vec<i32> = numbers.into_iter().map(|day| day as i32).collect();
            Arc::new(Date32Array::new(days.into(), nulls))
        }
        Kind::Timestamp => Arc::new(TimestampNanosecondArray::new(numbers.into(), nulls)),
        Kind::Null => Arc::new(NullArray::new(numbers.len())),
        Kind::Integer | Kind::Decimal { .. } | Kind::Float | Kind::Text => {
            Arc::new(Int64Array::new(numbers.into(), nulls))
        }
    }
}

fn nulls(segment: &SegmentColumn) -> Option<NullBuffer> {
    if segment.valid().is_empty() {
        return None;
    }
    let words = Buffer::from_vec(segment.valid().to_vec());
    Some(NullBuffer::new(BooleanBuffer::new(words, 0, segment.rows())))
}

/// Makes an array of strings without a copy; `owner` keeps their bytes alive.
fn string_array(
    strings: &Strings,
    owner: Arc<dyn Allocation>,
    nulls: Option<NullBuffer>,
) -> StringArray {
    let ends = strings.ends().iter().map(|&end| end as i32);
    let offsets: Vec<i32> = std::iter::once(0).chain(ends).collect();
    let bytes = shared(strings.bytes(), owner);
    // SAFETY: the offsets begin with 0 and continue with the ends of `Strings`, which never decrease,
    // are character boundaries of UTF-8, end with the number of bytes and are at most `i32::MAX`.
    // `nulls` has a bit for each string: it is the validity of the segment with these strings, or
    // `None`.
    unsafe { StringArray::new_unchecked(OffsetBuffer::new_unchecked(offsets.into()), bytes, nulls) }
}

/// Makes an array of string views that stores each distinct string of the segment once.
fn view<'t>(segment: &SegmentColumn, text: impl Fn(usize) -> &'t str) -> ArrayRef {
    let mut views = StringViewBuilder::with_capacity(segment.rows()).with_deduplicate_strings();
    for row in 0..segment.rows() {
        views.append_option(segment.is_valid(row).then(|| text(row)));
    }
    Arc::new(views.finish())
}

/// Makes a buffer of the bytes without a copy; `owner` keeps them alive.
pub(super) fn shared(bytes: &[u8], owner: Arc<dyn Allocation>) -> Buffer {
    // SAFETY: a slice's pointer is not null and valid for its length. `owner` is the segment or
    // dictionary whose vector has the bytes; inside its `Arc` that never changes, so they stay
    // valid and unchanged until the buffer drops `owner`.
    unsafe { Buffer::from_custom_allocation(NonNull::from(bytes).cast(), bytes.len(), owner) }
}

fn bytes_of(values: &[f64]) -> &[u8] {
    // SAFETY: the floats are initialised, and valid for `size_of_val` bytes as long as `values` is
    // borrowed. They have no padding, every byte is a valid `u8`, and a `u8` is aligned anywhere.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
