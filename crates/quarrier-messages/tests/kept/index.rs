//! The stored index: only newer batches are read, and the results are the same as without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use quarrier_core::source::Memory;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::kept::{Origin, Store};
use quarrier_messages::log::disk::{Disk, FaultyDisk};
use quarrier_messages::log::{Opener, Retention};
use quarrier_messages::{Format, Result};

use crate::kit::{
    Acknowledged, Random, alone, assert_same, at_once, load, open, options, orders, small, table,
};

const FILE: &str = "index";

fn eager(disk: &FaultyDisk) -> Result<Store> {
    open(disk).map(|store| store.checkpoint_every(1))
}

fn read(disk: &FaultyDisk) -> Store {
    Store::read_on(Arc::new(disk.clone()), Arc::new(disk.clone())).unwrap()
}

/// Returns the same folder without its stored index.
fn without(disk: &FaultyDisk) -> FaultyDisk {
    let other = disk.after_kill();
    let _ = other.remove(FILE);
    let _ = other.remove("table1.columns");
    other
}

/// Asserts that a folder yields the same with its index as without.
#[track_caller]
fn assert_same_folder(disk: &FaultyDisk, what: &str) {
    let (with, whole) = (read(disk), read(&without(disk)));
    assert_eq!(with.take_notices(), [""; 0], "{what}");
    assert_eq!(with.tables().unwrap(), whole.tables().unwrap(), "{what}");
    assert_eq!(with.found().next_mark, whole.found().next_mark, "{what}");
    assert_eq!(with.found().oldest_mark, whole.found().oldest_mark, "{what}");
    let lengths = |store: &Store| {
        use quarrier_core::source::Source;
        let runs = store.all_runs().unwrap();
        runs.iter().map(|run| (run.format().name(), run.length())).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&with), lengths(&whole), "{what}");
    if with.tables().unwrap().iter().any(|table| table.name == "t" && table.messages > 0) {
        assert_same(&alone(&with).unwrap(), &alone(&whole).unwrap(), what);
    }
}

#[test]
fn indexed_batches_are_not_read_again() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..900), &small(Format::Json)).unwrap();
    store.close().unwrap();
    let length = segments(&disk).len();
    assert!(length > 3, "{length} segments");
    // The index may lack at most a quarter of its contents, by bytes.
    for (disk, read_messages) in [(&disk, 0..=900 / 4), (&without(&disk), 900..=900)] {
        let store = read(disk);
        assert_eq!(store.tables().unwrap()[0].messages, 900);
        assert!(read_messages.contains(&store.found().messages), "{:?}", store.found());
    }
}

fn segments(disk: &FaultyDisk) -> Vec<String> {
    let mut names = disk.names().unwrap();
    names.retain(|name| name.ends_with(".qlog"));
    names.sort();
    names
}

#[test]
fn a_folder_is_the_same_with_its_index_and_loads_resume() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let mut ends = [0; 2];
        let mut store = eager(&disk).unwrap();
        for step in 0..4 + random.below(8) {
            let what = format!("seed {seed}, step {step}");
            let is_csv = random.below(3) == 0;
            let end = &mut ends[usize::from(is_csv)];
            let more = *end + random.below(120);
            let mut how = small(if is_csv { Format::Csv(Csv::default()) } else { Format::Json });
            how.compression = (random.below(2) == 0).then_some(3);
            // The same source, longer: the load resumes where it ended.
            let bytes = match is_csv {
                false => orders(0..more),
                true => {
                    let rows: String = (0..more).map(|n| format!("{n},a {n}\n")).collect();
                    format!("n,\"x \"\"y\"\"\"\n{rows}").into_bytes()
                }
            };
            let name = if is_csv { "c" } else { "j" };
            let source = Memory::new(name, bytes);
            let origin = Origin::Source { source: &source, identity: Some(name) };
            let (table, stop) = (if is_csv { "u" } else { "t" }, AtomicBool::new(false));
            let stored = store.load(table, origin, &how, &stop, &mut ()).unwrap();
            assert_eq!(stored.messages, more - *end, "{what}");
            *end = more;
            match random.below(4) {
                0 => store.close().unwrap(),
                1 => drop(store),
                _ => {
                    assert_same_folder(&disk, &what);
                    continue;
                }
            }
            assert_same_folder(&disk, &what);
            store = eager(&disk).unwrap();
            assert_eq!(store.take_notices(), [""; 0], "{what}");
        }
        drop(store);
        assert_same_folder(&disk, &format!("seed {seed}"));
    }
}

