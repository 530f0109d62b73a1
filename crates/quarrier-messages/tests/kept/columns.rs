//! Stored columns are restored bit for bit, or rebuilt with a notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use quarrier_messages::kept::Store;
use quarrier_messages::log::disk::{Fault, FaultyDisk};
use quarrier_messages::{Format, Result, Table};

use crate::grown::lines;
use crate::kit::{Random, alone, assert_same, at_once, load, open, options, orders, small, table};

const FILE: &str = "table1.columns";

/// Opens a folder that stores columns whenever any message is new.
fn eager(disk: &FaultyDisk) -> Result<Store> {
    open(disk).map(|store| store.checkpoint_every(1))
}

/// Asserts that both tables are the same in every bit that a scan sees.
#[track_caller]
fn assert_identical(one: &Table, other: &Table, what: &str) {
    assert_same(one, other, what);
    assert_eq!(one.segments(), other.segments(), "{what}");
    for (one, other) in one.columns().iter().zip(other.columns()) {
        assert_eq!(one.segments(), other.segments(), "{what}");
        assert_eq!(one.dictionary(), other.dictionary(), "{what}");
        let facts = |it: &quarrier_messages::Column| (it.rounded(), it.is_mixed(), it.is_wide());
        assert_eq!(facts(one), facts(other), "{what}");
    }
}

/// Builds the table from the log alone.
fn rebuilt(disk: &FaultyDisk) -> Arc<Table> {
    let store = Store::read_on(Arc::new(disk.clone()), Arc::new(disk.clone())).unwrap();
    store.rebuild("t", 1, &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_reopened_table_is_bit_for_bit_the_stored_one() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let (mut all, mut is_stored) = (Vec::new(), false);
        for life in 0..1 + random.below(4) {
            let store = eager(&disk).unwrap();
            let what = format!("seed {seed}, life {life}");
            if life > 0 && is_stored {
                let expected = rebuilt(&disk);
                assert_same(&table(&store), &expected, &what);
            }
            for step in 0..1 + random.below(3) {
                let more = lines(&mut random);
                load(&store, &format!("f{life} {step}"), &more, &small(Format::Json)).unwrap();
                all.extend_from_slice(&more);
            }
            if store.tables().unwrap().first().is_none_or(|table| table.messages == 0) {
                continue;
            }
            let made = table(&store);
            assert_same(&made, &at_once(&[&all], Format::Json), &what);
            is_stored = disk.contents(FILE).is_some();
            assert!(is_stored, "{what}");
            // Explicitly, since there are too few bytes to store them otherwise.
            store.checkpoint().unwrap();
            drop(store);
            let store = open(&disk).unwrap();
            assert_identical(&table(&store), &made, &what);
            assert_eq!(store.take_notices(), [""; 0], "{what}");
        }
    }
}

/// Covers whole segments, plain strings next to codes, numbers of 128 bits, and floats that no
/// other type can hold.
#[test]
fn large_columns_of_all_types_are_restored() {
    let mut text = String::new();
    for number in 0..150_000u64 {
        let wide = if number.is_multiple_of(3) { "98765432109876543210.123456789" } else { "-0.5" };
        text += &format!(
            "{{\"n\":{number},\"u\":{},\"w\":{wide},\"f\":{}e-3,\"b\":{},\"d\":\"2024-02-{:02}\",\
             \"t\":\"2024-02-01T10:00:{:02}.5Z\",\"s\":\"symbol {}\",\"all\":\"text {number} é\",\
             \"x\":{}}}\n",
            u64::MAX - number,
            number * 7919 % 100_003,
            number.is_multiple_of(2),
            1 + number % 28,
            number % 60,
            number % 50,
            if number > 120_000 { "null".to_string() } else { (number % 9).to_string() },
        );
    }
    let disk = FaultyDisk::new(1);
    let mut larger = options();
    larger.segment_bytes = 8 << 20;
    let open = || Store::open_on(Arc::new(disk.clone()), Arc::new(disk.clone()), larger.clone());
    let store = open().unwrap();
    let mut how = small(Format::Json);
    how.batch_bytes = 1 << 20;
    load(&store, "f", text.as_bytes(), &how).unwrap();
    let made = table(&store);
    let is_plain = made.columns().iter().any(|it| it.dictionary().is_none());
    assert!(made.segments() >= 3 && is_plain && made.columns().iter().any(|it| it.is_wide()));
    // More bytes than the minimum at which closing stores columns.
    store.close().unwrap();
    assert!(disk.contents(FILE).is_some());
    let store = open().unwrap();
    assert_identical(&table(&store), &made, "as stored");
    assert_eq!(store.take_notices(), [""; 0]);
}

