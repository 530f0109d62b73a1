//! A table with a key has the rows that its messages produce in sequence, whatever happens to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_messages::kept::{
    AppendResult, Changes, DefinedColumn, Definition, IntakeOptions, Store,
};
use quarrier_messages::log::disk::{Fault, FaultyDisk};
use quarrier_messages::{Error, Format, Kind, Load, Result, Table, Value, log};

use crate::intake::done;
use crate::kit::{Random, alone, assert_same, load, open, small};

fn column(name: &str, kind: Kind) -> DefinedColumn {
    DefinedColumn { name: name.into(), kind, digits: 38, is_required: false }
}

pub(crate) fn definition() -> Definition {
    let columns = vec![
        column("n", Kind::Integer),
        column("word", Kind::Text),
        column("price", Kind::Decimal { scale: 2 }),
        column("note", Kind::Text),
        column("at", Kind::Timestamp),
        column("half", Kind::Float),
    ];
    Definition::new(columns).unwrap().with_key(&["word", "n"]).unwrap()
}

/// Opens a folder, and creates the table when it is opened first.
pub(crate) fn keyed(disk: &FaultyDisk) -> Result<Store> {
    let store = open(disk)?;
    store.create("t", &definition())?;
    Ok(store)
}

type Key = (String, i64);

/// A message, in one of its equivalent notations.
#[derive(Debug, Clone)]
struct Message {
    key: Key,
    json: String,
    csv: String,
}

fn message(random: &mut Random, keys: u64) -> Message {
    let n = random.below(keys) as i64 - 2;
    let word = ["", "a", "b\\u00e9", "2024-01-31", "7"][random.below(5) as usize];
    let price = format!("{}.{:02}", random.below(900), random.below(100));
    let note = ["x", "2024-01-31T10:00:00Z", "1.5", "long"][random.below(4) as usize];
    let note =
        if note == "long" { "y".repeat(random.below(90) as usize) } else { note.to_string() };
    let second = random.below(60);
    let half = random.below(40) as f64 / 2.0;
    let json = format!(
        "{{\"n\":{n},\"word\":\"{word}\",\"price\":{price},\"note\":\"{note}\",\
         \"at\":\"2024-05-31T10:00:{second:02}Z\",\"half\":{half}}}\n"
    );
    let word = word.replace("\\u00e9", "é");
    let csv = format!("{n},\"{word}\",{price},\"{note}\",2024-05-31T10:00:{second:02}Z,{half}\n");
    Message { key: (word, n), json, csv }
}

/// The history of a table, by marks from 1 on, and the mark before which retention has removed the messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableHistory(Vec<(Key, Option<Message>)>, pub(crate) u64);

impl TableHistory {
    /// Returns the rows that the first messages leave, in order.
    fn left(&self, until: usize) -> Vec<(u64, &Message)> {
        let mut left: BTreeMap<&Key, (u64, &Message)> = BTreeMap::new();
        for (mark, (key, message)) in (1..).zip(&self.0[..until]) {
            match message {
                Some(message) => drop(left.insert(key, (mark, message))),
                None => drop(left.remove(key)),
            }
        }
        let mut left: Vec<(u64, &Message)> = left.into_values().collect();
        left.retain(|(mark, _)| *mark >= self.1);
        left.sort_by_key(|(mark, _)| *mark);
        left
    }

    /// Builds the table that these rows produce when they are loaded at once.
    pub(crate) fn table(&self, until: usize) -> Table {
        let lines: String = self.left(until).iter().map(|(_, it)| it.json.as_str()).collect();
        at_once(&lines)
    }

    pub(crate) fn all(&self) -> usize {
        self.0.len()
    }
}

fn at_once(lines: &str) -> Table {
    let load = Load::new(Format::Json).schema(definition().schema()).workers(1);
    load.run(&[&Memory::new("f", lines.to_string())]).unwrap().table
}

fn take(store: &Store, text: &str) -> Result<AppendResult> {
    let mut intake = store.intake("t", IntakeOptions::default())?;
    intake.push(text.as_bytes())?;
    done(store.take_in(intake, &AtomicBool::new(false))?.durable())
}

fn remove(store: &Store, keys: &[Key]) -> Result<AppendResult> {
    let value = |(word, n): &Key| vec![Value::Text(word.as_str().into()), Value::Integer(*n)];
    done(store.remove("t", &keys.iter().map(value).collect::<Vec<_>>())?.durable())
}

const HEADER: &str = "n,word,price,note,at,half\n";

