//! Equal subscriptions share rows, and each gets what it would get alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::DataFolder;
use quarrier::kept::{Changed, Definition, IntakeOptions, Ready, Scout, Subscribe, Subscription};
use quarrier_messages::Format;

use crate::keyed::{Random, definition, durable, line};

const QUERIES: [&str; 5] = [
    "SELECT id, qty, note FROM t WHERE qty > 20 OR qty IS NULL",
    "SELECT * FROM t WHERE side = 'buy'",
    "SELECT id, price FROM p",
    "SELECT note, at, qty * 2 AS twice FROM p WHERE price < 30 AND note LIKE 'n1%'",
    "SELECT id FROM p WHERE qty > 1000",
];

fn opened(folder: &std::path::Path) -> Arc<DataFolder> {
    let kept = DataFolder::open(folder).unwrap();
    kept.create("t", &definition()).unwrap();
    // The same columns without a key.
    let plain = Definition::new(definition().columns().to_vec()).unwrap();
    kept.create("p", &plain).unwrap();
    Arc::new(kept)
}

fn take(kept: &DataFolder, table: &str, lines: &str) {
    let mut options = IntakeOptions::default();
    options.format = Some(Format::Json);
    let mut intake = kept.intake(table, options).unwrap();
    intake.push(lines.as_bytes()).unwrap();
    durable(kept.take_in(intake, &AtomicBool::new(false)).unwrap());
}

/// Appends rows to both tables, and removes some of one.
fn change(random: &mut Random, kept: &DataFolder) {
    for table in ["t", "p"] {
        let lines: String = (0..random.below(40))
            .map(|_| {
                let id = random.below(60);
                line(random, id)
            })
            .collect();
        if !lines.is_empty() {
            take(kept, table, &lines);
        }
    }
    if random.below(3) == 0 {
        let keys: String = (0..5).map(|_| format!("{{\"id\":{}}}\n", random.below(60))).collect();
        durable(kept.remove_lines("t", keys.as_bytes(), &AtomicBool::new(false)).unwrap());
    }
}

fn shown(changed: &Changed) -> Vec<String> {
    let row = |(row, mark): (usize, &u64)| {
        let sign = match (changed.is_snapshot, changed.are_gone[row]) {
            (true, _) => '=',
            (false, true) => '-',
            (false, false) => '+',
        };
        let columns = 0..changed.rows.columns().len();
        let values: Vec<_> = columns.map(|at| changed.rows.value(row as u64, at)).collect();
        format!("{mark}{sign}{values:?}")
    };
    changed.marks.iter().enumerate().map(row).collect()
}

fn rows_of(ready: Ready) -> Arc<Changed> {
    match ready {
        Ready::Rows(changed) => changed,
        other => panic!("{other:?}"),
    }
}

/// A subscriber that reads at its own pace.
struct Reader {
    subscribe: Subscribe,
    running: Subscription,
    rows: Vec<String>,
    /// How often its rows were ready.
    ready: usize,
}

fn drained(subscription: &mut Subscription) -> Vec<String> {
    let mut rows = Vec::new();
    while let Some(changed) = subscription.next(&AtomicBool::new(false)).unwrap() {
        rows.extend(shown(&changed));
    }
    rows
}

impl Reader {
    fn start(random: &mut Random, kept: &Arc<DataFolder>, last: u64) -> (&'static str, Self) {
        let text = QUERIES[random.below(QUERIES.len() as u64) as usize];
        let mark = last - random.below(last.min(80) + 1);
        let until = (random.below(4) == 0).then(|| mark + random.below(300));
        let subscribe =
            Subscribe::new(text).snapshot(random.below(3) == 0).after(Some(mark)).until(until);
        let running = subscribe.start(kept, &AtomicBool::new(false)).unwrap();
        (text, Reader { subscribe, running, rows: Vec::new(), ready: 0 })
    }

    fn read(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(3) {
            let changed = match self.running.ready() {
                Ready::Rows(changed) => {
                    self.ready += 1;
                    Some(changed)
                }
                Ready::Nothing => None,
                // As if another thread was needed.
                Ready::Unknown if random.below(3) == 0 => return,
                Ready::Unknown => self.running.next(&AtomicBool::new(false)).unwrap(),
            };
            let Some(changed) = changed else { return };
            self.rows.extend(shown(&changed));
        }
    }
}