/// Every fault of a file is reported, and does no harm.
#[test]
fn a_damaged_truncated_or_foreign_file_is_rebuilt_with_a_notice() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..60), &small(Format::Json)).unwrap();
    let made = table(&store);
    store.close().unwrap();
    let whole = disk.contents(FILE).unwrap();
    let check = |bytes: Vec<u8>, words: &str, what: &str| {
        let other = disk.after_kill();
        other.put(FILE, bytes);
        let store = Store::read_on(Arc::new(other.clone()), Arc::new(other)).unwrap();
        assert_same(&alone(&store).unwrap(), &made, what);
        let notices = store.take_notices();
        assert_eq!(notices.len(), 1, "{what}");
        let is_said = notices[0].contains("table1.columns: ") && notices[0].contains(words);
        assert!(is_said && notices[0].ends_with("rebuilt from the log"), "{notices:?}: {what}");
    };
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for at in (0..=used).filter(|at| !(88..4092).contains(at) || at % 32 == 0) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        check(flipped, "is damaged", &format!("byte {at}"));
    }
    for length in (0..used).step_by(13) {
        check(whole[..length].to_vec(), "is damaged", &format!("{length} bytes"));
    }
    // Valid checksums, but of an unknown version.
    let mut later = whole.clone();
    later[8] = 2;
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &later[..4092]) as u32;
    later[4092..4096].copy_from_slice(&sum.to_le_bytes());
    check(later, "another version", "version 2");
    // A log with other messages in the same places, and one with fewer.
    let other = FaultyDisk::new(2);
    let store = eager(&other).unwrap();
    load(&store, "f", &orders(1..61), &small(Format::Json)).unwrap();
    table(&store);
    store.close().unwrap();
    check(other.contents(FILE).unwrap(), "another log", "another log");
    let longer = disk.after_kill();
    let store = eager(&longer).unwrap();
    load(&store, "g", &orders(60..90), &small(Format::Json)).unwrap();
    table(&store);
    drop(store);
    let short = disk.after_kill();
    short.put(FILE, longer.contents(FILE).unwrap());
    let store = open(&short).unwrap();
    assert_same(&table(&store), &made, "a longer log");
    assert!(store.take_notices()[0].contains("messages that the log lacks"));
}

/// Numbers of any size, with valid checksums.
#[test]
fn a_hostile_file_does_no_harm() {
    let disk = FaultyDisk::new(1);
    let store = eager(&disk).unwrap();
    load(&store, "f", &orders(0..40), &small(Format::Json)).unwrap();
    let rows = table(&store).rows();
    store.close().unwrap();
    let whole = disk.contents(FILE).unwrap();
    let body = u64::from_le_bytes(whole[56..64].try_into().unwrap()) as usize;
    let mut random = Random(1);
    for round in 0..1_500 {
        let mut hostile = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = 4096 + random.below(body as u64) as usize;
            let values = [0, 1, 0x7F, 0x80, 0xFF, random.next() as u8];
            let count = [1, 2, 4, 8, 16][random.below(5) as usize].min(4096 + body - at);
            hostile[at..at + count].fill(values[random.below(6) as usize]);
        }
        let sum =
            crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, &hostile[4096..4096 + body]);
        hostile[64..72].copy_from_slice(&sum.to_le_bytes());
        let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &hostile[..4092]) as u32;
        hostile[4092..4096].copy_from_slice(&sum.to_le_bytes());
        let other = disk.after_kill();
        other.put(FILE, hostile);
        let store = Store::read_on(Arc::new(other.clone()), Arc::new(other)).unwrap();
        let made = alone(&store).unwrap();
        assert_eq!(made.rows(), rows, "round {round}");
        for row in 0..rows {
            for column in 0..made.schema().fields.len() {
                let _ = made.value(row, column);
            }
        }
    }
}

/// Cuts the power at every moment of lives that load, build tables and store columns.
#[test]
fn a_power_cut_while_columns_are_stored_leaves_either_version() {
    let parts: Vec<Vec<u8>> = (0..4).map(|part| orders(part * 30..part * 30 + 30)).collect();
    for seed in 0..4 {
        let disk = FaultyDisk::new(seed);
        disk.keep_history(Arc::new(AtomicU64::new(0)));
        for (number, part) in parts.iter().enumerate() {
            let store = eager(&disk).unwrap();
            load(&store, &format!("f{number}"), part, &small(Format::Json)).unwrap();
            table(&store);
            if number % 2 == 0 {
                store.close().unwrap();
            }
        }
        for (number, moment) in disk.history().into_iter().enumerate() {
            for cut in 0..3 {
                let what = format!("seed {seed}, moment {number}, cut {cut}");
                let crashed = moment.disk.after_crash(seed ^ cut ^ (number as u64) << 8);
                let store = open(&crashed).unwrap();
                assert!(store.found().damages.is_empty(), "{what}");
                let messages = store.tables().unwrap().first().map_or(0, |table| table.messages);
                if messages == 0 {
                    continue;
                }
                assert_same(&alone(&store).unwrap(), &rebuilt(&crashed), &what);
                assert_eq!(store.take_notices(), [""; 0], "{what}");
            }
        }
    }
}

#[test]
fn a_fault_while_columns_are_stored_loses_only_the_columns() {
    let live = |disk: &FaultyDisk| -> Result<()> {
        for part in 0..2 {
            let store = eager(disk)?;
            let bytes = orders(part * 30..part * 30 + 30);
            load(&store, &format!("f{part}"), &bytes, &small(Format::Json))?;
            store.table("t", 2, &AtomicBool::new(false))?;
            store.close()?;
        }
        Ok(())
    };
    let calls = {
        let disk = FaultyDisk::new(1);
        live(&disk).unwrap();
        disk.calls()
    };
    for fault in [Fault::Full, Fault::Io, Fault::Short, Fault::Crash] {
        for call in 0..calls {
            let what = format!("{fault:?} at call {call}");
            let disk = FaultyDisk::new(1);
            disk.fail([(call, fault)]);
            let _ = live(&disk);
            let crashed = disk.after_crash(call);
            let store = open(&crashed).unwrap();
            if store.tables().unwrap().first().is_some_and(|table| table.messages > 0) {
                assert_same(&alone(&store).unwrap(), &rebuilt(&crashed), &what);
                assert_eq!(store.take_notices(), [""; 0], "{what}");
            }
        }
    }
}
