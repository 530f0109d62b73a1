//! A table with a key that has grown answers queries like a table of the remaining messages, loaded at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};

use quarrier::filter::{Conditions, Form, Rows};
use quarrier::kept::{
    AppendResult, DefinedColumn, Definition, IntakeOptions, PendingAppend, Subscribe,
};
use quarrier::{DataFolder, Filter, Sources};
use quarrier_core::source::Memory;
use quarrier_filter::{Scan, sql};
use quarrier_messages::{Format, Kind, Load, Table};

use crate::doors::opener;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

pub(crate) fn definition() -> Definition {
    let column = |(name, kind): (&str, Kind)| DefinedColumn {
        name: name.into(),
        kind,
        digits: 38,
        is_required: false,
    };
    let columns = [
        ("id", Kind::Integer),
        ("side", Kind::Text),
        ("price", Kind::Decimal { scale: 2 }),
        ("qty", Kind::Integer),
        ("note", Kind::Text),
        ("at", Kind::Timestamp),
    ];
    Definition::new(columns.map(column).to_vec()).unwrap().with_key(&["id"]).unwrap()
}

pub(crate) fn line(random: &mut Random, id: u64) -> String {
    let side = ["buy", "sell", "hold"][random.below(3) as usize];
    let qty = match random.below(5) {
        0 => "null".to_string(),
        _ => random.below(100).to_string(),
    };
    format!(
        "{{\"id\":{id},\"side\":\"{side}\",\"price\":{}.{:02},\"qty\":{qty},\"note\":\"n{}\",\
         \"at\":\"2024-05-{:02}T10:00:00Z\"}}\n",
        random.below(50),
        random.below(100),
        random.below(40),
        1 + random.below(30),
    )
}

/// A random condition over the columns.
pub(crate) fn condition(random: &mut Random, depth: u32) -> String {
    let number = |random: &mut Random, end| random.below(end);
    if depth > 0 && random.below(2) == 0 {
        let word = ["AND", "OR"][random.below(2) as usize];
        let (one, other) = (condition(random, depth - 1), condition(random, depth - 1));
        let not = if random.below(4) == 0 { "NOT " } else { "" };
        return format!("{not}({one} {word} {other})");
    }
    match random.below(9) {
        0 => format!("id < {}", number(random, 400)),
        1 => format!("id BETWEEN {} AND {}", number(random, 200), number(random, 400)),
        2 => format!("side = '{}'", ["buy", "sell", "other"][random.below(3) as usize]),
        3 => format!("price >= {}.5", number(random, 50)),
        4 => format!(
            "qty IN ({}, {}, {})",
            number(random, 99),
            number(random, 99),
            number(random, 99)
        ),
        5 => "qty IS NULL".to_string(),
        6 => format!("note LIKE 'n{}%'", number(random, 10)),
        7 => format!("at < TIMESTAMP '2024-05-{:02} 00:00:00'", 1 + number(random, 30)),
        _ => format!("qty * 2 > {} - price", number(random, 100)),
    }
}

fn statement(random: &mut Random) -> String {
    let condition = condition(random, 2);
    match random.below(4) {
        0 => format!("SELECT COUNT(*) FROM t WHERE {condition}"),
        1 => format!("SELECT id, note, price FROM t WHERE {condition}"),
        2 => format!(
            "SELECT id, qty, side FROM t WHERE {condition} ORDER BY price DESC, id LIMIT {}",
            random.below(30)
        ),
        _ => format!("SELECT id, note FROM t ORDER BY note, id DESC LIMIT {}", random.below(400)),
    }
}

fn answered(table: &Arc<Table>, text: &str) -> (u64, String) {
    let query = sql::statement_over(text, |_| Some(Arc::clone(table))).unwrap();
    let scan = Scan::new(table, std::slice::from_ref(&query)).workers(1);
    let answer = scan.run().pop().unwrap().unwrap();
    let shown = match query.select {
        quarrier_filter::Select::Rows(_) => {
            let rows = query.project(table, &answer, 1, &AtomicBool::new(false)).unwrap();
            let row = |row| (0..rows.columns().len()).map(move |at| (row, at));
            let values = (0..rows.rows()).flat_map(row).map(|(row, at)| rows.value(row, at));
            format!("{:?}", values.collect::<Vec<_>>())
        }
        quarrier_filter::Select::Count { .. } => String::new(),
    };
    (answer.count, shown)
}

/// Polls until the messages are on disk.
pub(crate) fn durable(sent: PendingAppend) -> AppendResult {
    let mut task = std::pin::pin!(sent.durable());
    loop {
        match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => return done.unwrap(),
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

fn take(kept: &DataFolder, lines: &str) {
    let mut options = IntakeOptions::default();
    options.format = Some(Format::Json);
    let mut intake = kept.intake("t", options).unwrap();
    intake.push(lines.as_bytes()).unwrap();
    durable(kept.take_in(intake, &AtomicBool::new(false)).unwrap());
}

fn filtered(sources: &Sources, condition: &str) -> (u64, Vec<String>) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut text = Vec::new();
    let filter = Filter::new(Conditions::one(condition)).form(Form::Json);
    let filtered = filter.run(sources, &opener(false), &stop, &mut |rows: &Rows<'_>| {
        text.extend_from_slice(rows.text());
        Ok(())
    });
    let mut lines: Vec<String> =
        String::from_utf8(text).unwrap().lines().map(str::to_string).collect();
    lines.sort();
    (filtered.unwrap().counts[0], lines)
}

