//! Subscriptions with standing conditions, against a plain list of rows and conditions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::DataFolder;
use quarrier::kept::{ConditionTable, DefinedColumn, Definition, IntakeOptions, Subscribe};
use quarrier_core::source::Memory;
use quarrier_filter::{naive, sql};
use quarrier_messages::{Format, Kind, Load, Value};

use crate::keyed::{Random, condition, definition, durable, line};

const WHERE: &str = "qty > 20 OR qty IS NULL";

fn rules() -> ConditionTable {
    let [table, id, condition] = ["rules", "number", "text"].map(str::to_string);
    ConditionTable { table, id, condition }
}

fn rules_definition() -> Definition {
    let column = |(name, kind): (&str, Kind)| DefinedColumn {
        name: name.into(),
        kind,
        digits: 38,
        is_required: false,
    };
    let columns = [("number", Kind::Integer), ("text", Kind::Text)];
    Definition::new(columns.map(column).to_vec()).unwrap().with_key(&["number"]).unwrap()
}

/// Appends messages; returns the mark of the first.
fn take(kept: &DataFolder, table: &str, lines: &str) -> u64 {
    let mut options = IntakeOptions::default();
    options.format = Some(Format::Json);
    let mut intake = kept.intake(table, options).unwrap();
    intake.push(lines.as_bytes()).unwrap();
    durable(kept.take_in(intake, &AtomicBool::new(false)).unwrap()).marks.start
}

/// A change: the mark, the sign, the rule, and the row's id and price.
type Change = (u64, char, i64, String);

/// The rows and rules as they are now, and the changes so far.
#[derive(Default)]
struct Model {
    rows: BTreeMap<u64, Vec<Value>>,
    rules: BTreeMap<i64, String>,
    changes: Vec<Change>,
}

fn values(line: &str) -> Vec<Value> {
    let load = Load::new(Format::Json).schema(definition().schema()).workers(1);
    let table = load.run(&[&Memory::new("t", line.to_string())]).unwrap().table;
    (0..definition().schema().fields.len()).map(|column| table.value(0, column)).collect()
}

fn truth(text: &str, row: &[Value]) -> Result<bool, ()> {
    let bound = sql::condition(text, &definition().schema()).unwrap();
    naive::truth(&bound, row).map(|truth| truth == Some(true)).map_err(|_| ())
}

impl Model {
    /// Returns the rules that a row meets, with a sign for those that are TRUE.
    fn met(&self, mark: u64, sign: char, row: &[Value]) -> Vec<Change> {
        if truth(WHERE, row) != Ok(true) {
            return Vec::new();
        }
        let shown = format!("{:?} {:?}", row[0], row[2]);
        let met = self.rules.iter().filter_map(|(number, text)| match truth(text, row) {
            Ok(true) => Some((mark, sign, *number, shown.clone())),
            Err(()) if sign != '-' => Some((mark, '!', *number, shown.clone())),
            _ => None,
        });
        met.collect()
    }

    fn put(&mut self, mark: u64, id: u64, row: Option<Vec<Value>>) {
        let old = match row.clone() {
            Some(row) => self.rows.insert(id, row),
            None => self.rows.remove(&id),
        };
        let gone = old.map(|old| self.met(mark, '-', &old));
        let new = row.map(|row| self.met(mark, '+', &row));
        self.changes.extend(gone.into_iter().chain(new).flatten());
    }

    fn snapshot(&self) -> Vec<Change> {
        self.rows.values().flat_map(|row| self.met(0, '=', row)).collect()
    }
}

/// A subscription, the changes that it has returned, and those of its snapshot that it must return.
struct Watch {
    subscription: quarrier::kept::Subscription,
    from: u64,
    snapshot: Option<Vec<Change>>,
    found: Vec<Change>,
}

