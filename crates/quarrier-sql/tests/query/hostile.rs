//! Arrow and Parquet files with wrong lengths, offsets, counts and types give an answer, or one
//! line that names the file, and never a panic.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array,
    Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray, StringViewArray,
    StructArray, TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use quarrier_core::threads;

use crate::harness::{Folder, text};
use crate::random::Random;

/// The number of mutants of each seed.
const MUTANTS: usize = 150;

/// A few rows of all types that differ in layout.
fn batch() -> RecordBatch {
    const ROWS: usize = 24;
    let rows = 0..ROWS as i64;
    let note = |row: i64| (row % 5 != 0).then(|| format!("note {row} that is too long for a view"));
    let keys: DictionaryArray<Int32Type> =
        rows.clone().map(|row| ["a", "bb", "ccc"][row as usize % 3]).collect();
    let lists = rows.clone().map(|row| (row % 4 != 0).then(|| vec![Some(row as i32), None]));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter(rows.clone().map(|row| Some(row * 7))));
    let truths: BooleanArray = rows.clone().map(|row| (row % 3 != 0).then_some(row > 9)).collect();
    let decimals = Decimal128Array::from_iter(rows.clone().map(|row| Some(i128::from(row) << 70)));
    let decimals = decimals.with_precision_and_scale(38, 2).unwrap();
    let bytes = rows.clone().map(|row| Some([row as u8; 4]));
    let bytes = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 4).unwrap();
    let part = Arc::new(Field::new("qty", DataType::Int64, true));
    let parts = StructArray::from(vec![(part, Arc::clone(&numbers))]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", numbers),
        ("truth", Arc::new(truths)),
        ("note", Arc::new(StringArray::from_iter(rows.clone().map(note)))),
        ("large", Arc::new(LargeStringArray::from_iter(rows.clone().map(note)))),
        ("view", Arc::new(StringViewArray::from_iter(rows.clone().map(note)))),
        ("key", Arc::new(keys)),
        ("list", Arc::new(lists)),
        ("part", Arc::new(parts)),
        ("price", Arc::new(decimals)),
        ("float", Arc::new(Float64Array::from_iter(rows.clone().map(|row| Some(row as f64))))),
        ("bytes", Arc::new(bytes)),
        ("at", Arc::new(TimestampNanosecondArray::from_iter(rows.map(|row| Some(row << 40))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The columns that the Arrow loader supports: all except lists and binary.
fn loaded() -> RecordBatch {
    let (batch, mut wanted) = (batch(), Vec::new());
    for (place, field) in batch.schema().fields().iter().enumerate() {
        wanted.extend((!matches!(&**field.name(), "list" | "bytes")).then_some(place));
    }
    batch.project(&wanted).unwrap()
}

fn arrow_file(options: IpcWriteOptions) -> Vec<u8> {
    let mut writer =
        FileWriter::try_new_with_options(Vec::new(), &loaded().schema(), options).unwrap();
    writer.write(&loaded()).unwrap();
    writer.write(&loaded().slice(3, 9)).unwrap();
    writer.into_inner().unwrap()
}

fn arrow_stream() -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &loaded().schema()).unwrap();
    writer.write(&loaded()).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(properties: WriterProperties) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
    file
}

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let zstd = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD));
    let plain = WriterProperties::builder().set_dictionary_enabled(false);
    let packed = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(7)
        .set_write_batch_size(7);
    vec![
        ("file.arrow", arrow_file(IpcWriteOptions::default())),
        ("zstd.arrow", arrow_file(zstd.unwrap())),
        ("stream.arrows", arrow_stream()),
        ("plain.parquet", parquet(plain.build())),
        ("packed.parquet", parquet(packed.build())),
    ]
}

/// Mutates a word that looks like a length, offset or count, or any byte. In small files, most such
/// words are metadata.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    let width = [4, 8][random.below(2)];
    for _ in 0..200 {
        let at = random.below(bytes.len() / width) * width;
        let mut word = [0; 8];
        word[..width].copy_from_slice(&bytes[at..at + width]);
        let value = u64::from_le_bytes(word);
        if value == 0 || value > 2 * bytes.len() as u64 {
            continue;
        }
        let other = random.next();
        let values = [
            0,
            1,
            value + 1,
            value - 1,
            value * 2,
            value / 2,
            value + 8,
            bytes.len() as u64,
            u64::MAX,
            i64::MAX as u64,
            1 << 63,
            i32::MAX as u64,
            1 << 31,
            1 << 40,
            other % 256,
            other,
        ];
        let value = values[random.below(values.len())].to_le_bytes();
        bytes[at..at + width].copy_from_slice(&value[..width]);
        return;
    }
}

fn mutant(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        match random.below(4) {
            0 => {
                // Parquet's metadata consists of bytes, and is at the end.
                let end = bytes.len();
                let at = [random.below(end), end - 1 - random.below(end / 2)][random.below(2)];
                bytes[at] = [0, 1, 0x7F, 0xFF, bytes[at] ^ 1 << random.below(8)][random.below(5)];
            }
            _ => mutate(&mut bytes, random),
        }
    }
    bytes
}

/// Runs several statements in one process.
fn asked(folder: &Folder, statements: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .current_dir(folder.path(""))
        .args(["--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = statements.to_string();
    let writing = threads::alone("", move || {
        // The exit code shows a program that ended early.
        let _ = input.write_all(text.as_bytes());
    })
    .unwrap();
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

/// The lines of the output that name no file.
fn unlike_a_line(output: &Output) -> Vec<String> {
    let said = text(&output.stderr);
    let is_note = |line: &str| line.starts_with("quarrier: ") && line.contains(" lost digits: ");
    let names_it = |line: &&str| {
        let reason =
            line.strip_prefix("quarrier: statement ").and_then(|line| line.split_once("): "));
        let is_named = reason.is_some_and(|(_, reason)| {
            reason.contains("mutant-") || reason.starts_with("there is no column 'key'")
        });
        (is_named && line.len() < 2_000 && !line.contains("internal error")) || is_note(line)
    };
    let mut unlike: Vec<String> =
        said.lines().filter(|line| !names_it(line)).map(ToString::to_string).collect();
    if !matches!(output.status.code(), Some(0 | 2)) {
        unlike.push(format!("ended with {:?}", output.status));
    }
    unlike
}

#[test]
fn files_that_lie_are_an_answer_or_a_line_that_names_them() {
    let count = std::env::var("MUTANTS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(MUTANTS);
    let mut problems = Vec::new();
    for (name, seed) in seeds() {
        let (folder, mut random) = (Folder::new(), Random::new(seed.len() as u64));
        std::fs::write(folder.path(name), &seed).unwrap();
        let whole = asked(&folder, &format!("SELECT * FROM '{name}';\n"));
        assert!(whole.status.success(), "{name}: {whole:?}");
        let mut statements = String::new();
        for number in 0..count {
            let file = format!("mutant-{number}-{name}");
            std::fs::write(folder.path(&file), mutant(&seed, &mut random)).unwrap();
            statements += &format!("SELECT * FROM '{file}';\n");
            statements += &format!("SELECT max(view) FROM '{file}' WHERE id > 3 OR key = 'a';\n");
        }
        let output = asked(&folder, &statements);
        let refused = text(&output.stderr).lines().count();
        assert!(refused > 0, "{name}: nothing was refused, so nothing was tried");
        problems.extend(unlike_a_line(&output).into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
