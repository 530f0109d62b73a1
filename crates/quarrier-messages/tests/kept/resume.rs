//! An interrupted load resumes where it ended.

use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::Memory;
use quarrier_messages::kept::{LoadOptions, LoadWatch, Origin, Progress};
use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::{Error, Format, Reject};

use crate::kit::{assert_same, at_once, load, open, orders, small, table};

/// Stops a load once `bytes` bytes are on the disk.
struct StopAt<'s> {
    bytes: u64,
    stop: &'s AtomicBool,
    lines: Vec<u64>,
}

impl LoadWatch for StopAt<'_> {
    fn progressed(&mut self, progress: &Progress) {
        if progress.bytes >= self.bytes {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn rejected(&mut self, reject: &Reject) {
        self.lines.push(reject.line);
    }
}

/// Batches of a megabyte would not fit the segments.
#[test]
fn loads_fit_small_segments() {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    let bytes = orders(0..2_000);
    assert!(bytes.len() > 100_000, "more than a segment");
    let stored = load(&store, "f", &bytes, &LoadOptions::new(Format::Json)).unwrap();
    assert_eq!(stored.messages, 2_000);
    assert_eq!(table(&store).rows(), 2_000);
}

#[test]
fn a_stopped_load_resumes_without_duplicates() {
    let mut bytes = orders(0..900);
    bytes.extend_from_slice(b"no message\n");
    bytes.extend_from_slice(&orders(900..1000));
    let expected = at_once(&[&bytes], Format::Json);
    for at in [0, 1, 5000, 20_000, 60_000] {
        let disk = FaultyDisk::new(at);
        let store = open(&disk).unwrap();
        let stop = AtomicBool::new(false);
        let mut watch = StopAt { bytes: at, stop: &stop, lines: Vec::new() };
        let source = Memory::new("f", bytes.clone());
        let origin = Origin::Source { source: &source, identity: Some("f") };
        let first = store.load("t", origin, &small(Format::Json), &stop, &mut watch).unwrap();
        drop(store);
        let store = open(&disk).unwrap();
        let stop = AtomicBool::new(false);
        let mut watch = StopAt { bytes: u64::MAX, stop: &stop, lines: Vec::new() };
        let origin = Origin::Source { source: &source, identity: Some("f") };
        let second = store.load("t", origin, &small(Format::Json), &stop, &mut watch).unwrap();
        assert_eq!(first.messages + second.messages, 1000, "stopped at {at}");
        assert_eq!(second.start, first.end, "stopped at {at}");
        if first.end < 50_000 {
            assert_eq!(watch.lines, [901], "stopped at {at}");
        }
        assert_same(&table(&store), &expected, &format!("stopped at {at}"));
    }
}

#[test]
fn a_grown_file_is_loaded_from_its_old_end() {
    let store = open(&FaultyDisk::new(1)).unwrap();
    let bytes = orders(0..100);
    for end in [0, 1000, 1000, 3000, bytes.len()] {
        // Cut at the end of a line.
        let end = bytes[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        load(&store, "f", &bytes[..end], &small(Format::Json)).unwrap();
        assert_same(&table(&store), &at_once(&[&bytes[..end]], Format::Json), &format!("{end}"));
    }
}

#[test]
fn another_file_with_the_same_name_is_loaded_from_its_start() {
    let store = open(&FaultyDisk::new(1)).unwrap();
    let (one, other) = (orders(0..50), orders(50..80));
    for (bytes, new) in [(&one, 50), (&other, 30), (&one, 0), (&other, 0)] {
        let stored = load(&store, "f", bytes, &small(Format::Json)).unwrap();
        assert_eq!(stored.messages, new);
    }
    let mut again = small(Format::Json);
    again.is_again = true;
    assert_eq!(load(&store, "f", &one, &again).unwrap().messages, 50);
    assert_eq!(table(&store).rows(), 130);
}

#[test]
fn a_full_disk_is_an_error_and_the_load_resumes_with_space() {
    let bytes = orders(0..1000);
    for room in [44 << 10, 56 << 10, 80 << 10] {
        let disk = FaultyDisk::new(room);
        disk.set_room(room);
        let store = open(&disk).unwrap();
        let error = load(&store, "f", &bytes, &small(Format::Json)).unwrap_err();
        let is_full = matches!(&error, Error::Log(quarrier_messages::log::Error::Full { .. }));
        assert!(is_full && error.to_string().contains("no space"), "{error}");
        let before = table(&store).rows();
        let expected = at_once(&[&orders(0..before)], Format::Json);
        if before > 0 {
            assert_same(&table(&store), &expected, "reads continue");
        }
        disk.set_room(1 << 20);
        let stored = load(&store, "f", &bytes, &small(Format::Json)).unwrap();
        assert_eq!(stored.messages, 1000 - before, "{room} bytes");
        assert_same(&table(&store), &at_once(&[&bytes], Format::Json), "with room");
    }
}