impl Watch {
    fn start(kept: &Arc<DataFolder>, model: &Model, from: u64, has_snapshot: bool) -> Watch {
        let subscribe = Subscribe::new(format!("SELECT id, price FROM t WHERE {WHERE}"))
            .snapshot(has_snapshot)
            .after(Some(from))
            .matching(Some(rules()));
        let subscription = subscribe.start(kept, &AtomicBool::new(false)).unwrap();
        assert_eq!(subscription.matched_id(), Some(Kind::Integer));
        let snapshot = has_snapshot.then(|| model.snapshot());
        Watch { subscription, from, snapshot, found: Vec::new() }
    }

    fn poll(&mut self) {
        while let Some(changed) = self.subscription.next(&AtomicBool::new(false)).unwrap() {
            assert_eq!(changed.matched.len(), changed.marks.len());
            for (at, mark) in changed.marks.iter().enumerate() {
                let matched = &changed.matched[at];
                let sign = match (&matched.fault, changed.is_snapshot, changed.are_gone[at]) {
                    (Some(_), ..) => '!',
                    (None, true, _) => '=',
                    (None, false, true) => '-',
                    (None, false, false) => '+',
                };
                let Value::Integer(number) = matched.id else { panic!("{matched:?}") };
                let [id, price] = [0, 1].map(|column| changed.rows.value(at as u64, column));
                let mark = if changed.is_snapshot { 0 } else { *mark };
                self.found.push((mark, sign, number, format!("{id:?} {price:?}")));
            }
        }
    }

    fn check(mut self, changes: &[Change]) {
        self.poll();
        let later = changes.iter().filter(|change| change.0 > self.from);
        let mut expected: Vec<Change> = later.cloned().collect();
        assert!(self.found.is_sorted_by_key(|change| change.0));
        expected.extend(self.snapshot.unwrap_or_default());
        // Changes with the same mark have any order.
        expected.sort();
        self.found.sort();
        assert_eq!(self.found, expected);
    }
}

fn history(seed: u64) {
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Arc::new(DataFolder::open(folder.path()).unwrap());
    kept.create("t", &definition()).unwrap();
    kept.create("rules", &rules_definition()).unwrap();
    let (mut model, mut mark) = (Model::default(), 0);
    let mut watches: Vec<Watch> = Vec::new();
    for _ in 0..40 {
        match random.below(9) {
            0..=2 => {
                let mut lines = String::new();
                let mut new = Vec::new();
                for _ in 0..1 + random.below(20) {
                    let number = random.below(30) as i64;
                    let text = match random.below(6) {
                        0 => "price / (qty - 50) > 1".to_string(),
                        _ => condition(&mut random, 1),
                    };
                    let quoted = text.replace('\'', "\\u0027");
                    lines += &format!("{{\"number\":{number},\"text\":\"{quoted}\"}}\n");
                    new.push((number, text));
                }
                mark = take(&kept, "rules", &lines) + new.len() as u64 - 1;
                model.rules.extend(new);
            }
            3 => {
                let number = random.below(30) as i64;
                let key = format!("{{\"number\":{number}}}\n");
                let stop = AtomicBool::new(false);
                let gone = kept.remove_lines("rules", key.as_bytes(), &stop).unwrap();
                mark = durable(gone).marks.start;
                model.rules.remove(&number);
            }
            4 => {
                let id = random.below(40);
                let key = format!("{{\"id\":{id}}}\n");
                let stop = AtomicBool::new(false);
                let gone = kept.remove_lines("t", key.as_bytes(), &stop).unwrap();
                mark = durable(gone).marks.start;
                model.put(mark, id, None);
            }
            5..=7 => {
                let ids: Vec<u64> = (0..1 + random.below(30)).map(|_| random.below(40)).collect();
                let lines: Vec<String> = ids.iter().map(|id| line(&mut random, *id)).collect();
                let first = take(&kept, "t", &lines.concat());
                for (at, id) in ids.iter().enumerate() {
                    mark = first + at as u64;
                    model.put(mark, *id, Some(values(&lines[at])));
                }
            }
            _ if random.below(3) == 0 => {
                // A restart ends all subscriptions.
                watches.drain(..).for_each(|watch| watch.check(&model.changes));
                Arc::into_inner(kept).unwrap().close().unwrap();
                kept = Arc::new(DataFolder::open(folder.path()).unwrap());
            }
            _ => watches.push(Watch::start(&kept, &model, mark, random.below(2) == 0)),
        }
        watches.iter_mut().filter(|_| random.below(3) == 0).for_each(Watch::poll);
        if random.below(8) == 0 && !watches.is_empty() {
            // Resume after an earlier mark.
            let nth = random.below(watches.len() as u64) as usize;
            let watch = watches.swap_remove(nth);
            let from = watch.subscription.mark().max(watch.from);
            watch.check(&model.changes);
            watches.push(Watch::start(&kept, &model, from, false));
        }
    }
    watches.into_iter().for_each(|watch| watch.check(&model.changes));
}

