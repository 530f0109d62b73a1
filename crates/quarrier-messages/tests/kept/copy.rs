//! A copy of the log restores, at any moment, to tables that the log had: with a store that fails, servers that are
//! killed, and retention. A damaged or hostile copy is refused.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use quarrier_core::source::{Memory, Source};
use quarrier_messages::kept::{
    CopyError, CopyStore, Definition, IntakeOptions, LogCopier, Restored, Store, restore,
};
use quarrier_messages::log::Retention;
use quarrier_messages::{Error, Format, Result, Table, Value};

use crate::intake::done;
use crate::keyed::definition;
use crate::kit::{Random, assert_same, load, options, orders, small};

/// Objects in memory, with faults.
#[derive(Default)]
struct Objects {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Fails a share of the calls: one in this number, 0 for none; and the state of the choice.
    faults: Mutex<(u64, u64)>,
    /// Number of calls that change objects until the store stops for good.
    calls_left: Mutex<Option<u64>>,
}

impl Objects {
    fn fails(&self) -> bool {
        let (share, seed) = &mut *self.faults.lock().unwrap();
        let mut random = Random(*seed);
        let fails = *share > 0 && random.below(*share) == 0;
        *seed = random.0;
        fails
    }

    fn call(&self) -> io::Result<()> {
        match self.fails() {
            true => Err(io::Error::other("503")),
            false => Ok(()),
        }
    }