#[test]
fn a_damaged_truncated_or_foreign_index_is_ignored_with_a_notice() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..100), &small(Format::Json)).unwrap();
    store.close().unwrap();
    let whole = disk.contents(FILE).unwrap();
    let check = |bytes: Vec<u8>, words: &str, what: &str| {
        let other = disk.after_kill();
        other.put(FILE, bytes);
        let store = read(&other);
        let notices = store.take_notices();
        assert!(notices.len() == 1 && notices[0].contains(words), "{notices:?}: {what}");
        assert!(notices[0].contains("index: "), "{notices:?}");
        assert_eq!((store.found().messages, store.found().is_damaged()), (100, false), "{what}");
    };
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for at in (0..=used).filter(|at| !(88..4092).contains(at) || at % 32 == 0) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        check(flipped, "is damaged", &format!("byte {at}"));
    }
    for length in (0..used).step_by(7) {
        check(whole[..length].to_vec(), "is damaged", &format!("{length} bytes"));
    }
    let other = FaultyDisk::new(2);
    let store = eager(&other).unwrap();
    load(&store, "f", &orders(0..100), &small(Format::Json)).unwrap();
    store.close().unwrap();
    check(other.contents(FILE).unwrap(), "another log", "the same messages, another log");
}

/// Numbers of any size, with valid checksums.
#[test]
fn a_hostile_index_does_no_harm() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..100), &small(Format::Json)).unwrap();
    store.close().unwrap();
    let whole = disk.contents(FILE).unwrap();
    let body = u64::from_le_bytes(whole[56..64].try_into().unwrap()) as usize;
    let mut random = Random(1);
    for _ in 0..1_500 {
        let mut hostile = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = 4096 + random.below(body as u64) as usize;
            let values = [0, 1, 0x7F, 0x80, 0xFF, random.next() as u8];
            let count = [1, 2, 4, 8][random.below(4) as usize].min(4096 + body - at);
            hostile[at..at + count].fill(values[random.below(6) as usize]);
        }
        let sum =
            crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &hostile[4096..4096 + body]);
        hostile[64..72].copy_from_slice(&sum.to_le_bytes());
        let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &hostile[..4092]) as u32;
        hostile[4092..4096].copy_from_slice(&sum.to_le_bytes());
        let other = disk.after_kill();
        other.put(FILE, hostile);
        let store = read(&other);
        // Either an error, or some of the messages.
        let _ = alone(&store).map(|table| table.rows());
    }
}