#[test]
fn readers_at_any_pace_get_the_rows_that_each_would_get_alone() {
    let mut ready = 0;
    for seed in 0..12 {
        let mut random = Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let kept = opened(folder.path());
        let mut scouts: HashMap<&str, Scout> = HashMap::new();
        let mut readers: Vec<Reader> = Vec::new();
        for _ in 0..40 {
            change(&mut random, &kept);
            let stop = AtomicBool::new(false);
            match random.below(8) {
                0 => drop(kept.tend(1, &stop).unwrap()),
                1 => kept.checkpoint().unwrap(),
                _ => {}
            }
            for scout in scouts.values_mut() {
                let bytes_max = [0, 1 << 10, 1 << 20, 1 << 20][random.below(4) as usize];
                let mut found = 0;
                scout.run(bytes_max, &stop, |changed| found += changed.marks.len()).unwrap();
                assert!(bytes_max > 0 || found == 0);
            }
            if random.below(2) == 0 {
                let last = kept.growth().unwrap();
                let last = last.wait_beyond(0, std::time::Duration::ZERO).unwrap();
                let (text, reader) = Reader::start(&mut random, &kept, last);
                scouts.entry(text).or_insert_with(|| reader.running.scout().unwrap());
                readers.push(reader);
            }
            for reader in &mut readers {
                if random.below(4) > 0 {
                    reader.read(&mut random);
                }
            }
        }
        for mut reader in readers {
            reader.rows.extend(drained(&mut reader.running));
            let alone = Arc::new(DataFolder::read(folder.path()).unwrap());
            let mut twin = reader.subscribe.start(&alone, &AtomicBool::new(false)).unwrap();
            let what = format!("seed {seed}, {:?}", reader.subscribe);
            assert_eq!(reader.rows, drained(&mut twin), "{what}");
            assert_eq!(reader.running.is_over(), twin.is_over(), "{what}");
            ready += reader.ready;
        }
    }
    assert!(ready > 200, "{ready}");
}

#[test]
fn equal_subscriptions_share_rows_and_their_forms() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, stop) = (opened(folder.path()), AtomicBool::new(false));
    let lines = |random: &mut Random| (0..9).map(|id| line(random, id)).collect::<String>();
    let mut random = Random(1);
    let subscribe = Subscribe::new(QUERIES[2]);
    let start = || subscribe.start(&kept, &stop).unwrap();
    let (mut one, mut same, mut unlike) = (start(), start(), start());
    let mut other = Subscribe::new(QUERIES[3]).start(&kept, &stop).unwrap();
    assert!(matches!(one.ready(), Ready::Nothing));
    take(&kept, "p", &lines(&mut random));
    // Nobody has read the messages.
    assert!(matches!(one.ready(), Ready::Unknown));
    let first = one.next(&stop).unwrap().unwrap();
    let shared = rows_of(same.ready());
    assert!(Arc::ptr_eq(&first, &shared));
    assert!(matches!((one.ready(), same.ready()), (Ready::Nothing, Ready::Nothing)));
    assert!(matches!(other.ready(), Ready::Unknown));
    assert!(other.next(&stop).is_ok());
    let form = first.derive(|changed| Ok::<_, ()>(changed.marks.len())).unwrap();
    assert!(Arc::ptr_eq(&form, &shared.derive(|_| Err(())).unwrap()));
    assert_eq!(first.derive(|_| Ok::<_, ()>("another")).unwrap().as_ref(), &"another");
    // A scout finds the rows of the next messages; a reader that is behind gets them as well.
    let mut scout = one.scout().unwrap();
    take(&kept, "p", &lines(&mut random));
    let mut found = 0;
    scout.run(1 << 20, &stop, |changed| found += changed.marks.len()).unwrap();
    assert_eq!(found, 9);
    let next = [&mut one, &mut same, &mut unlike].map(|it| rows_of(it.ready()));
    assert!(Arc::ptr_eq(&next[0], &next[1]));
    assert!(Arc::ptr_eq(&first, &next[2]));
    assert!(Arc::ptr_eq(&next[0], &rows_of(unlike.ready())));
    // The same text at another time is another query.
    let timed = || {
        let text = "SELECT id FROM p WHERE at < CURRENT_TIMESTAMP";
        let started = Subscribe::new(text).after(Some(0)).start(&kept, &stop).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
        started
    };
    let mut timed = [timed(), timed()];
    assert_eq!(timed[0].next(&stop).unwrap().unwrap().marks.len(), 9);
    assert!(matches!(timed[1].ready(), Ready::Unknown));
    assert_eq!(timed[1].next(&stop).unwrap().unwrap().marks.len(), 9);
    // A reader that wants a part of the messages finds it alone.
    let mut part = subscribe.clone().after(Some(4)).start(&kept, &stop).unwrap();
    assert!(matches!(part.ready(), Ready::Unknown));
    assert_eq!(part.next(&stop).unwrap().unwrap().marks, [5, 6, 7, 8, 9]);
    assert!(Arc::ptr_eq(&next[0], &part.next(&stop).unwrap().unwrap()));
}
