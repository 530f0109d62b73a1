//! Any bytes as Arrow and as Parquet, as queries load them: no panic escapes, an error names the
//! source or column, and neither workers nor pieces of rows affect the result. The seeds are files
//! of all column types with a few mutated words in their metadata.

use std::sync::Arc;

use quarrier_core::source::Memory;
use quarrier_messages::{Format, Load, Loaded, Places, Table, Views};

use crate::{Target, Verdict};

/// Arrow, as a file and as a stream.
pub const ARROW: Target =
    Target { name: "arrow", run: run_arrow, once: &[], seeds: ARROW_SEEDS, words: WORDS };

/// Parquet.
pub const PARQUET: Target =
    Target { name: "parquet", run: run_parquet, once: &[], seeds: PARQUET_SEEDS, words: WORDS };

const ARROW_SEEDS: &[&[u8]] = &[
    include_bytes!("../seeds/file.arrow"),
    include_bytes!("../seeds/zstd.arrow"),
    include_bytes!("../seeds/stream.arrows"),
];

const PARQUET_SEEDS: &[&[u8]] =
    &[include_bytes!("../seeds/plain.parquet"), include_bytes!("../seeds/zstd.parquet")];

/// Lengths, offsets and counts, in the encodings of flatbuffers and of Thrift.
const WORDS: &[&[u8]] = &[
    &[0; 4],
    &[0xFF; 4],
    &[0xFF; 8],
    &[0xFF, 0xFF, 0xFF, 0x7F],
    &[0, 0, 0, 0x80],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    &[0, 0, 0, 0, 0, 0, 0, 0x80],
    &[0, 0, 0, 0, 0, 1, 0, 0],
    &[8, 0, 0, 0],
    &[12, 0, 0, 0, 0, 0, 0, 0],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
    &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
    &[0x80, 0x80, 0x04],
    b"ARROW1",
    b"PAR1",
];

const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Pieces of one batch, or row group, each.
const PIECE_BYTES: usize = 1;

/// Loads `bytes` as Arrow.
///
/// # Panics
/// If two ways of loading them differ.
pub fn run_arrow(bytes: &[u8]) -> Verdict {
    run(bytes, Format::Arrow)
}

/// Loads `bytes` as Parquet.
///
/// # Panics
/// If two ways of loading them differ.
pub fn run_parquet(bytes: &[u8]) -> Verdict {
    run(bytes, Format::Parquet)
}

fn run(bytes: &[u8], format: Format) -> Verdict {
    if bytes.len() > INPUT_BYTES_MAX {
        return Verdict::Skipped;
    }
    let source = Memory::new("fuzz", bytes);
    let load = Load::new(format).parquet(&quarrier_parquet::Reader).workers(1);
    let loaded = match load.run(&[&source]) {
        Ok(loaded) => loaded,
        Err(error) => {
            let said = error.to_string();
            let is_told = said.starts_with("fuzz: ") || said.starts_with("Arrow column ");
            assert!(is_told && said.len() < 2_000, "{said}");
            assert!(load.workers(2).run(&[&source]).is_err());
            return Verdict::Skipped;
        }
    };
    let rows = shown(&[&loaded.table]);
    let twice = load.clone().workers(2).run(&[&source]).expect("as with one worker");
    assert_eq!(shown(&[&twice.table]), rows);
    let mut pieces: Vec<Loaded> = Vec::new();
    let rest = load.run_in_pieces(&[&source], PIECE_BYTES, &mut |piece| {
        pieces.push(piece);
        Ok(())
    });
    pieces.push(rest.expect("as in one piece"));
    let pieces: Vec<&Table> = pieces.iter().map(|piece| &piece.table).collect();
    // Each piece has the types that its own values require.
    if pieces.iter().all(|piece| piece.schema() == loaded.table.schema()) {
        assert_eq!(shown(&pieces), rows);
    }
    assert_eq!(pieces.iter().map(|piece| piece.rows()).sum::<u64>(), loaded.table.rows());
    check_views(loaded.table);
    Verdict::Checked
}

/// Formats the values, with NaN as NaN.
fn shown(tables: &[&Table]) -> String {
    let row = |table: &Table, row| {
        let columns = table.schema().fields.len();
        format!("{:?}\n", (0..columns).map(|column| table.value(row, column)).collect::<Vec<_>>())
    };
    tables.iter().flat_map(|table| (0..table.rows()).map(move |at| row(table, at))).collect()
}

/// Makes batches of all rows, as the scans of queries do.
fn check_views(table: Table) {
    let views = Views::new(Arc::new(table));
    let columns: Vec<usize> = (0..views.schema().fields().len()).collect();
    for segment in 0..views.table().segments() {
        let rows = views.table().segment_rows(segment);
        let places = Places::Range(0..rows);
        let batch = views.batch(views.schema(), &columns, segment, &places);
        assert_eq!(batch.expect("the schema is its own").num_rows(), rows);
    }
}
