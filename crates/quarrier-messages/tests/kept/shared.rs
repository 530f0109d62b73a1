//! Readers that share parsed changes get what a reader alone gets from the disk.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_messages::kept::{Changes, Definition, IntakeOptions, ReadyChanges, Store};
use quarrier_messages::log::Retention;
use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::{Error, Result, Schema, Value, log};

use crate::intake::done;
use crate::keyed::{TableHistory, definition, keyed, step};
use crate::kit::Random;

/// A subscriber: each reads at its own pace.
#[derive(Debug, Clone)]
struct Reader {
    table: &'static str,
    schema: Schema,
    mark: u64,
    /// How often others could share what it read.
    shared: usize,
}

/// A changed row: its mark, whether it is gone, and its values except NULL.
type Row = (u64, bool, Vec<(String, String)>);

/// The changes with these marks. A column that is missing is a column of NULLs.
fn rows(changes: &Changes, marks: Range<u64>) -> Vec<Row> {
    let table = changes.table();
    let values = |row| {
        let fields = table.schema().fields.iter().enumerate();
        let values = fields.map(|(at, field)| (field.name.to_string(), table.value(row, at)));
        let values = values.filter(|(_, value)| *value != Value::Null);
        let mut values: Vec<_> = values.map(|(name, it)| (name, format!("{it:?}"))).collect();
        values.sort_unstable();
        values
    };
    let all = (0..table.rows()).map(|row| (changes.mark_of(row), changes.is_gone(row), row));
    let wanted = all.filter(|(mark, ..)| marks.contains(mark));
    wanted.map(|(mark, is_gone, row)| (mark, is_gone, values(row))).collect()
}

impl Reader {
    fn new(store: &Store, table: &'static str, mark: u64) -> Self {
        let whole = store.whole(table, 1, &AtomicBool::new(false)).unwrap();
        Reader { table, schema: whole.table().schema().clone(), mark, shared: 0 }
    }

    fn read(&self, store: &Store, until: u64) -> Result<Changes> {
        store.changes(self.table, (self.mark, until), &self.schema, &AtomicBool::new(false))
    }

