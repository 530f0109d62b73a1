//! Data folders on disks in memory, and their contents.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quarrier_core::source::{Memory, Source};
use quarrier_messages::kept::{LoadOptions, LoadWatch, Origin, Progress, Store, Stored};
use quarrier_messages::log::Options;
use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::{Format, Load, Result, Table};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Records the number of messages on the disk.
pub(crate) struct Acknowledged(pub(crate) Arc<AtomicU64>);

impl LoadWatch for Acknowledged {
    fn progressed(&mut self, progress: &Progress) {
        self.0.store(progress.messages, Ordering::SeqCst);
    }
}

/// Small segments, to get many of them.
pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.write_bytes = 4 << 10;
    options
}

pub(crate) fn open(disk: &FaultyDisk) -> Result<Store> {
    Store::open_on(Arc::new(disk.clone()), Arc::new(disk.clone()), options())
}

/// Small batches, made by two workers.
pub(crate) fn small(format: Format) -> LoadOptions {
    let mut load = LoadOptions::new(format);
    load.batch_bytes = 600;
    load.workers = 2;
    load
}

pub(crate) fn load(store: &Store, name: &str, bytes: &[u8], how: &LoadOptions) -> Result<Stored> {
    let source = Memory::new(name, bytes.to_vec());
    let origin = Origin::Source { source: &source, identity: Some(name) };
    store.load("t", origin, how, &AtomicBool::new(false), &mut ())
}

pub(crate) fn table(store: &Store) -> Arc<Table> {
    store.table("t", 2, &AtomicBool::new(false)).unwrap()
}

/// Like `table`, but built by this thread alone.
pub(crate) fn alone(store: &Store) -> Result<Arc<Table>> {
    store.table("t", 1, &AtomicBool::new(false))
}

/// Loads the same messages at once, without a log.
pub(crate) fn at_once(files: &[&[u8]], format: Format) -> Table {
    let memories: Vec<Memory<Vec<u8>>> =
        files.iter().map(|file| Memory::new("f", file.to_vec())).collect();
    let sources: Vec<&dyn Source> = memories.iter().map(|memory| memory as &dyn Source).collect();
    Load::new(format).workers(1).run(&sources).unwrap().table
}

/// Asserts that both have the same columns, types and values.
#[track_caller]
pub(crate) fn assert_same(one: &Table, other: &Table, what: &str) {
    let fields = |table: &Table| format!("{:?}", table.schema().fields);
    assert_eq!(fields(one), fields(other), "columns: {what}");
    assert_eq!(one.rows(), other.rows(), "rows: {what}");
    for row in 0..one.rows() {
        for column in 0..one.schema().fields.len() {
            let (a, b) = (one.value(row, column), other.value(row, column));
            assert_eq!(format!("{a:?}"), format!("{b:?}"), "row {row}, column {column}: {what}");
        }
    }
}

/// Makes orders as JSON lines, with these numbers.
pub(crate) fn orders(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let line = |number: u64| {
        format!(
            "{{\"n\":{number},\"side\":\"{}\",\"price\":{}.{},\"note\":\"{}\"}}\n",
            if number.is_multiple_of(2) { "B" } else { "S" },
            number % 97,
            number % 10,
            "x".repeat((number % 50) as usize)
        )
    };
    numbers.map(line).collect::<String>().into_bytes()
}
