//! Parquet files of orders.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

use super::lab::{Draw, Lab};

/// The rows of a row group.
const GROUP_ROWS: usize = 300;

/// Writes a file with these rows in several row groups. Returns its size in bytes.
pub(crate) fn write(lab: &Lab, name: &str, columns: Vec<(&str, ArrayRef)>) -> u64 {
    let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
    let path = lab.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(GROUP_ROWS)).build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path.metadata().unwrap().len()
}

/// Writes `orders/0.parquet` and so on, and `small.parquet`. Returns the size of a file.
pub(crate) fn write_all(lab: &Lab, files: i64, rows: i64) -> u64 {
    let symbols = ["ABC", "ABD", "XYZ", "A_C", "a long symbol that is not inlined"];
    let mut size = 0;
    for file in 0..files {
        let mut draw = Draw::new(file as u64 + 3);
        let ids: Vec<i64> = (file * rows..(file + 1) * rows).collect();
        let symbol = |id: &i64| (id % 7 != 0).then(|| symbols[(id % 5) as usize]);
        let qty: Vec<Option<i32>> =
            ids.iter().map(|id| (id % 11 != 0).then(|| draw.below(1_000) as i32)).collect();
        let price: Vec<i128> = ids.iter().map(|_| i128::from(draw.below(100_000))).collect();
        let rate: Vec<f64> = ids.iter().map(|id| *id as f64 / 7.0).collect();
        let price = Decimal128Array::from(price).with_precision_and_scale(15, 2).unwrap();
        let days: Vec<i32> = ids.iter().map(|id| 19_000 + (id % 400) as i32).collect();
        let notes: Vec<String> = ids.iter().map(|id| format!("note number {}", id % 50)).collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("symbol", Arc::new(ids.iter().map(symbol).collect::<StringArray>())),
            ("qty", Arc::new(Int32Array::from(qty))),
            ("price", Arc::new(price)),
            ("rate", Arc::new(Float64Array::from(rate))),
            ("day", Arc::new(Date32Array::from(days))),
            ("open", Arc::new(ids.iter().map(|id| Some(id % 3 == 0)).collect::<BooleanArray>())),
            ("note", Arc::new(StringArray::from(notes))),
            ("id", Arc::new(Int64Array::from(ids))),
        ];
        size = write(lab, &format!("orders/{file}.parquet"), columns);
    }
    let names: Vec<String> = symbols.iter().map(|symbol| format!("the {symbol}")).collect();
    let small: Vec<(&str, ArrayRef)> = vec![
        ("symbol", Arc::new(StringArray::from(symbols.to_vec()))),
        ("name", Arc::new(StringArray::from(names))),
    ];
    write(lab, "small.parquet", small);
    size
}
