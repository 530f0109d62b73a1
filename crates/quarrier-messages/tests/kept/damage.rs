//! A log with damage anywhere: the reader reports where, and keeps everything else.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_messages::kept::Store;
use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::log::{Damage, Event, Options, Reader, Recovered};
use quarrier_messages::{Format, Value};

use crate::kit::{load, open, orders, small};

/// Makes a log of a few batches; returns its only segment.
fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    let store = Store::open_with(folder.path(), options).unwrap();
    let mut how = small(Format::Json);
    how.batch_bytes = 300;
    load(&store, "f", &orders(0..16), &how).unwrap();
    store.close().unwrap();
    let segment = std::fs::read_dir(folder.path().join("log")).unwrap().next().unwrap().unwrap();
    let path = segment.path();
    (folder, path)
}

/// Makes a log of a few batches on a disk in memory; returns the name and bytes of its one segment.
fn disk() -> (FaultyDisk, String, Vec<u8>) {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    let mut how = small(Format::Json);
    how.batch_bytes = 300;
    load(&store, "f", &orders(0..16), &how).unwrap();
    store.close().unwrap();
    let name = "0000000000000001.qlog".to_string();
    let bytes = disk.contents(&name).unwrap();
    (disk, name, bytes)
}

/// Reads the segment with these bytes; returns the numbers of the remaining messages, and what recovery
/// reports.
fn read((disk, name): (&FaultyDisk, &str), bytes: Vec<u8>) -> (Vec<u64>, Recovered) {
    let disk = disk.after_kill();
    disk.put(name, bytes);
    let store = Store::read_on(Arc::new(disk.clone()), Arc::new(disk)).unwrap();
    let found = store.found().clone();
    for damage in &found.damages {
        let line = damage.to_string();
        assert!(line.contains(".qlog: damaged at bytes") && line.contains("mark"), "{line}");
    }
    let tables = store.tables().unwrap();
    if tables.is_empty() || tables[0].messages == 0 {
        return (Vec::new(), found);
    }
    let table = store.table("t", 1, &AtomicBool::new(false)).unwrap();
    let column = table.schema().position("n").unwrap();
    let number = |row| match table.value(row, column) {
        Value::Integer(number) => number as u64,
        other => panic!("{other:?}"),
    };
    ((0..table.rows()).map(number).collect(), found)
}

/// Returns the range of each batch, with its header, and the numbers of its messages.
fn places(disk: &FaultyDisk) -> Vec<(Range<u64>, Range<u64>)> {
    let mut reader = Reader::of(Arc::new(disk.clone()), 1).unwrap();
    let mut places = Vec::new();
    while let Some(Event::Batch(entry)) = reader.next_event().unwrap() {
        // Including the publication after the header.
        let bytes =
            entry.offset()..entry.offset() + 64 + 24 + entry.payload().unwrap().len() as u64;
        places.push((bytes, entry.marks().start - 1..entry.marks().end - 1));
    }
    places
}

/// Checks that everything else is there, and that the damage lists exactly the lost messages.
#[track_caller]
fn check((numbers, found): &(Vec<u64>, Recovered), lost: &[u64], what: &str) {
    assert!(found.is_damaged() && found.cut.is_none(), "{found:?}: {what}");
    let left: Vec<u64> = (0..16).filter(|number| !lost.contains(number)).collect();
    assert_eq!(*numbers, left, "{what}");
    let is_told = |number: &u64| {
        let mut damages = found.damages.iter();
        damages.any(|it| (it.first_mark..it.end_mark.unwrap_or(17)).contains(&(number + 1)))
    };
    for number in 0..16 {
        assert_eq!(is_told(&number), lost.contains(&number), "{number}, {found:?}: {what}");
    }
}

#[test]
fn a_flipped_byte_loses_at_most_its_batch_and_is_reported() {
    let (disk, name, whole) = disk();
    let (numbers, found) = read((&disk, &name), whole.clone());
    assert!(numbers == (0..16).collect::<Vec<u64>>() && !found.is_damaged());
    let places = places(&disk);
    assert!(places.len() >= 3, "{places:?}");
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let read = read((&disk, &name), damaged);
        let hit = places.iter().find(|(bytes, _)| bytes.contains(&(at as u64)));
        let lost: Vec<u64> = hit.map(|(_, numbers)| numbers.clone().collect()).unwrap_or_default();
        let what = format!("byte {at}");
        check(&read, &lost, &what);
        let is_there = |it: &Damage| it.bytes.contains(&(at as u64));
        assert!(read.1.damages.iter().any(is_there), "{:?}: {what}", read.1.damages);
    }
}

#[test]
fn a_log_truncated_anywhere_keeps_and_reports_its_prefix() {
    let (disk, name, whole) = disk();
    let places = places(&disk);
    for length in 0..whole.len() {
        let read = read((&disk, &name), whole[..length].to_vec());
        // Half of a head suffices, since there are two copies.
        let is_left = |bytes: &Range<u64>| bytes.end <= length as u64 && length >= 2048;
        let lost = places.iter().filter(|(bytes, _)| !is_left(bytes));
        let lost: Vec<u64> = lost.flat_map(|(_, numbers)| numbers.clone()).collect();
        check(&read, &lost, &format!("{length} bytes"));
    }
}

/// Reading only the headers finds the same damage as reading all bytes.
#[test]
fn reading_only_headers_misses_no_damage() {
    let (folder, segment) = folder();
    let whole = std::fs::read(&segment).unwrap();
    let all = |store: &Store| store.table("t", 2, &false.into()).map(|table| table.rows());
    let store = Store::skimmed(folder.path()).unwrap().expect("nothing is out of the ordinary");
    assert_eq!(all(&store).unwrap(), 16);
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&segment, &damaged).unwrap();
        let skimmed = Store::skimmed(folder.path()).unwrap();
        assert!(skimmed.is_none_or(|store| all(&store).is_err()), "byte {at}");
    }
    for length in (0..whole.len()).step_by(64) {
        std::fs::write(&segment, &whole[..length]).unwrap();
        assert!(Store::skimmed(folder.path()).unwrap().is_none(), "{length} bytes");
    }
}

#[test]
fn a_single_segment_can_be_read() {
    let (folder, segment) = folder();
    let copy = folder.path().join("copy of it");
    std::fs::copy(&segment, &copy).unwrap();
    for path in [&segment, &copy] {
        assert!(quarrier_messages::kept::is_log(path));
        let store = Store::read(path).unwrap();
        let runs = store.all_runs().unwrap();
        assert_eq!(runs.len(), 1);
        let loaded = quarrier_messages::Load::new(runs[0].format().clone()).run(&[&runs[0]]);
        assert_eq!(loaded.unwrap().table.rows(), 16);
    }
    assert!(quarrier_messages::kept::is_log(folder.path()));
    assert!(!quarrier_messages::kept::is_log(Path::new("/")));
}