/// Makes one step of a table's life.
pub(crate) fn step(random: &mut Random, store: &Store, history: &mut TableHistory, keys: u64) {
    let count = random.below(14) as usize;
    match random.below(8) {
        0 | 1 => {
            let gone: Vec<Key> = (0..count).map(|_| message(random, keys + 2).key).collect();
            let taken = remove(store, &gone).unwrap();
            let first = history.all() as u64 + 1;
            if count > 0 {
                assert_eq!(taken.marks, first..first + count as u64);
            }
            history.0.extend(gone.into_iter().map(|key| (key, None)));
        }
        which => {
            let messages: Vec<Message> = (0..count).map(|_| message(random, keys)).collect();
            let json: String = messages.iter().map(|it| it.json.as_str()).collect();
            let csv: String = messages.iter().map(|it| it.csv.as_str()).collect();
            match which {
                2 | 3 => {
                    let name = format!("f{}", random.next());
                    load(store, &name, json.as_bytes(), &small(Format::Json)).unwrap();
                }
                4 if count > 0 => drop(take(store, &format!("{HEADER}{csv}")).unwrap()),
                _ => drop(take(store, &json).unwrap()),
            }
            history.0.extend(messages.into_iter().map(|it| (it.key.clone(), Some(it))));
        }
    }
}

/// Returns rows for display, with the values to sort them by.
fn rows(changes: &Changes, range: &Range<u64>) -> Vec<(u64, bool, String)> {
    let table = changes.table();
    let row = |row: u64| {
        let values = (0..table.columns().len()).map(|column| table.value(row, column));
        (changes.mark_of(row), changes.is_gone(row), format!("{:?}", values.collect::<Vec<_>>()))
    };
    let rows = (0..table.rows()).map(row);
    rows.filter(|(mark, ..)| range.contains(mark)).collect()
}

/// Applies all later changes to the rows as of a mark, and compares with the rows at the end.
fn follow(store: &Store, history: &TableHistory, from: u64) {
    let (stop, until) = (AtomicBool::new(false), history.all() as u64);
    if from + 1 < history.1 {
        let gone = store.whole_at("t", from, (1, &stop)).unwrap_err();
        assert!(matches!(gone, Error::Log(log::Error::Gone { .. })), "{gone}");
        return;
    }
    let then = store.whole_at("t", from, (1, &stop)).unwrap().unwrap();
    assert_same(then.table(), &history.table(from as usize), &format!("as of {from}"));
    let mut fold: Vec<(u64, String)> =
        rows(&then, &(0..u64::MAX)).into_iter().map(|(mark, _, row)| (mark, row)).collect();
    let mut mark = from;
    while mark < until {
        let schema = definition().schema();
        let changes = match store.changes("t", (mark, until), &schema, &stop) {
            // After retention, the rows that messages replaced may be unknown.
            Err(Error::Log(log::Error::Gone { .. })) if history.1 > 1 => return,
            changes => changes.unwrap(),
        };
        assert!(changes.mark() > mark, "from {from}: stays at {mark}");
        for (at, is_gone, row) in rows(&changes, &(mark + 1..changes.mark() + 1)) {
            match is_gone {
                true => {
                    let place = fold.iter().position(|(_, other)| *other == row);
                    fold.remove(place.unwrap_or_else(|| panic!("- {row} at {at}")));
                }
                false => fold.push((at, row)),
            }
            let expected = history.left(at as usize);
            // Between a gone row and its replacement, there is one row less.
            assert!(expected.len() - fold.len() <= usize::from(is_gone), "from {from}, at {at}");
        }
        mark = changes.mark();
    }
    let now = store.whole("t", 1, &stop).unwrap();
    let now = rows(&now, &(0..u64::MAX)).into_iter().map(|(mark, _, row)| (mark, row));
    assert_eq!(fold, now.collect::<Vec<_>>(), "from {from}");
}

/// Returns the messages of the table's sources, concatenated.
fn run_lines(store: &Store) -> String {
    let mut all = String::new();
    for run in store.runs("t").unwrap() {
        let mut bytes = vec![0; run.length() as usize];
        read_full_at(&run, 0, &mut bytes).unwrap();
        all += std::str::from_utf8(&bytes).unwrap();
    }
    all
}

pub(crate) fn check(random: &mut Random, store: &Store, history: &TableHistory, what: &str) {
    assert_same(&alone(store).unwrap(), &history.table(history.all()), what);
    let left = history.left(history.all());
    let lines = run_lines(store);
    let messages =
        lines.lines().filter(|line| !line.is_empty() && !line.starts_with("\"n\",")).count();
    assert_eq!(messages, left.len(), "messages that are left: {what}\n{lines}");
    for (_, message) in left {
        let is_there = lines.contains(&message.json) || lines.contains(&message.csv);
        assert!(is_there, "{message:?}: {what}");
    }
    follow(store, history, random.below(history.all() as u64 + 1));
}

