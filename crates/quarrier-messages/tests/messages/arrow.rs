//! Every value survives the conversion from Arrow to a table and back.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Int32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int8Type, Int32Type};
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use quarrier_messages::column::Data;
use quarrier_messages::column::raw::SEGMENT_ROWS;
use quarrier_messages::{Error, Kind, Result, Table, Value};

use crate::pack::{FLOATS, same};

fn schema_of(batch: &RecordBatch) -> SchemaRef {
    batch.schema()
}

fn table(batches: Vec<RecordBatch>, workers: usize) -> Result<Table> {
    Table::from_batches(&schema_of(&batches[0]), batches.into_iter().map(Ok), workers)
}

fn one(array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("a", array)]).unwrap()
}

fn values(table: &Table, column: usize) -> Vec<Value> {
    (0..table.rows()).map(|row| table.value(row, column)).collect()
}

/// Reads an array, converts it back, and reads it again.
fn check(array: ArrayRef, kind: Kind, expected: &[Value]) -> Table {
    let first = table(vec![one(array)], 2).unwrap();
    let batches = first.batches();
    let again = Table::from_batches(&RecordBatchReader::schema(&batches), batches, 2).unwrap();
    for table in [&first, &again] {
        assert_eq!(table.schema().fields[0].kind, kind);
        let values = values(table, 0);
        let alike = values.iter().zip(expected).all(|(is, should)| same(is, should));
        assert!(alike && values.len() == expected.len(), "{values:?}, not {expected:?}");
    }
    first
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn every_numeric_type_maps_to_one_that_holds_it() {
    use Value::{Integer, Null};
    let small = [Integer(-1), Null, Integer(7)];
    check(Arc::new(Int8Array::from(vec![Some(-1), None, Some(7)])), Kind::Integer, &small);
    check(Arc::new(Int64Array::from(vec![Some(-1), None, Some(7)])), Kind::Integer, &small);
    let unsigned = UInt32Array::from(vec![u32::MAX, 0]);
    check(Arc::new(unsigned), Kind::Integer, &[Integer(u32::MAX.into()), Integer(0)]);
    let fits = UInt64Array::from(vec![Some(i64::MAX as u64), None]);
    check(Arc::new(fits), Kind::Integer, &[Integer(i64::MAX), Null]);
    let large = UInt64Array::from(vec![u64::MAX, 1]);
    let exact = |mantissa| Value::Decimal { mantissa, scale: 0 };
    check(Arc::new(large), Kind::Decimal { scale: 0 }, &[exact(u64::MAX.into()), exact(1)]);
    let halves = Float32Array::from(vec![Some(0.5), None]);
    check(Arc::new(halves), Kind::Float, &[Value::Float(0.5), Null]);
    let booleans = BooleanArray::from(vec![Some(true), None, Some(false)]);
    let truths = [Value::Boolean(true), Null, Value::Boolean(false)];
    check(Arc::new(booleans), Kind::Boolean, &truths);
    check(Arc::new(NullArray::new(3)), Kind::Null, &[Null, Null, Null]);
}

#[test]
fn exact_numbers_of_38_digits_stay_exact() {
    let decimals = |mantissas: Vec<i128>, precision, scale| -> ArrayRef {
        let array = Decimal128Array::from(mantissas);
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    };
    let exact = |mantissa, scale| Value::Decimal { mantissa, scale };
    let cents = [exact(125, 2), exact(-i128::from(i64::MAX), 2)];
    let kind = Kind::Decimal { scale: 2 };
    check(decimals(vec![125, -i128::from(i64::MAX)], 38, 2), kind, &cents);
    let hundreds = [Value::Integer(500), Value::Integer(-100)];
    check(decimals(vec![5, -1], 10, -2), Kind::Integer, &hundreds);
    let most = 10i128.pow(38) - 1;
    let extremes = vec![125, most, most - 1, -most];
    let expected: Vec<_> = extremes.iter().map(|&it| exact(it, 2)).collect();
    check(decimals(extremes, 38, 2), kind, &expected);
    let fine = Kind::Decimal { scale: 38 };
    check(decimals(vec![most, 1], 38, 38), fine, &[exact(most, 38), exact(1, 38)]);
    let large = vec![10i128.pow(36), 7];
    check(
        decimals(large, 37, -1),
        Kind::Decimal { scale: 0 },
        &[exact(10i128.pow(37), 0), exact(70, 0)],
    );
}

#[test]
fn numbers_beyond_38_digits_are_floats_and_counted() {
    let power = i256::from_i128(10).checked_pow(39).unwrap();
    let wide = |mantissas: Vec<i256>, scale| -> ArrayRef {
        let array = Decimal256Array::from(mantissas);
        Arc::new(array.with_precision_and_scale(76, scale).unwrap())
    };
    let fits = wide(vec![i256::from_i128(i128::from(u64::MAX) * 100)], 2);
    let exact = Value::Decimal { mantissa: i128::from(u64::MAX) * 100, scale: 2 };
    let table = check(fits, Kind::Decimal { scale: 2 }, &[exact]);
    assert_eq!(table.columns()[0].rounded(), 0);
    let beyond = wide(vec![power, power + i256::ONE, i256::from_i128(150)], 2);
    let floats = [1e37, 1e37, 1.5].map(Value::Float);
    let table = check(beyond, Kind::Float, &floats);
    assert_eq!(table.columns()[0].rounded(), 1);
    let table = check(wide(vec![power], 60), Kind::Float, &[Value::Float(1e-21)]);
    assert_eq!(table.columns()[0].rounded(), 0);
}

#[test]
fn days_and_times_count_from_1970_in_nanoseconds() {
    let days = Date32Array::from(vec![Some(-1), None]);
    check(Arc::new(days), Kind::Date, &[Value::Date(-1), Value::Null]);
    let noon = Date64Array::from(vec![43_200_000, -1]);
    check(Arc::new(noon), Kind::Date, &[Value::Date(0), Value::Date(-1)]);
    let seconds = TimestampSecondArray::from(vec![Some(1), None]).with_timezone("UTC");
    let kind = Kind::Timestamp;
    check(Arc::new(seconds), kind, &[Value::Timestamp(1_000_000_000), Value::Null]);
    let nanoseconds = TimestampNanosecondArray::from(vec![i64::MIN, i64::MAX]);
    let extremes = [Value::Timestamp(i64::MIN), Value::Timestamp(i64::MAX)];
    check(Arc::new(nanoseconds), kind, &extremes);
}

#[test]
fn strings_of_every_layout_are_strings() {
    let rows = vec![Some("b"), None, Some(""), Some("é, more than twelve bytes"), Some("b")];
    let expected: Vec<_> = rows.iter().map(|row| row.map_or(Value::Null, text)).collect();
    let arrays: [ArrayRef; 6] = [
        Arc::new(StringArray::from(rows.clone())),
        Arc::new(LargeStringArray::from(rows.clone())),
        Arc::new(StringViewArray::from(rows.clone())),
        Arc::new(rows.iter().map(|row| row.map(str::as_bytes)).collect::<BinaryArray>()),
        Arc::new(rows.iter().map(|row| row.map(str::as_bytes)).collect::<BinaryViewArray>()),
        Arc::new(rows.into_iter().collect::<DictionaryArray<Int8Type>>()),
    ];
    for array in arrays {
        check(array, Kind::Text, &expected);
    }
}

#[test]
fn dictionaries_of_numbers_are_numbers() {
    let keys = Int32Array::from(vec![Some(1), None, Some(0), Some(2)]);
    let numbers = Int64Array::from(vec![Some(10), Some(20), None]);
    let array = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(numbers)).unwrap();
    let expected = [Value::Integer(20), Value::Null, Value::Integer(10), Value::Null];
    check(Arc::new(array), Kind::Integer, &expected);
    let none: [Option<&str>; 2] = [None, None];
    let empty = none.into_iter().collect::<DictionaryArray<Int32Type>>();
    check(Arc::new(empty), Kind::Text, &[Value::Null, Value::Null]);
}