/// The index hides no damage in the heads and the end of the log. Readers of messages report damage
/// that only the messages reveal.
#[test]
fn an_index_hides_no_damage() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..900), &small(Format::Json)).unwrap();
    store.close().unwrap();
    let names = segments(&disk);
    for (number, name) in names.iter().enumerate() {
        let whole = disk.contents(name).unwrap();
        let mut damaged = whole.clone();
        damaged[20] ^= 1;
        let cut = whole[..whole.len() - 600].to_vec();
        for (what, bytes) in [("head", Some(damaged)), ("cut", Some(cut)), ("gone", None)] {
            let other = disk.after_kill();
            match bytes {
                Some(bytes) => other.put(name, bytes),
                None => other.remove(name).unwrap(),
            }
            let (with, naive) = (read(&other), read(&without(&other)));
            assert_eq!(with.found().damages, naive.found().damages, "{name}, {what}");
            assert_eq!(with.tables().unwrap(), naive.tables().unwrap(), "{name}, {what}");
            // Without the first file: retention may have removed it. Without the last: it may never
            // have existed.
            let is_told = with.found().is_damaged() || !with.take_notices().is_empty();
            assert!(is_told || what == "gone" && number == 0, "{name}, {what}");
        }
        // Inside messages; the first segment begins with a note.
        let mut flipped = whole.clone();
        flipped[if number == 0 { 4096 + 512 + 200 } else { 4096 + 200 }] ^= 1;
        let other = disk.after_kill();
        other.put(name, flipped);
        let store = read(&other);
        let made = alone(&store);
        match store.found().is_damaged() {
            // Opening has read this segment, and reports the same as without an index.
            true => {
                assert!(made.is_ok(), "{name}");
                let naive = read(&without(&other));
                assert_eq!(store.found().damages, naive.found().damages, "{name}");
            }
            false => {
                let error = made.unwrap_err().to_string();
                assert!(error.contains("quarrier reindex") && error.contains(name), "{error}");
            }
        }
    }
}

#[test]
fn reading_a_whole_damaged_log_makes_others_do_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options();
    options.segment_bytes = 64 << 10;
    let store = Store::open_with(folder.path(), options).unwrap().checkpoint_every(1);
    load(&store, "f", &orders(0..3000), &small(Format::Json)).unwrap();
    store.close().unwrap();
    assert!(folder.path().join(FILE).exists());
    let segment = folder.path().join("log").join("0000000000000001.qlog");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[20_000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    assert!(!Store::read(folder.path()).unwrap().found().is_damaged(), "nobody has looked there");
    assert_eq!(Store::read_whole(folder.path()).unwrap().found().damages_found, 1);
    let store = Store::read(folder.path()).unwrap();
    assert_eq!(store.found().damages_found, 1);
    assert!(table(&store).rows() < 3000 && table(&store).rows() > 2900);
}

#[test]
fn a_power_cut_while_the_index_is_stored_loses_nothing() {
    let bytes = orders(0..120);
    let whole = at_once(&[&bytes], Format::Json);
    for seed in 0..2 {
        let disk = FaultyDisk::new(seed);
        let note = Arc::new(AtomicU64::new(0));
        disk.keep_history(Arc::clone(&note));
        let store = eager(&disk).unwrap();
        let source = Memory::new("f", bytes.clone());
        let origin = Origin::Source { source: &source, identity: Some("f") };
        let (how, stop) = (small(Format::Json), AtomicBool::new(false));
        store.load("t", origin, &how, &stop, &mut Acknowledged(note)).unwrap();
        store.close().unwrap();
        for (number, moment) in disk.history().into_iter().enumerate() {
            for cut in 0..2 {
                let what = format!("seed {seed}, moment {number}, cut {cut}");
                let crashed = moment.disk.after_crash(seed ^ cut ^ (number as u64) << 8);
                assert_same_folder(&crashed, &what);
                let store = eager(&crashed).unwrap();
                assert!(store.found().damages.is_empty(), "{what}");
                let found = store.tables().unwrap().first().map_or(0, |table| table.messages);
                assert!(found >= moment.note, "{found} of {} acknowledged: {what}", moment.note);
                let stored = load(&store, "f", &bytes, &how).unwrap();
                assert_eq!(stored.messages, 120 - found, "{what}");
                assert_same(&table(&store), &whole, &what);
            }
        }
    }
}

#[test]
fn segments_that_retention_removed_leave_the_index() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..900), &small(Format::Json)).unwrap();
    store.close().unwrap();
    let log = Opener::new().options(options()).open_on(Arc::new(disk.clone()), |_| {}).unwrap();
    let few = Retention { bytes_max: Some(40 << 10), ..Retention::default() };
    assert!(log.retain(few, u64::MAX).unwrap().segments > 0);
    log.close().unwrap();
    assert_same_folder(&disk, "after retention");
    let left = read(&disk).tables().unwrap()[0].messages;
    assert!(left > 0 && left < 900, "{left}");
}
