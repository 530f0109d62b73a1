//! Retention: a table has exactly the rows of the messages within its bounds, whatever happens, and the log loses
//! only segments that no table needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quarrier_messages::kept::{Definition, Store};
use quarrier_messages::log::disk::{Disk, Fault, FaultyDisk};
use quarrier_messages::log::{self, Retention};
use quarrier_messages::{Error, Format, Result};

use crate::grown::lines;
use crate::keyed::{TableHistory, check, definition, keyed, step};
use crate::kit::{Random, alone, assert_same, at_once, load, open, options, orders, small, table};

const SECOND: i64 = 1_000_000;

fn age(seconds: u64) -> Retention {
    Retention { age_max: Some(Duration::from_secs(seconds)), ..Retention::default() }
}

fn bytes(bytes: u64) -> Retention {
    Retention { bytes_max: Some(bytes), ..Retention::default() }
}

fn segments(disk: &FaultyDisk) -> Vec<String> {
    let mut names = disk.names().unwrap();
    names.retain(|name| name.ends_with(".qlog") && name.len() == 21);
    names.sort();
    names
}

fn read(disk: &FaultyDisk) -> Store {
    Store::read_on(Arc::new(disk.clone()), Arc::new(disk.clone())).unwrap()
}

/// The lines of a table, each with the time of its commit.
#[derive(Default)]
struct Model(Vec<(i64, String)>);

impl Model {
    fn add(&mut self, text: &[u8], time_us: i64) {
        let text = std::str::from_utf8(text).unwrap();
        self.0.extend(text.split_inclusive('\n').map(|line| (time_us, line.to_string())));
    }

    /// Applies a maximum age: removes lines in steps of a sixteenth of it.
    fn expire(&mut self, seconds: u64, now_us: i64) {
        let (age, mut oldest) = (seconds as i64 * SECOND, 0);
        while oldest + age / 16 <= now_us - age {
            oldest += age / 16;
        }
        self.0.retain(|(time_us, _)| *time_us >= oldest);
    }

    fn text(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(_, line)| line.bytes()).collect()
    }
}

#[test]
fn a_table_has_the_rows_of_messages_within_its_age() {
    for seed in 0..120 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let is_eager = random.below(2) == 0;
        let reopen = || {
            let store = open(&disk).unwrap();
            if is_eager { store.checkpoint_every(1) } else { store }
        };
        let (mut now_us, mut model) = (0, Model::default());
        // Commit times never go back, so the clock is set before the log is opened.
        disk.set_clock_us(now_us);
        let mut store = reopen();
        store.create("t", &Definition::default()).unwrap();
        let seconds = 16 * (1 + random.below(40));
        store.set_retention("t", age(seconds)).unwrap();
        for number in 0..4 + random.below(16) {
            let what = format!("seed {seed}, step {number}");
            // Each reading advances the clock by 1 µs, which must not reach the next step.
            now_us += (random.below(seconds) as i64) * SECOND / 4;
            disk.set_clock_us(now_us);
            let more = lines(&mut random);
            load(&store, &format!("f{number}"), &more, &small(Format::Json)).unwrap();
            model.add(&more, now_us);
            if is_eager && !more.is_empty() {
                // The load applies retention, too.
                model.expire(seconds, now_us);
            }
            match random.below(8) {
                0 | 1 => {
                    store.retain().unwrap();
                    model.expire(seconds, now_us);
                }
                2 => {
                    store.tend(1, &AtomicBool::new(false)).unwrap();
                    model.expire(seconds, now_us);
                }
                3 => {
                    store.close().unwrap();
                    model.expire(seconds, now_us);
                    store = reopen();
                }
                4 => {
                    drop(store);
                    store = reopen();
                }
                5 => store.checkpoint().unwrap(),
                _ => {}
            }
            let expected = at_once(&[&model.text()], Format::Json);
            if random.below(3) > 0 {
                assert_same(&alone(&store).unwrap(), &expected, &what);
                let all = Store::rebuild(&store, "t", 1, &AtomicBool::new(false)).unwrap();
                assert_same(&all, &expected, &format!("rebuilt, {what}"));
            }
            assert_same(&alone(&read(&disk)).unwrap(), &expected, &format!("a reader, {what}"));
            assert_eq!(store.tables().unwrap()[0].messages, model.0.len() as u64, "{what}");
            assert_eq!(store.retention("t").unwrap(), age(seconds), "{what}");
            assert_eq!(store.take_notices(), [""; 0], "{what}");
        }
    }
}

