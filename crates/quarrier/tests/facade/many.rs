//! Conditions that are counted during a load have the counts that a filter of the same messages finds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::filter::{Conditions, Form, Rows};
use quarrier::kept::{DefinedColumn, Definition};
use quarrier::{DataFolder, Filter, KeptLoad, Sources};
use quarrier_messages::Kind;

use crate::doors::opener;

/// A folder with a file of conditions and files of messages.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(conditions: &str, files: &[(&str, String)]) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        std::fs::write(folder.0.path().join("many.sql"), conditions).unwrap();
        for (name, text) in files {
            std::fs::write(folder.0.path().join(name), text).unwrap();
        }
        folder
    }

    fn conditions(&self) -> Conditions {
        Conditions::of_file(&self.0.path().join("many.sql"), &AtomicBool::new(false)).unwrap()
    }

    fn sources(&self, names: &[&str]) -> Sources {
        Sources::of(names.iter().map(|name| self.0.path().join(name)).collect::<Vec<_>>())
    }

    fn kept(&self, name: &str) -> DataFolder {
        DataFolder::open_with(&self.0.path().join(name), 4 << 20).unwrap()
    }

    /// Loads files while counting; returns the counts, and whether one pass sufficed: then the messages need not
    /// be there.
    fn counted(&self, kept: &DataFolder, names: &[&str]) -> (Result<Vec<u64>, String>, bool) {
        let stop = Arc::new(AtomicBool::new(false));
        let load = KeptLoad::new("t").workers(2).counting(Some(self.conditions()));
        let loaded = load.run(kept, &self.sources(names), &opener(false), &stop, &mut ()).unwrap();
        let count = |kept: &DataFolder| {
            let filtered = loaded.filter(kept, "t", self.conditions(), &opener(false), &stop);
            filtered.map(|it| it.counts).map_err(|error| error.to_string())
        };
        let is_one_pass = count(&self.kept("without")).is_ok();
        (count(kept), is_one_pass)
    }

    fn filtered(&self, names: &[&str]) -> Result<Vec<u64>, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let filter = Filter::new(self.conditions()).form(Form::Count).workers(2);
        let ignore = &mut |_: &Rows<'_>| Ok(());
        let filtered = filter.run(&self.sources(names), &opener(false), &stop, ignore);
        filtered.map(|it| it.counts).map_err(|error| error.to_string())
    }
}

fn json(numbers: std::ops::Range<u64>) -> String {
    let line = |n: u64| {
        let side = if n.is_multiple_of(3) { "S" } else { "B" };
        let legs = (0..n % 4).map(|leg| format!("{{\"qty\":{}}}", leg * n)).collect::<Vec<_>>();
        format!(
            "{{\"n\":{n},\"side\":\"{side}\",\"price\":{}.{:02},\"note\":\"x{}\",\"leg\":[{}]}}\n",
            n % 90,
            n % 100,
            n % 7,
            legs.join(",")
        )
    };
    numbers.map(line).collect()
}

const CONDITIONS: &str = "\
side = 'S'
n BETWEEN 100 AND 5000 AND price < 40.5
note LIKE 'x_' AND NOT (n < 10)
n IS NULL OR side IN ('S', 'Q')
leg[1].qty > 7
5 < ANY (leg[*].qty)
1 = 0
";

#[test]
fn conditions_are_counted_while_messages_are_parsed() {
    // Several batches of about a MiB.
    let folder = Folder::new(
        CONDITIONS,
        &[("f", json(0..60_000) + "no message\n"), ("g", json(60_000..90_000))],
    );
    let (counts, is_one_pass) = folder.counted(&folder.kept("d"), &["f", "g"]);
    assert!(is_one_pass, "{counts:?}");
    assert_eq!(counts, folder.filtered(&["f", "g"]));
    assert!(counts.unwrap()[..6].iter().all(|count| *count > 0));
}

#[test]
fn only_the_messages_of_this_load_are_counted() {
    let folder = Folder::new(CONDITIONS, &[("f", json(0..30_000)), ("more", json(30_000..50_000))]);
    let kept = folder.kept("d");
    assert_eq!(folder.counted(&kept, &["f"]), (folder.filtered(&["f"]), true));
    assert_eq!(folder.counted(&kept, &["f"]), (Ok(vec![0; 7]), true));
    std::fs::write(folder.0.path().join("f"), json(0..50_000)).unwrap();
    assert_eq!(folder.counted(&kept, &["f"]), (folder.filtered(&["more"]), true));
}

#[test]
fn other_formats_are_counted_in_the_same_pass() {
    let csv: String = (0..40_000).map(|n| format!("{n};a {};{n}.5\n", n % 13)).collect();
    let fix = |n: u64| {
        let body = format!("35=D\u{1}34={n}\u{1}54={}\u{1}44={}.25\u{1}", 1 + n % 2, n % 50);
        let head = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
        let sum: u32 = head.bytes().map(u32::from).sum();
        format!("{head}10={:03}\u{1}\n", sum % 256)
    };
    let fix: String = (0..5_000).map(fix).collect();
    let xml: String = (0..500).map(|n| format!("<o><n>{n}</n></o>")).collect();
    for (name, conditions, text, is_one_pass) in [
        (
            "f.csv",
            "n < 500\nword = 'a 7' OR half > 30000.25\n",
            format!("n;word;half\n{csv}"),
            true,
        ),
        ("f.fix", "MsgSeqNum < 70\nPrice = 7.25 AND Side = '1'\n", fix, true),
        ("f.xml", "n < 70\n", format!("<all>{xml}</all>"), false),
    ] {
        let folder = Folder::new(conditions, &[(name, text)]);
        let expected = folder.filtered(&[name]);
        assert!(expected.as_ref().is_ok_and(|counts| counts[0] > 0), "{name}: {expected:?}");
        assert_eq!(folder.counted(&folder.kept("d"), &[name]), (expected, is_one_pass), "{name}");
    }
}