#[test]
fn floats_are_shared_with_arrow_and_survive_bit_for_bit() {
    let mut all = FLOATS.to_vec();
    all.push(0.1 + 0.2);
    let expected: Vec<_> = all.iter().map(|&float| Value::Float(float)).collect();
    let table = check(Arc::new(Float64Array::from(all)), Kind::Float, &expected);
    let Data::Float(lie) = table.columns()[0].segments()[0].data() else { panic!("not plain") };
    let batch = table.batches().next().unwrap().unwrap();
    let shown = batch.column(0).as_primitive::<Float64Type>();
    assert_eq!(shown.values().as_ptr(), lie.as_ptr());
    drop(table);
    assert_eq!(shown.value(4), 0.1);
}

#[test]
fn fields_of_structs_become_columns_and_are_null_where_the_struct_is() {
    let qty: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None]));
    let fields = vec![Field::new("qty", DataType::Int64, true)].into();
    let array = StructArray::new(fields, vec![qty], Some(vec![true, false, true].into()));
    let table = table(vec![one(Arc::new(array))], 1).unwrap();
    assert_eq!(&*table.schema().fields[0].name, "a.qty");
    assert_eq!(values(&table, 0), [Value::Integer(1), Value::Null, Value::Null]);
}

#[test]
fn batches_of_any_size_become_full_segments_in_order() {
    let rows = SEGMENT_ROWS as i64 * 2 + 500;
    let numbers: Vec<_> = (0..rows).collect();
    let batch = |numbers: &[i64]| {
        let a: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        let strings =
            numbers.iter().map(|number| (number % 9 > 0).then(|| (number % 70).to_string()));
        let b: ArrayRef = Arc::new(strings.collect::<StringArray>());
        RecordBatch::try_from_iter_with_nullable([("a", a, true), ("b", b, true)]).unwrap()
    };
    for size in [999, 65_536, 100_000, 1 << 20] {
        let table = table(numbers.chunks(size).map(batch).collect(), 3).unwrap();
        assert_eq!((table.rows(), table.segments()), (rows as u64, 3));
        for row in (0..rows).step_by(61) {
            assert_eq!(table.value(row as u64, 0), Value::Integer(row));
            let expected = if row % 9 > 0 { text(&(row % 70).to_string()) } else { Value::Null };
            assert_eq!(table.value(row as u64, 1), expected, "row {row}");
        }
        assert_eq!(table.columns()[1].dictionary().unwrap().len(), 70);
    }
}