#[test]
fn a_table_has_the_rows_of_its_messages_after_any_history() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let is_eager = random.below(2) == 0;
        let reopen = || {
            let store = keyed(&disk).unwrap();
            if is_eager { store.checkpoint_every(1) } else { store }
        };
        let mut store = reopen();
        let mut history = TableHistory::default();
        let keys = 1 + random.below(30);
        for number in 0..4 + random.below(24) {
            let what = format!("seed {seed}, step {number}");
            step(&mut random, &store, &mut history, keys);
            if random.below(3) == 0 {
                check(&mut random, &store, &history, &what);
            }
            match random.below(12) {
                0 => {
                    store.checkpoint().unwrap();
                    drop(store);
                    store = reopen();
                }
                1 => {
                    drop(store);
                    store = reopen();
                }
                2 => {
                    store.close().unwrap();
                    store = reopen();
                }
                3 => {
                    let rebuilt = store.rebuild("t", 1, &AtomicBool::new(false)).unwrap();
                    assert_same(&rebuilt, &history.table(history.all()), &what);
                }
                4 => {
                    let disk = Arc::new(disk.clone());
                    let reader = Store::read_on(Arc::clone(&disk) as _, disk).unwrap();
                    check(&mut random, &reader, &history, &what);
                }
                _ => {}
            }
            assert_eq!(store.take_notices(), [""; 0], "{what}");
        }
        check(&mut random, &store, &history, &format!("seed {seed}, at the end"));
        let (all, stop) = (history.all(), AtomicBool::new(false));
        let gone = store.gone("t", 1..all as u64 + 1, &stop).unwrap();
        let came = history.0.iter().filter(|(_, message)| message.is_some()).count();
        assert_eq!(gone as usize, came - history.left(all).len(), "seed {seed}");
    }
}

#[test]
fn a_table_of_few_keys_stays_small_however_often_they_are_replaced() {
    let disk = FaultyDisk::new(1);
    let mut options = crate::kit::options();
    options.segment_bytes = 1 << 20;
    let open = || Store::open_on(Arc::new(disk.clone()), Arc::new(disk.clone()), options.clone());
    let store = open().unwrap();
    store.create("t", &definition()).unwrap();
    let line = |n: u64| format!("{{\"n\":{},\"word\":\"\",\"note\":\"note {n}\"}}\n", n % 100);
    for part in 0..40u64 {
        let lines: String = (part * 500..part * 500 + 500).map(line).collect();
        take(&store, &lines).unwrap();
        let table = alone(&store).unwrap();
        assert_eq!(table.rows(), 100);
        let strings = table.columns()[3].dictionary().map_or(0, |it| it.len());
        assert!(strings <= 10_000 && table.segments() <= 64, "{strings}, {}", table.segments());
    }
    let last: String = (19_900..20_000).map(line).collect();
    assert_same(&alone(&store).unwrap(), &at_once(&last), "in the end");
}

#[test]
fn impossible_keys_and_tables_without_keys_are_refused() {
    let disk = FaultyDisk::new(1);
    let store = keyed(&disk).unwrap();
    let stop = AtomicBool::new(false);
    store.create("plain", &Definition::default()).unwrap();
    let word = || Value::Text("a".into());
    assert!(store.remove("plain", &[vec![word()]]).is_err());
    assert!(store.remove("none", &[vec![word()]]).is_err());
    for key in [
        vec![word()],
        vec![word(), Value::Null],
        vec![word(), Value::Decimal { mantissa: 15, scale: 1 }],
        vec![Value::Integer(1), word()],
    ] {
        assert!(store.remove("t", &[key]).is_err());
    }
    take(&store, "{\"n\":5,\"word\":\"a\"}\n{\"word\":\"a\"}\n{\"n\":1,\"word\":1e99}\n").unwrap();
    assert_eq!(alone(&store).unwrap().rows(), 1);
    let fifty = Value::Decimal { mantissa: 500, scale: 2 };
    let taken = done(store.remove("t", &[vec![word(), fifty]]).unwrap().durable()).unwrap();
    assert_eq!(store.gone("t", taken.marks, &stop).unwrap(), 1);
    assert_eq!(alone(&store).unwrap().rows(), 0);
    take(&store, "{\"n\":5,\"word\":\"a\"}\n{\"n\":6,\"word\":\"a\"}\n").unwrap();
    let remove = |lines: &str| store.remove_lines("t", lines.as_bytes(), &stop);
    for lines in ["{\"n\":5}\n", "{\"n\":\"x\",\"word\":\"a\"}\n", "no line\n"] {
        assert!(remove(lines).is_err(), "{lines}");
    }
    done(remove("{\"n\":6.0,\"word\":\"a\",\"more\":1}\n").unwrap().durable()).unwrap();
    assert_eq!(alone(&store).unwrap().value(0, 0), Value::Integer(5));
    assert_eq!(store.definition("t").unwrap().unwrap().key(), [1, 0]);
    assert!(store.whole_at("plain", 0, (1, &stop)).unwrap().is_none());
}