#[test]
fn a_table_takes_no_more_bytes_than_its_bound_and_the_log_shrinks() {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    store.create("t", &Definition::default()).unwrap();
    store.set_retention("t", bytes(40_000)).unwrap();
    let mut sent = 0;
    for number in 0..40u64 {
        let end = sent + 60;
        load(&store, &format!("f{number}"), &orders(sent..end), &small(Format::Json)).unwrap();
        sent = end;
        store.retain().unwrap();
        let kept = store.tables().unwrap().remove(0);
        assert!(kept.stored_bytes <= 40_000, "{kept:?}");
        assert!(kept.messages >= 300.min(sent), "{kept:?}");
        let last = orders(sent - kept.messages..sent);
        assert_same(&alone(&store).unwrap(), &at_once(&[&last], Format::Json), "the last ones");
        // A load fills a segment, the first one may be needed in part, and the last one is empty.
        let segments_max = 40_000 / orders(0..60).len() + 2;
        assert!(segments(&disk).len() <= segments_max, "{:?}", segments(&disk));
    }
    // The oldest messages are gone, and whoever asks for them is told.
    let (schema, stop) = (alone(&store).unwrap().schema().clone(), AtomicBool::new(false));
    let gone = store.changes("t", (0, u64::MAX), &schema, &stop).unwrap_err();
    let Error::Log(log::Error::Gone { mark: 1, oldest }) = gone else { panic!("{gone}") };
    let kept = store.tables().unwrap()[0].messages;
    assert_eq!(oldest, sent + 1 - kept);
    let changes = store.changes("t", (oldest - 1, u64::MAX), &schema, &stop).unwrap();
    assert_eq!(changes.mark_of(0), oldest);
}

#[test]
fn tables_without_bounds_keep_their_messages_and_the_segments_that_have_them() {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    let stop = AtomicBool::new(false);
    store.create("t", &Definition::default()).unwrap();
    store.create("all", &Definition::default()).unwrap();
    let other = |store: &Store, from: u64| {
        let mut lines = &orders(from..from + 10)[..];
        let origin = quarrier_messages::kept::Origin::Stream { name: "lines", reader: &mut lines };
        store.load("all", origin, &small(Format::Json), &stop, &mut ()).unwrap();
    };
    load(&store, "f1", &orders(0..600), &small(Format::Json)).unwrap();
    other(&store, 0);
    load(&store, "f2", &orders(600..1200), &small(Format::Json)).unwrap();
    let before = segments(&disk);
    store.set_retention("t", bytes(2_000)).unwrap();
    let result = store.retain().unwrap();
    assert!(result.messages > 1_000 && result.segments > 0, "{result:?}");
    let after = segments(&disk);
    assert!(after.len() < before.len() && after.len() > 2, "{after:?} of {before:?}");
    let all = store.table("all", 1, &stop).unwrap();
    assert_same(&all, &at_once(&[&orders(0..10)], Format::Json), "the other table");
    // Its history is complete, although segments were removed.
    let schema = all.schema().clone();
    assert_eq!(store.changes("all", (0, u64::MAX), &schema, &stop).unwrap().table().rows(), 10);
    store.set_retention("all", bytes(0)).unwrap();
    other(&store, 10);
    store.retain().unwrap();
    assert_eq!(store.table("all", 1, &stop).unwrap().rows(), 0);
    assert_eq!(store.tables().unwrap()[1].messages, 0);
    // Without bounds, nothing else goes away.
    store.set_retention("all", Retention::default()).unwrap();
    other(&store, 20);
    store.retain().unwrap();
    store.close().unwrap();
    let store = open(&disk).unwrap();
    let all = store.table("all", 1, &stop).unwrap();
    assert_same(&all, &at_once(&[&orders(20..30)], Format::Json), "after all");
}