/// Changes a table at random, and compares its answers with those of a table of the remaining messages.
fn live(folder: &Path, seed: u64, statements: usize) {
    let mut random = Random(seed);
    let stop = AtomicBool::new(false);
    let mut kept = DataFolder::open(folder).unwrap();
    kept.create("t", &definition()).unwrap();
    let (mut left, mut number) = (BTreeMap::new(), 0_u64);
    for _ in 0..30 {
        match random.below(5) {
            0 => {
                let keys: Vec<u64> = (0..random.below(60)).map(|_| random.below(400)).collect();
                let lines: String = keys.iter().map(|id| format!("{{\"id\":{id}}}\n")).collect();
                durable(kept.remove_lines("t", lines.as_bytes(), &stop).unwrap());
                keys.iter().for_each(|id| drop(left.remove(id)));
            }
            _ => {
                let mut lines = String::new();
                for _ in 0..1 + random.below(80) {
                    let id = random.below(400);
                    let line = line(&mut random, id);
                    lines += &line;
                    number += 1;
                    left.insert(id, (number, line));
                }
                take(&kept, &lines);
            }
        }
        match random.below(6) {
            0 => drop(kept.table("t", 2, &stop).unwrap()),
            1 => kept.checkpoint().unwrap(),
            2 => {
                kept.close().unwrap();
                kept = DataFolder::open(folder).unwrap();
            }
            _ => {}
        }
    }
    let mut lines: Vec<&(u64, String)> = left.values().collect();
    lines.sort();
    let lines: String = lines.into_iter().map(|(_, line)| line.as_str()).collect();
    let load = Load::new(Format::Json).schema(definition().schema()).workers(1);
    let at_once = Arc::new(load.run(&[&Memory::new("t", lines.clone())]).unwrap().table);
    let grown = kept.table("t", 2, &stop).unwrap();
    for _ in 0..statements {
        let statement = statement(&mut random);
        assert_eq!(answered(&grown, &statement), answered(&at_once, &statement), "{statement}");
    }
    let file = folder.join("left.ndjson");
    std::fs::write(&file, &lines).unwrap();
    for _ in 0..10 {
        let condition = condition(&mut random, 1);
        let sources = kept.sources(["t"]).unwrap();
        let expected = filtered(&Sources::of([&file]), &condition);
        assert_eq!(filtered(&sources, &condition), expected, "{condition}");
    }
}

#[test]
fn a_grown_table_with_a_key_answers_as_its_messages_loaded_at_once() {
    for seed in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        live(folder.path(), seed, 250);
    }
}

#[test]
fn a_subscription_says_which_rows_are_gone_and_which_came_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Arc::new(DataFolder::open(folder.path()).unwrap());
    let stop = AtomicBool::new(false);
    kept.create("t", &definition()).unwrap();
    let line = |id: u64, qty: u64| format!("{{\"id\":{id},\"qty\":{qty}}}\n");
    take(&kept, &(line(1, 10) + &line(2, 20) + &line(1, 30)));
    let subscribe = Subscribe::new("SELECT id, qty FROM t WHERE qty > 15").snapshot(true);
    let shown = |subscription: &mut quarrier::kept::Subscription| {
        let mut all = Vec::new();
        while let Some(changed) = subscription.next(&stop).unwrap() {
            for (row, mark) in changed.marks.iter().enumerate() {
                let sign = match (changed.is_snapshot, changed.are_gone[row]) {
                    (true, _) => '=',
                    (false, true) => '-',
                    (false, false) => '+',
                };
                let qty = changed.rows.value(row as u64, 1);
                all.push(format!("{mark}{sign}{qty:?}"));
            }
        }
        all
    };
    let mut now = subscribe.start(&kept, &stop).unwrap();
    assert_eq!(shown(&mut now), ["2=Integer(20)", "3=Integer(30)"]);
    // One row stops matching, one starts to match, one matches with another value; then keys are removed.
    take(&kept, &(line(1, 5) + &line(3, 40) + &line(2, 50) + &line(2, 60)));
    durable(kept.remove_lines("t", b"{\"id\":9}\n{\"id\":3}\n{\"id\":1}\n", &stop).unwrap());
    let later = [
        "4-Integer(30)",
        "5+Integer(40)",
        "6-Integer(20)",
        "6+Integer(50)",
        "7-Integer(50)",
        "7+Integer(60)",
        "9-Integer(40)",
    ];
    assert_eq!(shown(&mut now), later);
    assert_eq!(now.mark(), 10);
    for (mark, first) in [(3, 0), (4, 1), (6, 4), (8, 6), (9, 7)] {
        let resumed = subscribe.clone().snapshot(false).after(Some(mark));
        let rows = shown(&mut resumed.start(&kept, &stop).unwrap());
        assert_eq!(rows, later[first..], "after {mark}");
        let resumed = subscribe.clone().after(Some(mark));
        let all = shown(&mut resumed.start(&kept, &stop).unwrap());
        let snapshot = all.iter().filter(|row| row.contains('=')).count();
        assert_eq!(all[snapshot..], later[first..], "snapshot at {mark}");
    }
    let at_five = shown(&mut subscribe.clone().after(Some(5)).start(&kept, &stop).unwrap());
    assert_eq!(at_five[..2], ["2=Integer(20)", "5=Integer(40)"]);
}