/// Messages of other types than the first ones: they are read again, with the same result as in a filter.
#[test]
fn types_that_change_are_found_and_the_counts_are_those_of_a_filter() {
    let lines = |values: &[&str], count: usize| -> String {
        let line = |at: usize| format!("{{\"n\":{at},\"v\":{}}}\n", values[at % values.len()]);
        (0..count).map(line).collect()
    };
    let tail = |value: &str| lines(&["7"], 150_000) + &lines(&[value], 3);
    for (what, text, is_one_pass) in [
        ("one type", lines(&["7", "-1", "null"], 1_000), true),
        ("a string late", tail("\"x\""), false),
        ("a decimal late", tail("7.5"), false),
        ("strings in a column of NULL", lines(&["null"], 150_000) + &lines(&["\"7\""], 5), true),
        ("mixed", lines(&["7", "\"x\"", "2.5", "\"2024-01-31\""], 5_000), true),
        (
            "two types in a column of NULL",
            lines(&["null"], 150_000) + &lines(&["7", "\"x\"", "7"], 30),
            false,
        ),
    ] {
        for conditions in ["v = 7\nn < 10\n", "v > 6\nv IS NULL\n", "CAST(v AS VARCHAR(9)) = '7'\n"]
        {
            let folder = Folder::new(conditions, &[("f", text.clone())]);
            let expected = folder.filtered(&["f"]);
            let (counts, has_passed) = folder.counted(&folder.kept("d"), &["f"]);
            assert_eq!(counts.is_ok(), expected.is_ok(), "{what}, {conditions}: {counts:?}");
            if expected.is_ok() {
                assert_eq!(counts, expected, "{what}, {conditions}");
            }
            assert!(is_one_pass || !has_passed || what == "a decimal late", "{what}, {conditions}");
        }
    }
}

#[test]
fn faults_and_unknown_columns_are_the_errors_of_a_filter() {
    for (conditions, words) in [
        ("n < 5\n10 / (n - 700) > 1\n", "zero"),
        ("n < 5\nnobody = 1\n", "nobody"),
        ("n < 5\nn LIKE 5\n", ""),
    ] {
        let folder = Folder::new(conditions, &[("f", json(0..1_000))]);
        let kept = folder.kept("d");
        let (counts, has_passed) = folder.counted(&kept, &["f"]);
        let (said, expected) = (counts.unwrap_err(), folder.filtered(&["f"]).unwrap_err());
        assert!(
            !has_passed && said.contains(words) && expected.contains(words),
            "{said}\n{expected}"
        );
        // The messages are there.
        assert_eq!(kept.tables().unwrap()[0].messages, 1_000);
    }
}

#[test]
fn messages_that_do_not_fit_declared_columns_are_not_counted() {
    let lines: String = (0..20_000)
        .map(|n| match n % 10 {
            0 => format!("{{\"n\":\"{n}\",\"side\":\"S\"}}\n"),
            1 => format!("{{\"n\":{n},\"side\":\"S\",\"other\":1}}\n"),
            _ => format!("{{\"side\":\"S\",\"n\":{n}}}\n"),
        })
        .collect();
    let folder = Folder::new("side = 'S'\nn < 100\n", &[("f", lines)]);
    let kept = folder.kept("d");
    let column = |name: &str, kind| DefinedColumn {
        name: name.into(),
        kind,
        digits: 38,
        is_required: false,
    };
    let columns = vec![column("n", Kind::Integer), column("side", Kind::Text)];
    kept.create("t", &Definition::new(columns).unwrap()).unwrap();
    // The sample has the strings, too, so the stored messages are read again for "n < 100".
    assert_eq!(folder.counted(&kept, &["f"]), (Ok(vec![16_000, 80]), false));
    assert_eq!(kept.tables().unwrap()[0].messages, 16_000);
}

#[test]
fn places_of_messages_are_those_in_the_log() {
    let folder = Folder::new("_line <= 10\n_offset = 0\n", &[("f", json(0..1_000))]);
    let (counts, has_passed) = folder.counted(&folder.kept("d"), &["f"]);
    assert_eq!((counts, has_passed), (Ok(vec![10, 1]), false));
}

#[test]
fn files_with_other_types_are_read_together() {
    let folder = Folder::new(
        "v = '7'\n",
        &[("f", "{\"v\":\"7\"}\n".repeat(50)), ("g", "{\"v\":\"2024-01-31\"}\n".repeat(50))],
    );
    let (counts, has_passed) = folder.counted(&folder.kept("d"), &["f", "g"]);
    assert_eq!((counts, has_passed), (Ok(vec![50]), false));
}