#[test]
fn each_row_meets_the_conditions_that_stand_when_it_arrives() {
    for seed in 0..12 {
        history(seed);
    }
}

#[test]
fn text_that_is_no_condition_is_reported_once_with_the_next_row() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Arc::new(DataFolder::open(folder.path()).unwrap());
    let stop = AtomicBool::new(false);
    for (table, lines) in [
        ("t", "{\"id\":1,\"qty\":5}\n"),
        ("r", "{\"id\":\"a\",\"condition\":\"qty > 2\"}\n{\"id\":\"b\",\"condition\":\"qty >\"}\n"),
    ] {
        kept.create(table, &Definition::default()).unwrap();
        take(&kept, table, lines);
    }
    let names = |id: &str| {
        let [table, id, condition] = ["r", id, "condition"].map(str::to_string);
        Some(ConditionTable { table, id, condition })
    };
    let subscribe = Subscribe::new("SELECT id FROM t").snapshot(true);
    let mut watch = subscribe.clone().matching(names("ID")).start(&kept, &stop).unwrap();
    assert_eq!(watch.matched_id(), Some(Kind::Text));
    let mut shown = || {
        let changed = watch.next(&stop).unwrap().map(|it| it.matched.clone()).unwrap_or_default();
        let one = |it: &quarrier::kept::Matched| match &it.id {
            Value::Text(id) => format!("{id}{}", if it.fault.is_some() { "!" } else { "" }),
            other => format!("{other:?}"),
        };
        changed.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(), "a b!");
    take(&kept, "t", "{\"id\":2,\"qty\":3}\n{\"id\":3,\"qty\":1}\n");
    assert_eq!(shown(), "a");
    // A subscription has the columns that the table had when it began.
    take(&kept, "r", "{\"id\":\"c\",\"condition\":\"new = 'x'\"}\n{\"id\":\"d\"}\n");
    take(&kept, "t", "{\"id\":4,\"qty\":1,\"new\":\"x\"}\n");
    assert_eq!(shown(), "c! d!");
    // With another type of a column, conditions are bound again.
    take(&kept, "t", "{\"id\":5,\"qty\":2.5}\n");
    assert_eq!(shown(), "a b! c! d!");
    assert_eq!(shown(), "");
    let mut later =
        subscribe.clone().after(Some(6)).matching(names("id")).start(&kept, &stop).unwrap();
    let mut ids = Vec::new();
    while let Some(changed) = later.next(&stop).unwrap() {
        let matched = changed.matched.iter().filter(|it| it.fault.is_none());
        ids.extend(matched.map(|it| it.id.clone()));
    }
    assert!(ids.contains(&Value::Text("c".into())), "{ids:?}");
    for (matching, word) in [
        (names("number"), "no column 'number'"),
        (Some(ConditionTable { table: "nowhere".to_string(), ..names("id").unwrap() }), "nowhere"),
        (
            Some(ConditionTable {
                condition: "qty".to_string(),
                table: "t".to_string(),
                ..names("id").unwrap()
            }),
            "strings",
        ),
    ] {
        let said = subscribe.clone().matching(matching).start(&kept, &stop).unwrap_err();
        assert!(said.to_string().contains(word), "{said}");
    }
}
