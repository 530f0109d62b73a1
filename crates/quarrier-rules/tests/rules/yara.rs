//! The program `yara` as an external oracle.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_rules::{Judge, ScopeName};

use crate::compiled;
use crate::draw::{Draw, rules, scope};

/// Number of sets of rules to compare.
const SETS: u64 = 60;

/// A match of a string: rule, string, offset, length. A rule that holds also has a row with an
/// empty string.
type Row = (String, String, u64, u64);

/// Returns the output of `yara`; `None` if it does not run.
pub(crate) fn yara_rows(folder: &std::path::Path, name: &str) -> Option<BTreeSet<Row>> {
    let symbols =
        [format!("filename={name}"), format!("filepath={name}"), "extension=".to_string()];
    let mut command = Command::new("yara");
    command.current_dir(folder).args(["-w", "-s", "-L"]);
    for symbol in &symbols {
        command.args(["-d", symbol]);
    }
    let ran = command.args(["r.yar", name]).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    let mut rows = BTreeSet::new();
    let mut rule = String::new();
    for line in text.lines() {
        match line.strip_prefix("0x") {
            None => {
                rule = line.split(' ').next()?.to_string();
                rows.insert((rule.clone(), String::new(), 0, 0));
            }
            Some(found) => {
                let mut fields = found.splitn(4, ':');
                let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
                let length = fields.next()?.parse().ok()?;
                let string = fields.next()?.to_string();
                rows.insert((rule.clone(), string, offset, length));
            }
        }
    }
    Some(rows)
}

#[test]
fn the_answers_are_those_of_yara() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..SETS {
        let mut draw = Draw(seed);
        let count = 1 + draw.below(12);
        // Debian's version predates negated bytes.
        let text = rules(&mut draw, count).replace("~00", "??");
        std::fs::write(folder.path().join("r.yar"), &text).unwrap();
        let rules = compiled(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let judge = Judge::new(&rules, Duration::from_secs(600));
        for index in 0..3 {
            let name = format!("scope{index}");
            let bytes = scope(&mut draw);
            std::fs::write(folder.path().join(&name), &bytes).unwrap();
            let Some(expected) = yara_rows(folder.path(), &name) else {
                eprintln!("skipped: yara does not run");
                return;
            };
            let stop = AtomicBool::new(false);
            let judged =
                judge.judge_by_all(&Arc::new(bytes.clone()), &ScopeName::of(&name), &stop).unwrap();
            let mut found = BTreeSet::new();
            for held in &judged.held {
                let rule = &rules.rules()[held.rule].name;
                found.insert((rule.clone(), String::new(), 0, 0));
                let row = |one: &quarrier_rules::StringMatch| {
                    (rule.clone(), one.string.to_string(), one.offset, one.length)
                };
                found.extend(held.found.iter().map(row));
            }
            assert_eq!(found, expected, "seed {seed}, {name}: {bytes:?}\n{text}");
        }
    }
}