    /// Reads once, and compares with a fresh reader of the disk, and with other readers at the same mark.
    fn check(&mut self, store: &Store, disk: &FaultyDisk, until: u64, what: &str) {
        let fresh = Store::read_on(Arc::new(disk.clone()), Arc::new(disk.clone())).unwrap();
        let read = self.read(store, until);
        let ready = store.changes_ready(self.table, (self.mark, until), &self.schema);
        let changes = match read {
            Ok(changes) => changes,
            Err(Error::Log(log::Error::Gone { oldest, .. })) => {
                assert!(ready.is_none(), "{what}");
                // Which rows the messages replaced is known from a checkpoint on, which may be later here.
                let alone = self.read(&fresh, until);
                let is_gone = matches!(alone, Err(Error::Log(log::Error::Gone { .. })));
                assert!(is_gone || self.table == "t" && alone.is_ok(), "{what}: {alone:?}");
                self.mark = self.mark.max(oldest.saturating_sub(1));
                // The rows that the next messages replaced are gone, too.
                if self.read(store, until).is_err() {
                    self.mark = last_mark(store, self.table);
                }
                return;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        // The steps of readers that are far behind are not kept.
        if let Some(ready) = ready {
            let (mark, is_same) = match &ready {
                ReadyChanges::Parsed(it) => (it.mark(), Arc::ptr_eq(it.table(), changes.table())),
                ReadyChanges::Nothing(mark) => (*mark, changes.table().rows() == 0),
            };
            assert!(mark == changes.mark() && is_same, "{what}: {ready:?}");
            self.shared += usize::from(matches!(ready, ReadyChanges::Parsed(_)));
        }
        assert!(changes.mark() <= until, "{what}");
        let marks = self.mark + 1..changes.mark() + 1;
        let mut alone = (Vec::new(), self.clone());
        while alone.1.mark < changes.mark() {
            match alone.1.read(&fresh, changes.mark()) {
                Ok(some) => {
                    let some_marks = alone.1.mark + 1..some.mark() + 1;
                    alone.0.extend(rows(&some, some_marks));
                    (alone.1.mark, alone.1.schema) = (some.mark(), some.table().schema().clone());
                }
                // Only a reader that was there before retention knows which rows the messages replaced.
                Err(Error::Log(log::Error::Gone { .. })) if self.table == "t" => {
                    alone.0 = rows(&changes, marks.clone());
                    break;
                }
                Err(error) => panic!("{what}: {error}"),
            }
        }
        assert_eq!(rows(&changes, marks), alone.0, "{what}");
        (self.mark, self.schema) = (changes.mark(), changes.table().schema().clone());
    }
}

/// Returns the mark of the last message.
fn last_mark(store: &Store, table: &str) -> u64 {
    store.whole(table, 1, &AtomicBool::new(false)).unwrap().mark()
}

/// Appends messages to the table without a key; some have columns that no earlier one has.
fn append(random: &mut Random, store: &Store) -> u64 {
    let mut lines = String::new();
    let count = 1 + random.below(12);
    for number in 0..count {
        let column = random.below(6);
        let length = random.below(60) as usize;
        lines += &format!("{{\"n\":{number},\"c{column}\":\"{}\"}}\n", "z".repeat(length));
    }
    let mut intake = store.intake("p", IntakeOptions::default()).unwrap();
    intake.push(lines.as_bytes()).unwrap();
    done(store.take_in(intake, &AtomicBool::new(false)).unwrap().durable()).unwrap();
    count
}

fn opened(disk: &FaultyDisk) -> Store {
    let store = keyed(disk).unwrap();
    store.create("p", &Definition::default()).unwrap();
    store
}

#[test]
fn readers_at_any_pace_get_what_a_reader_alone_gets() {
    let mut shared = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let mut store = opened(&disk);
        if seed % 3 == 0 {
            let bytes_max = Some(2_000 + random.below(4_000));
            let retention = Retention { bytes_max, ..Retention::default() };
            store.set_retention("t", retention).unwrap();
            store.set_retention("p", retention).unwrap();
        }
        let stop = AtomicBool::new(false);
        let mut readers: Vec<Reader> = Vec::new();
        for number in 0..30 + random.below(40) {
            let what = format!("seed {seed}, step {number}");
            match random.below(8) {
                0..=2 => drop(append(&mut random, &store)),
                _ => step_of_keyed(&mut random, &store),
            }
            match random.below(16) {
                0 => drop(store.retain().unwrap()),
                1 => drop(store.tend(1, &stop).unwrap()),
                2 => store.checkpoint().unwrap(),
                3 => drop(store.rebuild(["t", "p"][random.below(2) as usize], 1, &stop).unwrap()),
                4 => store.forget(),
                5 => {
                    drop(store);
                    store = opened(&disk);
                }
                _ => {}
            }
            if random.below(3) == 0 {
                let table = ["t", "p"][random.below(2) as usize];
                let mark = last_mark(&store, table);
                let mark = mark - random.below(mark.min(30) + 1);
                readers.push(Reader::new(&store, table, mark));
            }
            for reader in &mut readers {
                // Some are slow.
                if random.below(3) > 0 {
                    let until = match random.below(4) {
                        0 => reader.mark + 1 + random.below(20),
                        _ => u64::MAX,
                    };
                    reader.check(&store, &disk, until, &format!("{what}, {}", reader.table));
                }
            }
        }
        shared += readers.iter().map(|reader| reader.shared).sum::<usize>();
    }
    assert!(shared > 1_000, "{shared}");
}

/// Appends messages to the table with a key, or removes rows.
fn step_of_keyed(random: &mut Random, store: &Store) {
    let keys = 1 + random.below(20);
    // `step` asserts the marks of removals, which are others here because of the second table.
    let mut next = Random(random.0);
    let (_, which) = (next.below(14), next.below(8));
    match which {
        0 | 1 => remove_some(random, store, keys),
        _ => step(random, store, &mut TableHistory::default(), keys),
    }
}

fn remove_some(random: &mut Random, store: &Store, keys: u64) {
    let key = |random: &mut Random| {
        let word = ["", "a", "7"][random.below(3) as usize];
        vec![Value::Text(word.into()), Value::Integer(random.below(keys) as i64 - 2)]
    };
    let gone: Vec<_> = (0..1 + random.below(5)).map(|_| key(random)).collect();
    done(store.remove("t", &gone).unwrap().durable()).unwrap();
}

/// Threads that read while messages arrive get every change once, and they agree.
#[test]
fn threads_that_share_steps_get_every_change_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.create("t", &definition()).unwrap();
    store.create("p", &Definition::default()).unwrap();
    let is_done = AtomicBool::new(false);
    let collected: Vec<(&str, Vec<Row>)> = std::thread::scope(|scope| {
        let reader = |number: u64| {
            let (store, is_done) = (&store, &is_done);
            move || {
                let table = ["t", "p"][(number % 2) as usize];
                let (mut random, mut all) = (Random(number), Vec::new());
                let mut reader = Reader::new(store, table, 0);
                reader.schema = match table {
                    "t" => definition().schema(),
                    _ => Schema::default(),
                };
                loop {
                    let is_last = is_done.load(Ordering::SeqCst);
                    let changes = reader.read(store, u64::MAX).unwrap();
                    all.extend(rows(&changes, reader.mark + 1..changes.mark() + 1));
                    let is_at_end = changes.mark() == reader.mark;
                    (reader.mark, reader.schema) =
                        (changes.mark(), changes.table().schema().clone());
                    if is_last && is_at_end {
                        return (table, all);
                    }
                    if is_at_end || random.below(3) == 0 {
                        std::thread::sleep(std::time::Duration::from_micros(random.below(900)));
                    }
                }
            }
        };
        let readers: Vec<_> = (0..8).map(|number| scope.spawn(reader(number))).collect();
        let mut random = Random(9);
        for _ in 0..60 {
            append(&mut random, &store);
            step_of_keyed(&mut random, &store);
            if random.below(8) == 0 {
                store.tend(1, &AtomicBool::new(false)).unwrap();
            }
        }
        is_done.store(true, Ordering::SeqCst);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let fresh = Store::read(folder.path()).unwrap();
    for (table, all) in collected {
        let schema = match table {
            "t" => definition().schema(),
            _ => Schema::default(),
        };
        let mut alone = Reader { table, schema, mark: 0, shared: 0 };
        let mut expected = Vec::new();
        loop {
            let changes = alone.read(&fresh, u64::MAX).unwrap();
            if changes.mark() == alone.mark {
                break;
            }
            expected.extend(rows(&changes, alone.mark + 1..changes.mark() + 1));
            (alone.mark, alone.schema) = (changes.mark(), changes.table().schema().clone());
        }
        assert!(all.len() > 100, "{table}: {}", all.len());
        assert_eq!(all, expected, "{table}");
    }
}