#[test]
fn a_file_is_not_loaded_again_after_its_messages_are_gone() {
    let disk = FaultyDisk::new(1);
    let how = small(Format::Json);
    let store = open(&disk).unwrap();
    load(&store, "f", &orders(0..700), &how).unwrap();
    store.set_retention("t", bytes(0)).unwrap();
    load(&store, "g", &orders(0..10), &how).unwrap();
    assert_eq!(store.retain().unwrap().messages, 710);
    assert_eq!(segments(&disk).len(), 1);
    assert_eq!(load(&store, "f", &orders(0..700), &how).unwrap().messages, 0);
    drop(store);
    for is_closed in [true, false] {
        let store = open(&disk).unwrap();
        assert_eq!(load(&store, "f", &orders(0..700), &how).unwrap().messages, 0);
        assert_eq!(load(&store, "g", &orders(0..10), &how).unwrap().messages, 0);
        if is_closed {
            store.close().unwrap();
        }
    }
    let store = open(&disk).unwrap();
    assert_eq!(load(&store, "f", &orders(0..720), &how).unwrap().messages, 20);
    assert_same(&table(&store), &at_once(&[&orders(700..720)], Format::Json), "new ones");
}

/// A row of a table with a key goes away with its message, and no other does.
#[test]
fn rows_of_a_table_with_a_key_go_away_with_their_messages() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let is_eager = random.below(2) == 0;
        let reopen = || {
            let store = keyed(&disk).unwrap();
            if is_eager { store.checkpoint_every(1) } else { store }
        };
        let mut store = reopen();
        store.set_retention("t", bytes(300 + random.below(4_000))).unwrap();
        let mut history = TableHistory::default();
        let keys = 1 + random.below(30);
        // Returns the first mark that is left.
        let cut = |store: &Store, all: usize| {
            let (schema, stop) = (definition().schema(), AtomicBool::new(false));
            match store.changes("t", (0, u64::MAX), &schema, &stop) {
                Err(Error::Log(log::Error::Gone { oldest, .. })) => oldest,
                _ => u64::from(all == 0),
            }
        };
        for number in 0..6 + random.below(24) {
            let what = format!("seed {seed}, step {number}");
            step(&mut random, &store, &mut history, keys);
            if is_eager {
                // Loads apply retention, too.
                history.1 = history.1.max(cut(&store, history.all()));
            }
            match random.below(12) {
                0 | 1 => {
                    store.retain().unwrap();
                    history.1 = history.1.max(cut(&store, history.all()));
                }
                2 => {
                    store.tend(1, &AtomicBool::new(false)).unwrap();
                    history.1 = history.1.max(cut(&store, history.all()));
                }
                3 => {
                    store.checkpoint().unwrap();
                    drop(store);
                    store = reopen();
                }
                4 => {
                    drop(store);
                    store = reopen();
                }
                5 => {
                    store.close().unwrap();
                    store = reopen();
                    history.1 = history.1.max(cut(&store, history.all()));
                }
                6 => {
                    let rebuilt = store.rebuild("t", 1, &AtomicBool::new(false)).unwrap();
                    assert_same(&rebuilt, &history.table(history.all()), &what);
                }
                7 => check(&mut random, &read(&disk), &history, &what),
                _ => {}
            }
            if random.below(2) == 0 {
                check(&mut random, &store, &history, &what);
            }
            assert_eq!(store.take_notices(), [""; 0], "{what}");
        }
        check(&mut random, &store, &history, &format!("seed {seed}, at the end"));
    }
}

