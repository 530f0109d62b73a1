//! Parquet loads as the same table with any codec and number of workers.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use quarrier_core::source::Memory;
use quarrier_messages::{Error, Field, Format, Kind, Limits, Load, Schema, Table, Value};
use quarrier_parquet::Reader;

const ROWS: i64 = 100_000;

fn batch() -> RecordBatch {
    let id: Int64Array = (0..ROWS).map(|row| (row % 7 != 0).then_some(row)).collect();
    let price: Float64Array = (0..ROWS).map(|row| Some(row as f64 / 4.0)).collect();
    let note: StringArray = (0..ROWS).map(|row| Some(format!("note {}", row % 1_000))).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("id", Arc::new(id)), ("price", Arc::new(price)), ("note", Arc::new(note))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The values of a row of [`batch`] in the loaded table.
fn expected(row: i64) -> [Value; 3] {
    let id = if row % 7 == 0 { Value::Null } else { Value::Integer(row) };
    [id, Value::Float(row as f64 / 4.0), Value::Text(format!("note {}", row % 1_000).into())]
}

fn file(codec: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_max_row_group_row_count(Some(17_000))
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
    file
}

fn load<'l>() -> Load<'l> {
    Load::new(Format::Parquet).parquet(&Reader)
}

fn check(table: &Table) {
    assert_eq!(table.rows(), ROWS as u64);
    for row in 0..ROWS {
        let found = [0, 1, 2].map(|column| table.value(row as u64, column));
        assert_eq!(found, expected(row), "row {row}");
    }
}

#[test]
fn every_codec_gives_the_same_rows_in_order() {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        for workers in [1, 3] {
            let file = file(codec);
            let loaded = load().workers(workers).run(&[&Memory::new("p", &*file)]).unwrap();
            check(&loaded.table);
            assert_eq!(loaded.bytes, file.len() as u64, "{codec:?} {workers}");
        }
    }
}

#[test]
fn unrequested_columns_are_skipped_and_sources_concatenated() {
    let file = Memory::new("a.parquet", file(Compression::SNAPPY));
    let field = |name: &str| Field { name: name.into(), kind: Kind::Float };
    let loaded =
        load().schema(Schema { fields: vec![field("price")] }).run(&[&file, &file]).unwrap();
    assert_eq!(loaded.table.schema().fields, [field("price")]);
    assert_eq!(loaded.table.rows(), 2 * ROWS as u64);
    let limits = Limits { columns_max: 1, ..Limits::default() };
    let loaded = load().limits(limits).run(&[&file]).unwrap();
    assert_eq!(loaded.table.schema().fields.len(), 1);
    assert_eq!(loaded.refused.count, 2);
}

#[test]
fn damaged_files_are_errors_that_name_them() {
    let whole = file(Compression::SNAPPY);
    for length in [0, 1, 7, 100, whole.len() / 2, whole.len() - 20] {
        let cut = Memory::new("cut", whole[..length].to_vec());
        let error = load().run(&[&cut]).unwrap_err();
        assert!(error.to_string().starts_with("cut: "), "{error}");
    }
    // The outcome does not matter, as long as the load ends.
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut wrong = whole.clone();
        wrong[at] ^= 0x55;
        let _ = load().workers(2).run(&[&Memory::new("wrong", wrong)]);
    }
}

#[test]
fn stopped_loads_end_with_cancelled() {
    let stop = AtomicBool::new(true);
    let file = Memory::new("p", file(Compression::SNAPPY));
    let error = load().workers(2).cancel(&stop).run(&[&file]).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}