/// Runs steps that are the same in each run, until the disk fails.
fn steps(store: &Store, note: &AtomicU64) -> Result<()> {
    let mut random = Random(7);
    let mut sent = 0;
    for number in 0..14 {
        let count = 1 + random.below(6);
        let some: Vec<Message> = (0..count).map(|_| message(&mut random, 4)).collect();
        if number % 3 == 2 {
            remove(store, &some.into_iter().map(|it| it.key).collect::<Vec<_>>())?;
        } else {
            take(store, &some.iter().map(|it| it.json.as_str()).collect::<String>())?;
        }
        sent += count;
        note.store(sent, std::sync::atomic::Ordering::SeqCst);
        if number % 4 == 3 {
            alone(store)?;
            store.checkpoint()?;
        }
    }
    Ok(())
}

/// Returns the history of all these steps.
fn all_steps() -> TableHistory {
    let mut random = Random(7);
    let mut history = TableHistory::default();
    for number in 0..14 {
        let count = 1 + random.below(6);
        let some: Vec<Message> = (0..count).map(|_| message(&mut random, 4)).collect();
        let of = |it: Message| (it.key.clone(), (number % 3 != 2).then_some(it));
        history.0.extend(some.into_iter().map(of));
    }
    history
}

/// Checks that the rows after a crash are those of a prefix of the steps, no shorter than the acknowledged
/// one.
fn check_crashed(crashed: &FaultyDisk, history: &TableHistory, acknowledged: u64, what: &str) {
    let store = keyed(crashed).unwrap();
    assert!(store.found().damages.is_empty(), "{what}");
    let whole = store.whole("t", 1, &AtomicBool::new(false)).unwrap();
    let found = whole.mark();
    assert!(found >= acknowledged, "{found} of {acknowledged} acknowledged: {what}");
    assert_same(whole.table(), &history.table(found as usize), what);
    // The table accepts more messages, and no removed row returns.
    let more = message(&mut Random(found), 4);
    take(&store, &more.json).unwrap();
    let mut longer = TableHistory(history.0[..found as usize].to_vec(), 0);
    longer.0.push((more.key.clone(), Some(more)));
    assert_same(&alone(&store).unwrap(), &longer.table(longer.all()), what);
    drop(store);
    assert_same(&alone(&keyed(crashed).unwrap()).unwrap(), &longer.table(longer.all()), what);
}

#[test]
fn upserts_and_removals_survive_a_power_cut_at_any_moment() {
    let history = all_steps();
    for seed in 0..3 {
        let disk = FaultyDisk::new(seed);
        let note = Arc::new(AtomicU64::new(0));
        disk.keep_history(Arc::clone(&note));
        let store = keyed(&disk).unwrap();
        steps(&store, &note).unwrap();
        assert_same(&alone(&store).unwrap(), &history.table(history.all()), "all steps");
        store.close().unwrap();
        for (number, moment) in disk.history().into_iter().enumerate() {
            for cut in 0..3 {
                let what = format!("seed {seed}, moment {number}, cut {cut}");
                let crashed = moment.disk.after_crash(seed ^ cut ^ (number as u64) << 8);
                check_crashed(&crashed, &history, moment.note, &what);
            }
        }
    }
}

#[test]
fn upserts_and_removals_survive_a_fault_at_any_call() {
    let history = all_steps();
    for fault in [Fault::Full, Fault::Io, Fault::Short, Fault::Crash] {
        let calls = {
            let disk = FaultyDisk::new(1);
            let store = keyed(&disk).unwrap();
            steps(&store, &AtomicU64::new(0)).unwrap();
            drop(store);
            disk.calls()
        };
        for call in 0..calls {
            let what = format!("{fault:?} at call {call}");
            let disk = FaultyDisk::new(1);
            disk.fail([(call, fault)]);
            let note = AtomicU64::new(0);
            let _ = keyed(&disk).and_then(|store| steps(&store, &note));
            let acknowledged = note.load(std::sync::atomic::Ordering::SeqCst);
            check_crashed(&disk.after_crash(call), &history, acknowledged, &what);
        }
    }
}