/// Loads files, with retention after each, and notes the acknowledged state: the messages sent, and the first
/// that is left, in the upper half.
fn steps(store: &Store, note: &AtomicU64) -> Result<()> {
    store.create("t", &Definition::default())?;
    store.set_retention("t", bytes(3_000))?;
    let mut sent = 0;
    for number in 0..12u64 {
        let end = sent + 20 + number % 3;
        load(store, &format!("f{number}"), &orders(sent..end), &small(Format::Json))?;
        sent = end;
        note.fetch_max(note.load(Ordering::SeqCst) >> 32 << 32 | sent, Ordering::SeqCst);
        alone(store)?;
        store.retain()?;
        let left = store.tables()?[0].messages;
        note.fetch_max((sent - left) << 32 | sent, Ordering::SeqCst);
        if number % 4 == 3 {
            store.checkpoint()?;
        }
    }
    Ok(())
}

/// Checks that a folder after a crash has the acknowledged messages, except for those that retention may have
/// removed, and works on.
fn check_crashed(crashed: &FaultyDisk, note: u64, what: &str) {
    let (sent, removed) = (note & u64::from(u32::MAX), note >> 32);
    let store = open(crashed).unwrap();
    assert!(store.found().damages.is_empty(), "{:?}, {what}", store.found().damages);
    let found = store.found().next_mark.saturating_sub(1);
    assert!(found >= sent, "{found} of {sent}: {what}");
    if store.create("t", &Definition::default()).unwrap() {
        assert_eq!(note, 0, "{what}");
    }
    let left = store.tables().unwrap()[0].messages;
    // A cut that is not acknowledged takes at most the messages that exceed the bound.
    assert!(found - left >= removed, "{} of {removed}: {what}", found - left);
    let kept = store.tables().unwrap()[0].stored_bytes;
    assert!(kept >= 2_000 || found == left, "{kept} bytes, {left} of {found}: {what}");
    let expected = at_once(&[&orders(found - left..found)], Format::Json);
    assert_same(&alone(&store).unwrap(), &expected, what);
    if sent >= 20 {
        let again = load(&store, "f0", &orders(0..20), &small(Format::Json)).unwrap();
        assert_eq!(again.messages, 0, "{what}");
    }
    // It works on, and the segments of removed messages go away.
    store.set_retention("t", bytes(3_000)).unwrap();
    load(&store, "more", &orders(found..found + 150), &small(Format::Json)).unwrap();
    store.retain().unwrap();
    let left = store.tables().unwrap()[0].messages;
    let expected = at_once(&[&orders(found + 150 - left..found + 150)], Format::Json);
    assert_same(&alone(&store).unwrap(), &expected, what);
    drop(store);
    let store = open(crashed).unwrap();
    assert_same(&alone(&store).unwrap(), &expected, what);
    assert!(segments(crashed).len() <= 3, "{:?}: {what}", segments(crashed));
    assert_eq!(
        load(&store, "more", &orders(found..found + 150), &small(Format::Json)).unwrap().messages,
        0
    );
}

#[test]
fn retention_survives_a_power_cut_at_any_moment() {
    for seed in 0..3 {
        let disk = FaultyDisk::new(seed);
        let note = Arc::new(AtomicU64::new(0));
        disk.keep_history(Arc::clone(&note));
        let store = open(&disk).unwrap();
        steps(&store, &note).unwrap();
        assert!(segments(&disk).len() <= 3, "{:?}", segments(&disk));
        store.close().unwrap();
        for (number, moment) in disk.history().into_iter().enumerate() {
            for cut in 0..2 {
                let what = format!("seed {seed}, moment {number}, cut {cut}");
                let crashed = moment.disk.after_crash(seed ^ cut ^ (number as u64) << 8);
                check_crashed(&crashed, moment.note, &what);
            }
        }
    }
}

#[test]
fn retention_survives_a_fault_at_any_call() {
    for fault in [Fault::Full, Fault::Io, Fault::Short, Fault::Crash] {
        let calls = {
            let disk = FaultyDisk::new(1);
            steps(&open(&disk).unwrap(), &AtomicU64::new(0)).unwrap();
            disk.calls()
        };
        for call in 0..calls {
            let what = format!("{fault:?} at call {call}");
            let disk = FaultyDisk::new(1);
            disk.fail([(call, fault)]);
            let note = AtomicU64::new(0);
            let _ = open(&disk).and_then(|store| steps(&store, &note));
            check_crashed(&disk.after_crash(call), note.load(Ordering::SeqCst), &what);
        }
    }
}

