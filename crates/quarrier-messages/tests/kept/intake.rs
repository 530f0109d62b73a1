//! Messages that arrive piece by piece: all or none are appended, and only once.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Wake, Waker};

use quarrier_messages::kept::{
    AppendResult, DefinedColumn, Definition, IntakeOptions, Misfit, Store,
};
use quarrier_messages::{Format, Kind, Result, Table, Value};

use crate::kit::{Random, assert_same, at_once};

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a task on this thread until it is done.
pub(crate) fn done<T>(task: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = pin!(task);
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn take(store: &Store, bytes: &[u8], options: &IntakeOptions) -> Result<AppendResult> {
    let mut intake = store.intake();
    let mut random = Random(bytes.len() as u64);
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = (1 + random.below(1 << 16) as usize).min(rest.len());
        intake.push(&rest[..count])?;
        rest = &rest[count..];
    }
    done(store.take_in("t", &intake, options, &AtomicBool::new(false))?.durable())
}

fn table(store: &Store) -> Arc<Table> {
    store.table("t", 2, &AtomicBool::new(false)).unwrap()
}

fn store(definition: &Definition) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert!(store.create("t", definition).unwrap());
    assert!(!store.create("t", definition).unwrap());
    (folder, store)
}

fn column(name: &str, kind: Kind) -> DefinedColumn {
    DefinedColumn { name: name.into(), kind, digits: 38, is_required: false }
}

fn defined() -> Definition {
    Definition::new(vec![
        DefinedColumn { is_required: true, ..column("id", Kind::Integer) },
        column("word", Kind::Text),
        column("price", Kind::Decimal { scale: 4 }),
        column("at", Kind::Timestamp),
    ])
    .unwrap()
}

#[test]
fn the_log_has_the_messages_of_files_in_every_format() {
    let json: String =
        (0..5_000).map(|n| format!("{{\"a\":{n},\"b\":\"x{}\"}}\n", n % 7)).collect();
    let csv: String = (0..5_000).map(|n| format!("{n};\"x;{}\"\n", n % 7)).collect();
    let csv = format!("a;b\n{csv}");
    let fix = "8=FIX.4.4\u{1}9=5\u{1}35=0\u{1}10=163\u{1}\n".repeat(3);
    let xml = "<all><m><a>1</a></m>\n<m><a>2</a></m></all>".to_string();
    for (text, messages) in [(json, 5_000), (csv, 5_000), (fix, 3), (xml, 2)] {
        let (_folder, store) = store(&Definition::default());
        let taken = take(&store, text.as_bytes(), &IntakeOptions::default()).unwrap();
        assert_eq!(
            (taken.marks.clone(), taken.rejected),
            (1..messages + 1, 0),
            "{:?}",
            taken.first
        );
        let format = Format::of(&quarrier_core::source::Memory::new("m", text.clone())).unwrap();
        assert_same(&table(&store), &at_once(&[text.as_bytes()], format), &text[..20]);
    }
}

#[test]
fn invalid_messages_are_rejected_alone_or_with_all_others() {
    let (_folder, store) = store(&Definition::default());
    let text = b"{\"a\":1}\nno message\n{\"a\":2}\n";
    let mut options = IntakeOptions::default();
    let taken = take(&store, text, &options).unwrap();
    assert_eq!((taken.marks, taken.rejected), (1..3, 1));
    let first = taken.first.unwrap();
    assert_eq!((first.line, first.offset), (2, 8));
    options.is_whole = true;
    let taken = take(&store, text, &options).unwrap();
    assert_eq!((taken.marks, taken.rejected), (0..0, 1));
    assert_eq!(table(&store).rows(), 2);
}

#[test]
fn several_batches_are_atomic_even_after_reopening() {
    let (folder, store) = store(&Definition::default());
    let line = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1_000));
    let text = line.repeat(4_000);
    let mut cut = store.intake();
    cut.push(text.as_bytes()).unwrap();
    drop(cut);
    let taken = take(&store, text.as_bytes(), &IntakeOptions::default()).unwrap();
    assert_eq!(taken.marks, 1..4_001);
    let names = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(names).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("spool")), "{left:?}");
    assert_eq!(table(&store).rows(), 4_000);
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(table(&store).rows(), 4_000);
}