    /// Counts a call that changes objects.
    fn change(&self) -> io::Result<()> {
        let mut left = self.calls_left.lock().unwrap();
        match &mut *left {
            Some(0) => Err(io::Error::other("stopped")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    fn get(&self, name: &str) -> Vec<u8> {
        self.objects.lock().unwrap()[name].clone()
    }

    fn set(&self, name: &str, bytes: Vec<u8>) {
        self.objects.lock().unwrap().insert(name.to_string(), bytes);
    }

    /// The same objects in another store.
    fn twin(&self) -> Objects {
        let twin = Objects::default();
        twin.objects.lock().unwrap().clone_from(&self.objects.lock().unwrap());
        twin
    }
}

impl CopyStore for Objects {
    fn name(&self) -> String {
        "memory/".to_string()
    }

    fn list(&self, folder: &str, take: &mut dyn FnMut(&str) -> bool) -> io::Result<()> {
        self.call()?;
        for name in self.names() {
            let rest = name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            if rest.is_some_and(|rest| !take(rest)) {
                break;
            }
        }
        Ok(())
    }

    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Source>>> {
        self.call()?;
        let found = self.objects.lock().unwrap().get(name).cloned();
        Ok(found.map(|bytes| Box::new(Memory::new(name, bytes)) as Box<dyn Source>))
    }

    fn put_new(&self, name: &str, bytes: Vec<u8>) -> io::Result<bool> {
        self.call()?;
        self.change()?;
        let is_new = !self.objects.lock().unwrap().contains_key(name);
        if is_new {
            self.set(name, bytes);
        }
        // The object may exist although the response is lost.
        self.call().map(|()| is_new)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call()?;
        self.change()?;
        self.objects.lock().unwrap().remove(name);
        self.call()
    }
}

fn open(folder: &Path) -> Store {
    Store::open_with(folder, options()).unwrap()
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

fn restored(objects: &Objects, folder: &Path) -> Result<Restored> {
    restore(objects, folder, &never())
}

/// The tables of a folder, by name.
fn tables(store: &Store) -> BTreeMap<String, Arc<Table>> {
    let all = store.tables().unwrap();
    let table = |name: String| (name.clone(), store.table(&name, 1, &never()).unwrap());
    all.into_iter().map(|it| table(it.name)).collect()
}

/// Compares the tables of a restored folder with those that the log had at a mark.
fn check(objects: &Objects, history: &[Moment], copied: u64, what: &str) -> u64 {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("d");
    let found = restored(objects, &folder).unwrap_or_else(|error| panic!("{error}: {what}"));
    assert!(found.last_mark >= copied, "{found:?}, {copied} copied: {what}");
    assert!(found.damages.is_empty(), "{found:?}: {what}");
    let moment = history.iter().rev().find(|it| it.last_mark == found.last_mark);
    let moment = moment.unwrap_or_else(|| panic!("{found:?} is no moment of the log: {what}"));
    let store = open(&folder);
    assert_eq!(store.take_notices(), [""; 0], "{what}");
    let made = tables(&store);
    for (name, table) in &made {
        // The bounds of tables may be newer than the messages: they are the first that are copied.
        let known = moment.tables.get(name);
        let rows = table.rows();
        match known {
            Some(known) if !moment.is_bounded => {
                assert_same(table, known, &format!("{name}, {what}"));
            }
            Some(known) => assert!(rows <= known.rows(), "{name}: {rows} rows, {what}"),
            None => assert_eq!(rows, 0, "{name}, {what}"),
        }
    }
    assert!(moment.tables.keys().all(|name| made.contains_key(name)), "{what}");
    // It works on: messages that follow are there.
    let before = store.tables().unwrap()[0].messages;
    let more = load(&store, "after", &orders(0..30), &small(Format::Json)).unwrap();
    assert_eq!(more.messages, 30, "{what}");
    assert_eq!(store.tables().unwrap()[0].messages, before + 30, "{what}");
    store.close().unwrap();
    found.last_mark
}

/// What the log had after an acknowledged step.
struct Moment {
    last_mark: u64,
    is_bounded: bool,
    tables: BTreeMap<String, Arc<Table>>,
}

fn moment(store: &Store, is_bounded: bool) -> Moment {
    let tables = tables(store);
    let last_mark = store.log_state().unwrap().unwrap().last_mark;
    Moment { last_mark, is_bounded, tables }
}

/// Makes one change of a random kind. Each is one commit, so that every prefix of commits is a moment.
fn change(random: &mut Random, store: &Store, number: u64) {
    let take = |text: &str, table: &str| {
        let mut intake = store.intake(table, IntakeOptions::default()).unwrap();
        intake.push(text.as_bytes()).unwrap();
        done(store.take_in(intake, &never()).unwrap().durable()).unwrap();
    };
    let key = |random: &mut Random| random.below(9) as i64;
    match random.below(6) {
        0..3 => {
            let text = format!(
                "{{\"n\":{number},\"note\":\"{}\"}}\n",
                "x".repeat(random.below(3_000) as usize)
            );
            take(&text, "t");
        }
        3 | 4 => {
            let text = format!("{{\"n\":{},\"word\":\"w\",\"price\":{number}.5}}\n", key(random));
            take(&text, "keyed");
        }
        _ => {
            let gone = [vec![Value::Text("w".into()), Value::Integer(key(random))]];
            done(store.remove("keyed", &gone).unwrap().durable()).unwrap();
        }
    }
}

fn step_until_done(copier: &mut LogCopier) {
    for _ in 0..1_000 {
        match copier.step() {
            Ok(()) => return,
            Err(CopyError::Again(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the copy is never complete");
}

#[test]
fn a_copy_restores_to_a_state_of_the_log_at_any_moment() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("d");
        let objects = Arc::new(Objects::default());
        let mut store = open(&folder);
        store.create("t", &Definition::default()).unwrap();
        store.create("keyed", &definition()).unwrap();
        let is_bounded = random.below(3) == 0;
        if is_bounded {
            let retention = Retention { bytes_max: Some(30_000), ..Retention::default() };
            store.set_retention("t", retention).unwrap();
            store.set_retention("keyed", retention).unwrap();
        }
        let mut history = vec![moment(&store, is_bounded)];
        let mut copier = store.copier(Arc::clone(&objects) as _).unwrap();
        let (mut copied, mut last) = (0, 0);
        for number in 0..40 + random.below(60) {
            let what = format!("seed {seed}, step {number}");
            change(&mut random, &store, number);
            history.push(moment(&store, is_bounded));
            match random.below(10) {
                0..5 => {
                    // The store fails in a share of the calls, and stops at a random one.
                    *objects.faults.lock().unwrap() =
                        ([0, 2, 9][random.below(3) as usize], random.next());
                    *objects.calls_left.lock().unwrap() =
                        (random.below(2) == 0).then(|| random.below(9));
                    for _ in 0..random.below(4) {
                        if let Err(CopyError::Final(error)) = copier.step() {
                            panic!("{error}: {what}");
                        }
                    }
                    *objects.faults.lock().unwrap() = (0, 1);
                    *objects.calls_left.lock().unwrap() = None;
                    copied = copied.max(copier.progress().lag().copied_mark);
                }
                5 if is_bounded => drop(store.retain().unwrap()),
                6 => {
                    // A killed server; or one that ends.
                    if random.below(2) == 0 {
                        store.close().unwrap();
                    } else {
                        drop(store);
                    }
                    store = open(&folder);
                    copier = store.copier(Arc::clone(&objects) as _).unwrap();
                }
                _ => {}
            }
            if random.below(4) == 0 && objects.names().iter().any(|it| it.starts_with("tables/")) {
                let now = check(&objects.twin(), &history, copied, &what);
                assert!(now >= last, "{now} after {last}: {what}");
                last = now;
            }
        }
        step_until_done(&mut copier);
        let lag = copier.progress().lag();
        assert_eq!((lag.bytes, lag.copied_mark), (Some(0), lag.last_mark), "seed {seed}");
        let all = history.last().unwrap().last_mark;
        assert_eq!(check(&objects, &history, all, &format!("seed {seed}, at the end")), all);
        if is_bounded {
            store.retain().unwrap();
            step_until_done(&mut copier);
            step_until_done(&mut copier);
            let segments =
                |names: Vec<String>| names.iter().filter(|it| it.contains(".qlog")).count();
            let on_disk = std::fs::read_dir(folder.join("log")).unwrap();
            let on_disk =
                on_disk.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
            assert!(segments(objects.names()) <= segments(on_disk), "{:?}", objects.names());
        }
    }
}

/// A log that grows in small steps has few parts, and each byte is sent a few times.
#[test]
fn small_parts_are_merged() {
    let place = tempfile::tempdir().unwrap();
    let objects = Arc::new(Objects::default());
    let mut options = options();
    options.segment_bytes = 1 << 20;
    let store = Store::open_with(&place.path().join("d"), options).unwrap();
    let mut copier = store.copier(Arc::clone(&objects) as _).unwrap();
    for number in 0..100 {
        load(&store, &format!("f{number}"), &orders(0..1), &small(Format::Json)).unwrap();
        copier.step().unwrap();
    }
    let parts = objects.names().iter().filter(|it| it.starts_with("tail/")).count();
    assert!(parts <= 10, "{:?}", objects.names());
    let copied = copier.progress().lag().bytes_copied;
    let all: u64 = objects
        .names()
        .iter()
        .filter(|it| it.starts_with("tail/"))
        .map(|it| objects.get(it).len() as u64)
        .sum();
    assert!(copied < 9 * all, "{copied} of {all}");
}

fn copied(folder: &Path) -> (Store, Arc<Objects>) {
    let objects = Arc::new(Objects::default());
    let store = open(folder);
    load(&store, "f", &orders(0..400), &small(Format::Json)).unwrap();
    let mut copier = store.copier(Arc::clone(&objects) as _).unwrap();
    copier.step().unwrap();
    load(&store, "g", &orders(400..410), &small(Format::Json)).unwrap();
    copier.step().unwrap();
    (store, objects)
}

#[test]
fn another_log_is_refused_and_so_is_a_later_state_of_this_one() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("d");
    let (store, objects) = copied(&folder);
    let before = objects.names();
    let refused = |store: &Store| {
        let mut copier = store.copier(Arc::clone(&objects) as _).unwrap();
        let Err(CopyError::Final(error)) = copier.step() else { panic!("not refused") };
        assert!(error.starts_with("memory/: has the copy of another log"), "{error}");
        assert_eq!(objects.names(), before);
    };
    let other = open(&place.path().join("other"));
    load(&other, "f", &orders(0..400), &small(Format::Json)).unwrap();
    refused(&other);
    // A restored folder is another log: the first may still be there.
    restored(&objects, &place.path().join("again")).unwrap();
    refused(&open(&place.path().join("again")));
    store.close().unwrap();
    // A folder that was set back, with other messages since.
    let backup = place.path().join("backup");
    let status = std::process::Command::new("cp").arg("-a").args([&folder, &backup]).status();
    assert!(status.unwrap().success());
    let store = open(&folder);
    load(&store, "h", &orders(410..500), &small(Format::Json)).unwrap();
    store.copier(Arc::clone(&objects) as _).unwrap().step().unwrap();
    drop(store);
    let before = objects.names();
    let set_back = open(&backup);
    for name in ["x", "y"] {
        let mut copier = set_back.copier(Arc::clone(&objects) as _).unwrap();
        assert!(matches!(copier.step(), Err(CopyError::Final(_))), "{name}");
        assert_eq!(objects.names(), before);
        load(&set_back, name, &orders(0..300), &small(Format::Json)).unwrap();
    }
}

#[test]
fn damaged_and_hostile_copies_are_refused_and_leave_an_empty_folder() {
    let place = tempfile::tempdir().unwrap();
    let (_store, objects) = copied(&place.path().join("d"));
    let folder = place.path().join("again");
    let refused = |objects: &Objects, what: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        match restored(objects, &folder) {
            Err(Error::Store { place, reason }) => {
                assert!(place == "memory/" && !reason.contains('\n'), "{place}: {reason}, {what}");
            }
            other => panic!("{other:?}: {what}"),
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{what}");
    };
    let mut random = Random(3);
    for name in objects.names() {
        if name == "identity" {
            continue;
        }
        let whole = objects.get(&name);
        for _ in 0..6 {
            let twin = objects.twin();
            let mut bytes = whole.clone();
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 + random.below(255) as u8;
            twin.set(&name, bytes);
            refused(&twin, &format!("{name}, byte {at}"));
            twin.set(&name, whole[..at].to_vec());
            refused(&twin, &format!("{name}, {at} bytes"));
        }
        let twin = objects.twin();
        twin.set(&name, [&whole[..], &[0; 64]].concat());
        refused(&twin, &format!("{name}, longer"));
        twin.objects.lock().unwrap().remove(&name);
        // The last part is a prefix that is missing its end; everything else is needed.
        let is_last = objects.names().iter().rfind(|it| it.starts_with("tail/")) == Some(&name);
        if !is_last {
            refused(&twin, &format!("{name}, missing"));
        }
    }
    // Names are never paths.
    let twin = objects.twin();
    for name in ["log/../../escaped", "tables/..", "tail//etc/passwd", "log/.qlog", "log/"] {
        twin.set(name, b"hostile".to_vec());
    }
    let found = restored(&twin, &folder).unwrap();
    assert_eq!(found.messages, 410);
    let mut there: Vec<String> = std::fs::read_dir(place.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    assert_eq!(there, ["again", "d"]);
    // Nothing is overwritten.
    let again = restored(&objects, &folder).unwrap_err().to_string();
    assert!(again.contains("is not empty"), "{again}");
    let nothing = restored(&Objects::default(), &place.path().join("new")).unwrap_err();
    assert!(nothing.to_string().contains("has no copy of a log"), "{nothing}");
    assert!(!place.path().join("new").exists());
}

#[test]
fn an_interrupted_restoration_is_noticed_and_repeated() {
    let place = tempfile::tempdir().unwrap();
    let (_store, objects) = copied(&place.path().join("d"));
    let folder = place.path().join("again");
    let stop = AtomicBool::new(true);
    assert!(matches!(restore(objects.as_ref(), &folder, &stop), Err(Error::Cancelled)));
    assert!(!folder.exists());
    stop.store(false, Ordering::Relaxed);
    // As a kill leaves it.
    restored(&objects, &folder).unwrap();
    std::fs::remove_file(folder.join("catalog")).unwrap();
    std::fs::write(folder.join("restoring"), "").unwrap();
    for error in [
        Store::open(&folder).err().unwrap(),
        Store::read(&folder).err().unwrap(),
        Store::skimmed(&folder).err().unwrap(),
        Store::read_whole(&folder).err().unwrap(),
    ] {
        assert!(error.to_string().contains("restoration was interrupted"), "{error}");
    }
    let found = restored(&objects, &folder).unwrap();
    assert_eq!((found.messages, found.last_mark, found.tables), (410, 410, 1));
    let store = open(&folder);
    assert_eq!(store.table("t", 1, &never()).unwrap().rows(), 410);
}

/// Publishers of removed segments are known in a restored folder: nothing is stored twice.
#[test]
fn publishers_of_removed_messages_are_copied() {
    let place = tempfile::tempdir().unwrap();
    let objects = Arc::new(Objects::default());
    let store = open(&place.path().join("d"));
    load(&store, "f", &orders(0..700), &small(Format::Json)).unwrap();
    let mut copier = store.copier(Arc::clone(&objects) as _).unwrap();
    copier.step().unwrap();
    let all = Retention { bytes_max: Some(0), ..Retention::default() };
    store.set_retention("t", all).unwrap();
    load(&store, "g", &orders(0..10), &small(Format::Json)).unwrap();
    assert!(store.retain().unwrap().segments > 0);
    copier.step().unwrap();
    copier.step().unwrap();
    assert!(!objects.names().iter().any(|it| it.contains(".qlog")), "{:?}", objects.names());
    let folder = place.path().join("again");
    restored(&objects, &folder).unwrap();
    let store = open(&folder);
    for (name, lines) in [("f", 0..700), ("g", 0..10)] {
        assert_eq!(load(&store, name, &orders(lines), &small(Format::Json)).unwrap().messages, 0);
    }
}