/// No segment goes away before a stored index covers it: without that index, publishers would be forgotten.
#[test]
fn no_segment_is_removed_before_the_index_is_stored() {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    load(&store, "f", &orders(0..700), &small(Format::Json)).unwrap();
    store.set_retention("t", bytes(0)).unwrap();
    let before = segments(&disk);
    disk.keep_history(Arc::default());
    store.retain().unwrap();
    assert_eq!(segments(&disk).len(), 1);
    for moment in disk.history() {
        let left = segments(&moment.disk);
        assert!(left == before || moment.disk.contents("index").is_some());
    }
}

#[test]
fn the_log_of_a_damaged_folder_stays_as_it_is() {
    let disk = FaultyDisk::new(1);
    let store = open(&disk).unwrap();
    load(&store, "f", &orders(0..700), &small(Format::Json)).unwrap();
    store.set_retention("t", bytes(5_000)).unwrap();
    drop(store);
    let names = segments(&disk);
    let mut bytes = disk.contents(&names[2]).unwrap();
    bytes[4096 + 300] ^= 1;
    disk.put(&names[2], bytes);
    let store = open(&disk).unwrap();
    assert!(store.found().is_damaged());
    let result = store.retain().unwrap();
    assert!(result.messages > 0 && result.segments == 0, "{result:?}");
    assert!(segments(&disk).len() >= names.len());
}

/// Appends, requests, retention and merges at the same time: every table is one of some moment.
#[test]
fn requests_during_retention_see_a_table_of_some_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = options();
    log.segment_bytes = 64 << 10;
    let store = Store::open_with(folder.path(), log).unwrap();
    store.create("t", &Definition::default()).unwrap();
    store.create("u", &definition()).unwrap();
    for name in ["t", "u"] {
        store.set_retention(name, bytes(30_000)).unwrap();
    }
    let (is_done, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let line = |n: u64| format!("{{\"n\":{n},\"word\":\"w\",\"price\":1.00,\"half\":0.5}}\n");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for part in 0..60 {
                for name in ["t", "u"] {
                    let text: String = (part * 20..part * 20 + 20).map(line).collect();
                    let mut lines = text.as_bytes();
                    let origin = quarrier_messages::kept::Origin::Stream {
                        name: "lines",
                        reader: &mut lines,
                    };
                    store.load(name, origin, &small(Format::Json), &stop, &mut ()).unwrap();
                }
            }
            is_done.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                store.tend(1, &stop).unwrap();
            }
        });
        // Readers in other processes.
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                let reader = Store::read(folder.path()).unwrap();
                assert!(!reader.found().is_damaged(), "{:?}", reader.found());
                for name in ["t", "u"] {
                    match reader.whole(name, 1, &stop) {
                        Ok(whole) => assert!(whole.table().rows() <= 1_200, "{name}"),
                        Err(error) => {
                            assert!(error.to_string().contains("read the table again"), "{error}")
                        }
                    }
                }
            }
        });
        while !is_done.load(Ordering::SeqCst) {
            for name in ["t", "u"] {
                let whole = store.whole(name, 1, &stop).unwrap();
                let table = whole.table();
                let number = |row| format!("{:?}", table.value(row, 0));
                for row in 1..table.rows() {
                    assert_ne!(number(row), number(row - 1), "{name}");
                }
                if let Some(last) = table.rows().checked_sub(1) {
                    let first = store.table(name, 1, &stop).unwrap();
                    assert!(
                        whole.mark_of(last) <= whole.mark() && first.schema() == table.schema()
                    );
                }
            }
        }
    });
    store.tend(1, &stop).unwrap();
    for name in ["t", "u"] {
        let (now, rebuilt) =
            (store.table(name, 1, &stop).unwrap(), store.rebuild(name, 1, &stop).unwrap());
        assert!(now.rows() > 100, "{name}: {}", now.rows());
        assert_same(&now, &rebuilt, name);
    }
    assert!(std::fs::read_dir(folder.path().join("log")).unwrap().count() <= 4);
}
