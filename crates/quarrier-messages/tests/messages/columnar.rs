//! Arrow IPC yields the same table as a file or a stream, with any codec.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use quarrier_core::source::Memory;
use quarrier_messages::{Error, Field, Format, HiddenColumns, Kind, Limits, Load, Schema, Value};

use crate::formats::{load, rows};

const ROWS: i64 = 100_000;

fn batch() -> RecordBatch {
    let id: Int64Array = (0..ROWS).map(|row| (row % 7 != 0).then_some(row)).collect();
    let price: Float64Array = (0..ROWS).map(|row| Some(row as f64 / 4.0)).collect();
    let note: StringArray = (0..ROWS).map(|row| Some(format!("note {}", row % 1_000))).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("id", Arc::new(id)), ("price", Arc::new(price)), ("note", Arc::new(note))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn arrow_file(codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut file = Vec::new();
    let schema = batch().schema();
    let mut writer = FileWriter::try_new_with_options(&mut file, &schema, options).unwrap();
    for from in (0..ROWS as usize).step_by(30_000) {
        writer.write(&batch().slice(from, 30_000.min(ROWS as usize - from))).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    file
}

fn arrow_stream() -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    drop(writer);
    stream
}

#[test]
fn every_codec_gives_the_same_rows_in_order() {
    let stream = load(&Format::Arrow, &arrow_stream());
    let expected = rows(&stream);
    assert_eq!(expected[15], r#"id=15 price=3.75f note="note 15""#);
    assert_eq!(expected[14], r#"price=3.5f note="note 14""#);
    assert_eq!(expected.len(), ROWS as usize);
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        assert!(rows(&load(&Format::Arrow, &arrow_file(codec))) == expected, "{codec:?}");
    }
}

#[test]
fn rows_have_numbers_as_their_lines_and_no_bytes() {
    let all = HiddenColumns { line: true, offset: true, message: true, list_ends: true };
    let line = HiddenColumns { line: true, ..HiddenColumns::default() };
    let (one, two) = (Memory::new("1", arrow_file(None)), Memory::new("2", arrow_stream()));
    let load = Load::new(Format::Arrow).workers(2).hidden(all);
    let mut tables = Vec::new();
    let rest = load.run_in_pieces(&[&one, &two], 1 << 20, &mut |piece| {
        tables.push(piece.table);
        Ok(())
    });
    tables.push(rest.unwrap().table);
    assert!(tables.len() > 1);
    let mut lines = (1..=ROWS).chain(1..=ROWS);
    for table in tables {
        assert_eq!((table.hidden(), table.visible()), (line, 3));
        assert_eq!(&*table.schema().fields[3].name, "_line");
        for row in 0..table.rows() {
            assert_eq!(Value::Integer(lines.next().unwrap()), table.value(row, 3));
        }
    }
    assert_eq!(lines.next(), None);
    let names: Int64Array = [7, 8].into_iter().map(Some).collect();
    let taken = RecordBatch::try_from_iter([("_line", Arc::new(names) as ArrayRef)]).unwrap();
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, &taken.schema()).unwrap();
    writer.write(&taken).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let loaded = load.run(&[&Memory::new("3", stream)]).unwrap();
    assert_eq!((loaded.refused.count, &*loaded.refused.names[0]), (1, "_line"));
    assert_eq!(loaded.table.value(1, 0), Value::Integer(2));
}

#[test]
fn unrequested_columns_are_dropped_and_sources_are_concatenated() {
    let file = Memory::new("a.arrow", arrow_file(None));
    let field = |name: &str| Field { name: name.into(), kind: Kind::Float };
    let schema = Schema { fields: vec![field("price")] };
    let loaded = Load::new(Format::Arrow).schema(schema).run(&[&file, &file]).unwrap();
    assert_eq!(loaded.table.schema().fields, [field("price")]);
    assert_eq!(loaded.table.rows(), 2 * ROWS as u64);
    let limits = Limits { columns_max: 1, ..Limits::default() };
    let loaded = Load::new(Format::Arrow).limits(limits).run(&[&file]).unwrap();
    assert_eq!(loaded.table.schema().fields.len(), 1);
    assert_eq!(loaded.refused.count, 2);
}

#[test]
fn errors_of_damaged_files_name_them() {
    let formats =
        [(Format::Arrow, arrow_file(Some(CompressionType::ZSTD))), (Format::Arrow, arrow_stream())];
    for (format, whole) in formats {
        for length in [0, 1, 7, 100, whole.len() / 2, whole.len() - 20] {
            let cut = Memory::new("cut", whole[..length].to_vec());
            if let Err(error) = Load::new(format.clone()).run(&[&cut]) {
                assert!(error.to_string().contains("cut"), "{error}");
            }
        }
        // The result does not matter, as long as the load ends.
        for at in (0..whole.len()).step_by(whole.len() / 40) {
            let mut wrong = whole.clone();
            wrong[at] ^= 0x55;
            let _ = Load::new(format.clone()).workers(2).run(&[&Memory::new("wrong", wrong)]);
        }
    }
}

#[test]
fn a_columnar_stream_is_read_up_to_a_limit() {
    let bytes = arrow_stream();
    let bound =
        |columnar_stream_bytes_max| Limits { columnar_stream_bytes_max, ..Limits::default() };
    let load = |limits| Load::new(Format::Arrow).limits(limits).run_stream("-", &mut &*bytes);
    assert_eq!(load(bound(bytes.len() as u64)).unwrap().table.rows(), ROWS as u64);
    let error = load(bound(bytes.len() as u64 - 1)).unwrap_err().to_string();
    assert!(error.starts_with("-: ") && error.contains("save it as a file"), "{error}");
}

#[test]
fn a_cancelled_columnar_load_is_a_cancellation_error() {
    let stop = AtomicBool::new(true);
    let load = Load::new(Format::Arrow).workers(2).cancel(&stop);
    let error = load.run(&[&Memory::new("columns", arrow_file(None))]).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[test]
fn parquet_without_a_reader_is_an_error() {
    let error = Load::new(Format::Parquet).run(&[&Memory::new("p", "PAR1")]).unwrap_err();
    assert!(error.to_string().starts_with("p: it is Parquet"), "{error}");
}
