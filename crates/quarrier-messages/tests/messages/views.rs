//! Record batches for query engines have the rows of the table, whichever are requested.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    RecordBatch, StringArray,
};
use proptest::prelude::*;
use quarrier_messages::{Format, Load, Packing, Places, Table, Value, Views};

/// Makes a table of every type, with and without NULL; repeated and unique strings, short and long.
fn table(rows: usize, seed: u64) -> Table {
    let there = |row: usize, nth: u64| (row as u64).wrapping_mul(seed | 1) >> (3 + nth) & 3 != 0;
    let each = |nth: u64| (0..rows).map(move |row| there(row, nth).then_some(row));
    let long = |row: usize| format!("{row} {}", "ßound ".repeat(row % 5));
    let decimals: Decimal128Array = each(0).map(|row| Some(row? as i128 * 7 - 50)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("whole", Arc::new((0..rows as i64).collect::<Int64Array>())),
        ("decimal", Arc::new(decimals.with_precision_and_scale(19, 2).unwrap())),
        (
            "float",
            Arc::new(each(1).map(|row| Some((row? as f64).sqrt())).collect::<Float64Array>()),
        ),
        ("day", Arc::new(each(2).map(|row| Some(row? as i32 - 9)).collect::<Date32Array>())),
        ("flag", Arc::new(each(3).map(|row| Some(row? % 3 == 0)).collect::<BooleanArray>())),
        (
            "few",
            Arc::new(each(4).map(|row| Some(["a", "", "é"][row? % 3])).collect::<StringArray>()),
        ),
        ("again", Arc::new(each(5).map(|row| Some(long(row? % 20))).collect::<StringArray>())),
        ("short", Arc::new(each(6).map(|row| Some(row?.to_string())).collect::<StringArray>())),
        ("long", Arc::new(each(7).map(|row| Some(long(row?))).collect::<StringArray>())),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    Table::from_batches(&batch.schema(), [Ok(batch)].into_iter(), 2).unwrap()
}

/// Converts a batch back to a table.
fn read(batch: RecordBatch) -> Table {
    Table::from_batches(&batch.schema(), [Ok(batch)].into_iter(), 1).unwrap()
}

fn check(views: &Views, places: &Places<'_>, rows: &[usize]) {
    let table = views.table();
    let columns: Vec<usize> = (0..table.columns().len()).collect();
    let batch = views.batch(views.schema(), &columns, 0, places).unwrap();
    assert_eq!(batch.num_rows(), rows.len());
    for array in batch.columns() {
        // The conversion does not validate views.
        array.to_data().validate_full().unwrap();
    }
    let found = read(batch);
    for (at, &row) in rows.iter().enumerate() {
        for &column in &columns {
            let (is, should) = (found.value(at as u64, column), table.value(row as u64, column));
            assert_eq!(is, should, "column {column} of row {row}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_of_a_segment_equal_those_of_the_table(
        rows in 1..3_000_usize,
        seed: u64,
        of in 1..40_usize,
        cut in 0.0..1.0,
    ) {
        let views = Views::new(Arc::new(table(rows, seed)));
        let start = ((rows as f64) * cut) as usize;
        for range in [0..rows, start..rows, 0..start, start..start] {
            check(&views, &Places::Range(range.clone()), &range.collect::<Vec<_>>());
        }
        let some: Vec<usize> = (start..rows).filter(|row| (row ^ seed as usize).is_multiple_of(of)).collect();
        let places: Vec<u32> = some.iter().map(|&row| row as u32).collect();
        check(&views, &Places::These(&places), &some);
        let (mut back, mut reversed) = (some, places);
        back.reverse();
        reversed.reverse();
        check(&views, &Places::These(&reversed), &back);
    }
}

#[test]
fn values_are_decoded_from_their_numbers() {
    let table = Arc::new(table(500, 3));
    let views = Views::new(Arc::clone(&table));
    let dictionary = table.columns()[5].dictionary().unwrap();
    let codes: Vec<Option<i64>> = [Some(2), None, Some(0)].into();
    let strings = views.values(5, &codes);
    let strings: Vec<Option<&str>> = strings.as_string_view().iter().collect();
    assert_eq!(strings, [Some(dictionary.get(2)), None, Some(dictionary.get(0))]);
    for (column, expected) in [
        (0, Value::Integer(1)),
        (1, Value::Decimal { mantissa: 1, scale: 2 }),
        (3, Value::Date(1)),
        (4, Value::Boolean(true)),
    ] {
        let name = views.schema().field(column).name();
        let array = views.values(column, &[Some(1), None]);
        let found = read(RecordBatch::try_from_iter([(name, array)]).unwrap());
        assert_eq!([found.value(0, 0), found.value(1, 0)], [expected, Value::Null], "{name}");
    }
}

/// Makes a table with a string of 100 kB in every `every`-th row, NULL in the others, and a number.
fn notes(every: usize, packing: Packing) -> Table {
    let note = |row: usize| match row.is_multiple_of(every) {
        true => format!("\"{}{}\"", row / every % 3, "n".repeat(100_000)),
        false => "null".into(),
    };
    let lines: String =
        (0..4_000).map(|row| format!("{{\"k\":{row},\"t\":{}}}\n", note(row))).collect();
    let load = Load::new(Format::Json).workers(1).packing(packing);
    load.run_stream("notes", &mut lines.as_bytes()).unwrap().table
}

#[test]
fn a_string_is_copied_once_for_the_rows_that_share_it() {
    let table = Arc::new(notes(1_000, Packing::default()));
    let views = Views::new(Arc::clone(&table));
    let sparse: Vec<u32> = (0..4_000).filter(|row| row % 2 == 0).collect();
    let nulls: Vec<u32> = (0..4_000).filter(|row| row % 1_000 > 0).collect();
    let back: Vec<u32> = (0..4_000).rev().collect();
    for (places, distinct) in [
        (Places::Range(0..4_000), 3),
        (Places::Range(1..10), 0),
        (Places::These(&sparse), 3),
        (Places::These(&nulls), 0),
        (Places::These(&back), 3),
    ] {
        let batch = views.batch(views.schema(), &[0, 1], 0, &places).unwrap();
        let array = batch.column(1).as_string_view();
        let bytes: usize = array.data_buffers().iter().map(|buffer| buffer.len()).sum();
        assert_eq!(bytes, distinct * 100_001, "{places:?}");
        array.to_data().validate_full().unwrap();
    }
}

#[test]
fn columns_with_codes_and_plain_strings_keep_values_and_size() {
    let packing = Packing {
        segment_rows: 300,
        dictionary_bytes: 250_000,
        spelled_bytes: 0,
        ..Packing::default()
    };
    let table = notes(10, packing);
    assert!(table.columns()[1].is_mixed());
    let rows: Vec<u64> = (0..table.rows()).collect();
    let taken = table.take(&rows, &[0, 1], 2);
    // Strings with a code are not copied next to plain ones.
    assert!(taken.nbytes() < table.nbytes() + (1 << 20), "{} bytes", taken.nbytes());
    let views = Views::new(Arc::new(table.clone()));
    let batches = table.batches().map(Result::unwrap);
    for (segment, batch) in batches.enumerate() {
        let places: Vec<u32> = (0..table.segment_rows(segment) as u32).rev().collect();
        let viewed = views.batch(views.schema(), &[0, 1], segment, &Places::These(&places));
        let viewed = viewed.unwrap();
        for (at, &place) in places.iter().enumerate() {
            let row = table.segment_start(segment) + u64::from(place);
            let Value::Text(expected) = table.value(row, 1) else {
                assert!(batch.column(1).is_null(place as usize) && viewed.column(1).is_null(at));
                continue;
            };
            assert_eq!(taken.value(row, 1), Value::Text(expected.clone()));
            assert_eq!(batch.column(1).as_string_view().value(place as usize), &*expected);
            assert_eq!(viewed.column(1).as_string_view().value(at), &*expected);
        }
    }
}
