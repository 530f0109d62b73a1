//! Messages that arrive piece by piece: all or none are appended, and only once.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Wake, Waker};

use quarrier_messages::kept::{
    AppendResult, DefinedColumn, Definition, IntakeOptions, LoadOptions, LoadWatch, Misfit, Origin,
    Store,
};
use quarrier_messages::{Format, Kind, Reject, Result, Table, Value};

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
    let mut intake = store.intake("t", options.clone())?;
    let mut random = Random(bytes.len() as u64);
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = (1 + random.below(1 << 16) as usize).min(rest.len());
        intake.push(&rest[..count])?;
        rest = &rest[count..];
    }
    let stop = AtomicBool::new(false);
    let sent = match random.below(2) {
        0 => store.take_in(intake, &stop)?,
        _ => match store.take_in_now(Box::new(intake))? {
            Ok(sent) => sent,
            Err(intake) => store.take_in(*intake, &stop)?,
        },
    };
    done(sent.durable())
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
    let mut cut = store.intake("t", IntakeOptions::default()).unwrap();
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

/// Records the first rejected message of a load.
#[derive(Default)]
struct First(Option<Reject>);

impl LoadWatch for First {
    fn rejected(&mut self, reject: &Reject) {
        self.0.get_or_insert_with(|| reject.clone());
    }
}

/// Messages that take several pieces, and often several batches, with an invalid one after `valid`.
fn long(format: &str, valid: usize) -> String {
    let lines = |line: &dyn Fn(usize) -> String, bad: &str| -> String {
        let line = |n| if n == valid { bad.to_string() } else { line(n) };
        (0..30_000).map(line).collect()
    };
    match format {
        "json" => {
            lines(&|n| format!("{{\"n\":{n},\"s\":\"{}\"}}\n", "x".repeat(n % 90)), "no message\n")
        }
        "csv" => {
            "n;s\n".to_string()
                + &lines(&|n| format!("{n};\"a\n{}\"\n", "x".repeat(n % 90)), "1;2;3\n")
        }
        "fix" => lines(&|_| "8=FIX.4.4\u{1}9=5\u{1}35=0\u{1}10=163\u{1}\n".into(), "8=FIX\u{1}\n"),
        _ => {
            let message = |n: usize| format!("<m>\n<n>{n}</n><s>{}</s></m>", "x".repeat(n % 90));
            format!("<all>{}</all>", (0..30_000).map(message).collect::<String>())
        }
    }
}

#[test]
fn messages_that_arrive_in_pieces_are_those_of_a_load() {
    for (format, valid) in
        [("json", 0), ("json", 20_000), ("csv", 100), ("csv", 29_999), ("fix", 15_000), ("xml", 0)]
    {
        let text = long(format, valid);
        let (_folder, store) = store(&Definition::default());
        let taken = take(&store, text.as_bytes(), &IntakeOptions::default()).unwrap();
        let kind = Format::named(format).unwrap().unwrap();
        let (mut first, mut bytes) = (First::default(), text.as_bytes());
        let origin = Origin::Stream { name: "messages", reader: &mut bytes };
        let stop = AtomicBool::new(false);
        let stored = store.load("whole", origin, &LoadOptions::new(kind), &stop, &mut first);
        let stored = stored.unwrap();
        let messages = taken.marks.end - taken.marks.start;
        assert_eq!((messages, taken.rejected), (stored.messages, stored.rejected), "{format}");
        let place = |reject: Option<Reject>| reject.map(|it| (it.line, it.offset, it.bytes));
        assert_eq!(place(taken.first), place(first.0), "{format}");
        let whole = store.table("whole", 2, &stop).unwrap();
        assert_same(&table(&store), &whole, format);
    }
}

#[test]
fn a_message_longer_than_a_piece_arrives_whole_or_is_rejected() {
    let (_folder, store) = store(&Definition::default());
    let line = |bytes| format!("{{\"a\":\"{}\"}}\n", "x".repeat(bytes));
    let text = [line(1), line(700_000), line(20 << 20), line(2)].concat();
    let taken = take(&store, text.as_bytes(), &IntakeOptions::default()).unwrap();
    assert_eq!((taken.marks, taken.rejected), (1..4, 1));
    assert_eq!(taken.first.unwrap().line, 3);
    let made = table(&store);
    assert_eq!(made.value(1, 0), Value::Text("x".repeat(700_000).into()));
    assert_eq!(made.value(2, 0), Value::Text("xx".into()));
}

#[test]
fn messages_that_the_log_does_not_store_are_refused_when_all_have_arrived() {
    let (_folder, store) = store(&Definition::default());
    let mut parquet = IntakeOptions::default();
    parquet.format = Format::named("parquet").unwrap();
    let gzip = [&[0x1F, 0x8B, 8][..], &[7; 400_000]].concat();
    let text = "{\"a\":1}\n".repeat(40_000);
    for (bytes, options, said) in [
        (&gzip[..], IntakeOptions::default(), "send them uncompressed"),
        (&gzip[..5], IntakeOptions::default(), "send them uncompressed"),
        (text.as_bytes(), parquet, "columnar"),
    ] {
        let error = take(&store, bytes, &options).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let taken = take(&store, b"", &IntakeOptions::default()).unwrap();
    assert_eq!((taken.marks, taken.rejected), (0..0, 0));
    assert_eq!(table(&store).rows(), 0);
}