#[test]
fn client_messages_fit_small_segments() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = quarrier_messages::log::Options::default();
    options.segment_bytes = 64 << 10;
    let store = Store::open_with(folder.path(), options).unwrap();
    store.create("t", &Definition::default()).unwrap();
    let text = "{\"a\":1,\"b\":\"some words\"}\n".repeat(20_000);
    let taken = take(&store, text.as_bytes(), &IntakeOptions::default()).unwrap();
    assert_eq!(taken.marks, 1..20_001);
    assert_eq!(table(&store).rows(), 20_000);
}

#[test]
fn messages_sent_before_are_not_stored_again() {
    let (folder, mut store) = store(&Definition::default());
    let line = b"{\"a\":1}\n";
    let of = |name: &str, sequence| {
        let mut options = IntakeOptions::default();
        options.publication = Some((name.to_string(), sequence));
        options
    };
    for round in 0..2 {
        for (options, expected) in [
            (of("feed", 0), round > 0),
            (of("feed", 1), round > 0),
            (of("feed", 1), true),
            (of("feed", 0), true),
            (of("other", 1), round > 0),
        ] {
            let taken = take(&store, line, &options).unwrap();
            assert_eq!(taken.is_duplicate, expected, "{options:?}");
            assert_eq!(taken.marks.is_empty(), expected);
        }
        assert_eq!(table(&store).rows(), 3);
        drop(store);
        store = Store::open(folder.path()).unwrap();
    }
    // In a chain of several batches, the last has the number.
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1_000)).repeat(3_000);
    for is_again in [false, true] {
        let taken = take(&store, long.as_bytes(), &of("feed", 2)).unwrap();
        assert_eq!(taken.is_duplicate, is_again);
    }
    assert_eq!(table(&store).rows(), 3_003);
}

#[test]
fn a_declared_table_keeps_its_columns_for_any_message() {
    let (folder, mut store) = store(&defined());
    let kinds = |table: &Table| -> Vec<Kind> {
        table.schema().fields.iter().map(|field| field.kind).collect()
    };
    let expected: Vec<Kind> = defined().columns().iter().map(|column| column.kind).collect();
    assert_eq!(kinds(&table(&store)), expected);
    let text = "{\"id\":1,\"word\":\"2024-01-31\",\"price\":1.5,\"at\":\"2024-01-31\"}\n\
                {\"id\":2,\"word\":7,\"price\":-2,\"at\":\"2024-01-31 10:00:00.25\"}\n\
                {\"word\":\"no id\"}\n\
                {\"id\":4,\"other\":1}\n\
                {\"id\":5,\"price\":1.00001}\n\
                {\"id\":\"6\"}\n\
                {\"id\":7,\"at\":\"soon\"}\n\
                {\"id\":8}\n";
    let taken = take(&store, text.as_bytes(), &IntakeOptions::default()).unwrap();
    assert_eq!((taken.marks, taken.rejected), (1..4, 5));
    let first = taken.first.unwrap();
    assert_eq!((first.line, Misfit::of(first.fault.what)), (3, Some(Misfit::Missing)));
    for _ in 0..2 {
        let made = table(&store);
        assert_eq!((made.rows(), kinds(&made)), (3, expected.clone()));
        assert_eq!(made.value(0, 1), Value::Text("2024-01-31".into()));
        assert_eq!(made.value(1, 1), Value::Text("7".into()));
        assert_eq!(made.value(2, 3), Value::Null);
        drop(store);
        store = Store::open(folder.path()).unwrap();
        assert_eq!(store.definition("t").unwrap().as_deref(), Some(&defined()));
    }
}

#[test]
fn small_batches_are_read_in_any_order() {
    let (folder, mut store) = store(&Definition::default());
    for number in 0..400 {
        let line = format!("{{\"n\":{number}}}\n");
        assert_eq!(
            take(&store, line.as_bytes(), &IntakeOptions::default()).unwrap().marks.start,
            number + 1
        );
        if number % 7 == 0 {
            assert_eq!(table(&store).rows(), number + 1);
        }
    }
    for _ in 0..2 {
        let made = table(&store);
        assert!((0..400).all(|row| made.value(row, 0) == Value::Integer(row as i64)));
        drop(store);
        store = Store::open(folder.path()).unwrap();
    }
}