#[test]
fn unsupported_columns_are_errors_that_name_them() {
    let refusal = |batch: RecordBatch| table(vec![batch], 2).unwrap_err().to_string();
    let mut list = FixedSizeListBuilder::new(Int32Builder::new(), 1);
    list.values().append_value(1);
    list.append(true);
    let list = refusal(one(Arc::new(list.finish())));
    assert!(list.starts_with("Arrow column a: has the type FixedSizeList"), "{list}");
    assert!(list.ends_with("leave it out, or cast it"), "{list}");
    let late = refusal(one(Arc::new(TimestampSecondArray::from(vec![0, i64::MAX]))));
    let outside = "row 1 is outside of the years 1677 to 2262; cast the column to text";
    assert_eq!(late, format!("Arrow column a: {outside}"));
    let bytes = refusal(one(Arc::new(BinaryArray::from_vec(vec![b"ok", b"\xff"]))));
    assert_eq!(bytes, "Arrow column a: row 1 is not UTF-8; leave the column out");
    let fields = vec![Field::new("a", DataType::Int64, true); 2];
    let twice = Table::from_batches(&Arc::new(Schema::new(fields)), std::iter::empty(), 1);
    assert!(matches!(twice, Err(Error::ArrowColumn { name, .. }) if name == "a"));
}

#[test]
fn entries_of_a_dictionary_without_rows_decide_nothing() {
    let seconds = TimestampSecondArray::from(vec![i64::MAX, 5, i64::MIN]);
    let of = |keys: Vec<Option<i32>>| -> ArrayRef {
        Arc::new(DictionaryArray::new(Int32Array::from(keys), Arc::new(seconds.clone())))
    };
    let good = table(vec![one(of(vec![Some(1), None, Some(1)]))], 2).unwrap();
    let time = Value::Timestamp(5_000_000_000);
    assert_eq!(values(&good, 0), [time.clone(), Value::Null, time]);
    let late = table(vec![one(of(vec![None, Some(1), Some(2)]))], 2).unwrap_err().to_string();
    assert!(late.starts_with("Arrow column a: row 2 is outside of the years"), "{late}");
    // An entry of more than 38 digits makes floats of a column only where a row has it.
    let digits = Decimal256Array::from(vec![i256::from_i128(7), i256::MAX]);
    let digits = digits.with_precision_and_scale(76, 0).unwrap();
    let digits = Arc::new(digits);
    let dictionary = DictionaryArray::new(Int8Array::from(vec![0, 0]), digits);
    let exact = table(vec![one(Arc::new(dictionary))], 2).unwrap();
    assert_eq!(values(&exact, 0), [Value::Integer(7), Value::Integer(7)]);
}

#[test]
fn a_truncated_source_is_an_error() {
    let good = one(Arc::new(Int64Array::from(vec![1])));
    let schema = good.schema();
    let broken = Err(arrow_schema::ArrowError::ComputeError("gone".into()));
    let result = Table::from_batches(&schema, [Ok(good), broken].into_iter(), 2);
    assert!(result.unwrap_err().to_string().contains("gone"));
    let none = Table::from_batches(&schema, std::iter::empty(), 2).unwrap();
    assert_eq!((none.rows(), none.schema().fields[0].kind), (0, Kind::Integer));
}
