//! The files of a data folder beside its log, changed in any way: where their checksums are wrong, tables are
//! those of the log; where they are right, there is no harm, and writing goes on.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Memory;
use quarrier_messages::kept::{DefinedColumn, Definition, LoadOptions, Origin, Store};
use quarrier_messages::log::Options;
use quarrier_messages::log::disk::{Disk, FaultyDisk};
use quarrier_messages::{Format, Kind, Table, Value};

use crate::checksum::{crc32c, crc64};
use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "kept", run, once: &[], seeds: SEEDS, words: &[] };

/// Which file and whether its checksums are put right, then changes: place, how, with what.
const SEEDS: &[&[u8]] = &[
    &[0x00, 0x10, 0x00, 0, 1],
    &[0x80, 0x10, 0x04, 1, 0xFF, 0x10, 0x40, 0, 7],
    &[0x81, 0x10, 0x00, 1, 0xFF, 0x00, 0x10, 1, 2],
    &[0x82, 0x10, 0x08, 1, 3],
    &[0x83, 0x00, 0x1C, 0, 1],
    &[0x84, 0x00, 0x18, 0, 3],
];

const FILES: [&str; 5] = ["table1.columns", "table2.columns", "index", "definitions", "catalog"];

/// Opens a folder with one of its files changed as `bytes` say.
pub fn run(bytes: &[u8]) -> Verdict {
    let Some((first, changes)) = bytes.split_first() else { return Verdict::Skipped };
    let (whole, expected) = folder();
    let disk = whole.after_kill();
    let name = FILES[usize::from(first & 0x7F) % FILES.len()];
    let Some(mut file) = disk.contents(name) else { panic!("{name} is not there") };
    let before = file.clone();
    for change in changes.chunks_exact(4) {
        self::change(&mut file, change);
    }
    if file == before {
        return Verdict::Skipped;
    }
    let is_mended = first & 0x80 != 0;
    if is_mended {
        mend(name, &mut file);
    }
    disk.put(name, file);
    let is_derived = name.ends_with("columns") || name == "index";
    for _ in 0..2 {
        let Ok(store) = open(&disk) else { return Verdict::Checked };
        let found: Vec<Option<String>> = ["keyed", "plain"].map(|name| rows(&store, name)).to_vec();
        if is_derived && !is_mended {
            assert_eq!(found, *expected, "{name}");
        }
        let _ = append(&store, "keyed", b"{\"id\":3,\"word\":\"new\"}\n");
        let _ = store.remove("keyed", &[vec![Value::Integer(1)]]).map(drop);
        let _ = store.runs("keyed").map(|runs| runs.len());
        let _ = store.checkpoint();
        let _ = store.take_notices();
        if is_derived && !is_mended {
            break;
        }
    }
    Verdict::Checked
}

fn open(disk: &FaultyDisk) -> Result<Store, quarrier_messages::Error> {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.write_bytes = 4 << 10;
    Store::open_on(Arc::new(disk.clone()), Arc::new(disk.clone()), options)
}

fn append(store: &Store, table: &str, lines: &[u8]) -> Result<u64, quarrier_messages::Error> {
    let source = Memory::new("lines", lines.to_vec());
    let mut options = LoadOptions::new(Format::Json);
    (options.workers, options.batch_bytes) = (1, 300);
    let origin = Origin::Source { source: &source, identity: None };
    let stored = store.load(table, origin, &options, &AtomicBool::new(false), &mut ())?;
    Ok(stored.messages)
}

/// The rows of a table; None where it cannot be read.
fn rows(store: &Store, name: &str) -> Option<String> {
    let table: Arc<Table> = store.table(name, 1, &AtomicBool::new(false)).ok()?;
    let columns = table.columns().len();
    let values = (0..table.rows()).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let values: Vec<Value> = values.map(|(row, column)| table.value(row, column)).collect();
    Some(format!("{:?} {values:?}", table.schema()))
}

/// A folder with a table that has a key, one that has none, and all that is stored of them.
fn folder() -> &'static (FaultyDisk, Vec<Option<String>>) {
    static FOLDER: OnceLock<(FaultyDisk, Vec<Option<String>>)> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let disk = FaultyDisk::new(1);
        disk.set_room(1 << 20);
        let Some(rows) = filled(&disk) else { panic!("a folder on an empty disk") };
        (disk, rows)
    })
}

fn filled(disk: &FaultyDisk) -> Option<Vec<Option<String>>> {
    let column = |name: &str, kind| {
        let name = name.into();
        DefinedColumn { name, kind, digits: 38, is_required: false }
    };
    let columns = vec![column("id", Kind::Integer), column("word", Kind::Text)];
    let definition = Definition::new(columns).ok()?.with_key(&["id"]).ok()?;
    let store = open(disk).ok()?;
    store.create("keyed", &definition).ok()?;
    for round in 0..3 {
        let line = |id: u64| format!("{{\"id\":{},\"word\":\"w{}\"}}\n", id % 20, id % 7 + round);
        let lines: String = (0..30).map(line).collect();
        append(&store, "keyed", lines.as_bytes()).ok()?;
        append(&store, "plain", lines.as_bytes()).ok()?;
        drop(store.remove("keyed", &[vec![Value::Integer(5)], vec![Value::Integer(6)]]).ok()?);
    }
    // What was sent is on the disk before what comes after it.
    append(&store, "keyed", b"{\"id\":7,\"word\":\"last\"}\n").ok()?;
    let rows = ["keyed", "plain"].map(|name| rows(&store, name)).to_vec();
    store.checkpoint().ok()?;
    store.close().ok()?;
    let names = disk.names().ok()?;
    FILES.iter().all(|file| names.iter().any(|name| name == file)).then_some(rows)
}

/// One change: a byte flipped or set, a run of a number of eight bytes, or a cut.
fn change(file: &mut Vec<u8>, change: &[u8]) {
    let [high, low, how, value] = *change else { return };
    let at = usize::from(high) << 8 | usize::from(low);
    match (how % 4, file.get_mut(at)) {
        (0, Some(byte)) => *byte ^= value.max(1),
        (1, Some(byte)) => *byte = value,
        (2, Some(_)) => {
            let end = (at + usize::from(value % 17)).min(file.len());
            file[at..end].fill(0xFF);
        }
        (_, Some(_)) => file.truncate(at),
        (_, None) => {}
    }
}

/// Puts the checksums of a file right.
fn mend(name: &str, file: &mut [u8]) {
    if name == "catalog" || name == "definitions" {
        for copy in [0, 4096] {
            let Some(copy) = file.get_mut(copy..) else { continue };
            let Some(bytes) = copy.get(12..16).and_then(|it| it.first_chunk()) else { continue };
            let end = (u32::from_le_bytes(*bytes) as usize).saturating_sub(8);
            if let Some(sum) = copy.get(..end).map(crc64)
                && let Some(place) = copy.get_mut(end..end + 8)
            {
                place.copy_from_slice(&sum);
            }
        }
        return;
    }
    let bytes = file.get(56..64).and_then(|it| it.first_chunk()).copied().unwrap_or_default();
    let end = usize::try_from(u64::from_le_bytes(bytes)).ok().and_then(|it| it.checked_add(4096));
    if let Some(sum) = end.and_then(|end| file.get(4096..end)).map(crc64) {
        file[64..72].copy_from_slice(&sum);
    }
    if let Some(sum) = file.get(..4092).map(crc32c) {
        file[4092..4096].copy_from_slice(&sum);
    }
}
