//! Rules over many sources: small files are evaluated ahead, with the results of each file alone.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use quarrier::rules::{JudgedScope, RuleRun, RuleSearch, Scopes};
use quarrier::search::Planning;
use quarrier::{Machine, Named, Sources};
use quarrier_rules::{RuleFile, Rules};

use crate::doors::opener;

const RULES: &str = r#"
    rule word { strings: $a = "needle" $b = /n[aeiou]dle/ condition: any of them }
    rule small { condition: filesize < 20 }
    rule named { strings: $a = "needle" condition: $a and filename matches /^[0-4]/ }
    rule often { strings: $a = "needle" condition: #a > 2 }
    rule without { strings: $a = "absent" condition: not $a and filesize > 1000000 }
"#;

fn rules() -> Rules {
    let file = RuleFile { name: "r.yar".to_string(), bytes: RULES.as_bytes().to_vec() };
    Rules::compile(&[file], &mut |_, _| Err("none".to_string()), &false.into()).unwrap()
}

/// A row: source, scope, rule, string, offset.
type Row = (String, String, String, Option<String>, Option<u64>);

fn rows(name: &str, scope: &JudgedScope<'_>, rules: &Rules, rows: &mut Vec<Row>) {
    rows.extend(scope.rows(rules).map(|row| {
        let string = row.string.map(str::to_string);
        (name.to_string(), scope.name.to_string(), row.rule.name.clone(), string, row.offset)
    }));
}

/// What is found in order, with the number of bytes and of scopes; the search ends after `most` sources.
fn in_turn(
    search: &RuleSearch,
    named: &[Named],
    is_first: bool,
    most: usize,
) -> (Vec<Row>, u64, u64) {
    let (stop, opener) = (Arc::new(AtomicBool::new(false)), opener(false));
    let machine = Machine::unknown();
    let mut run = search.start(&machine, None, &stop).unwrap();
    let first = named.first().filter(|_| is_first).map(|named| opener.open(named));
    let (mut found, mut bytes, mut scopes, mut turns) = (Vec::new(), 0, 0, 0);
    run.in_turn(named, first, &opener, &stop, &mut |run: &mut RuleRun<'_>, turn| {
        let turn = turn.unwrap();
        let (name, rules) = (turn.name().to_string(), run.rules().clone());
        let mut take = |scope: &JudgedScope<'_>| {
            rows(&name, scope, &rules, &mut found);
            ControlFlow::Continue(())
        };
        let searched = run.search_turn(turn, &stop, &mut take).unwrap();
        assert!(!searched.is_incomplete && !searched.is_stopped);
        (bytes, scopes, turns) = (bytes + searched.bytes, scopes + searched.scopes, turns + 1);
        if turns == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (found, bytes, scopes)
}

/// The same, source by source.
fn alone(search: &RuleSearch, named: &[Named], most: usize) -> (Vec<Row>, u64, u64) {
    let (stop, opener) = (Arc::new(AtomicBool::new(false)), opener(false));
    let machine = Machine::unknown();
    let mut run = search.start(&machine, None, &stop).unwrap();
    let (mut found, mut bytes, mut scopes) = (Vec::new(), 0, 0);
    for named in named.iter().take(most) {
        let mut opened = opener.open(named).unwrap();
        let name = opened.name().to_string();
        let mut take = |scope: &JudgedScope<'_>| {
            rows(&name, scope, search.rules(), &mut found);
            ControlFlow::Continue(())
        };
        let searched = run.search(opened.place(), &stop, &mut take).unwrap();
        (bytes, scopes) = (bytes + searched.bytes, scopes + searched.scopes);
    }
    (found, bytes, scopes)
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![&b"needle"[..], b"nadle", b" ", b"xyzzy"]);
    let words = prop::collection::vec(word, 0..40).prop_map(|words| words.concat());
    (words, 0..8u8).prop_map(|(mut bytes, kind)| {
        match kind {
            // Longer than files that are read whole.
            0 => bytes.resize(1_100_000, b'.'),
            1 => bytes.resize(300_000, 0),
            // An image: its bytes are those within.
            2 => bytes = gzip(&bytes),
            _ => {}
        }
        bytes
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u16;
    let mut packed = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(bytes);
    packed.extend(crc32(bytes).to_le_bytes());
    packed.extend((bytes.len() as u32).to_le_bytes());
    packed
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            sum >> 1 ^ (0xEDB8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

fn write(folder: &Path, contents: &[Vec<u8>]) -> Vec<Named> {
    for (number, bytes) in contents.iter().enumerate() {
        std::fs::write(folder.join(format!("{number:03}")), bytes).unwrap();
    }
    Sources::of([folder]).as_slice().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_files_have_the_rows_of_each_alone(
        contents in prop::collection::vec(content(), 0..60),
        workers in 1..5usize,
        is_first: bool,
        most in prop_oneof![Just(usize::MAX), 1..50usize],
        scopes in prop_oneof![Just("source"), Just("source,files"), Just("source,members"), Just("files")],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let named = write(folder.path(), &contents);
        let planning = Planning { workers, ..Planning::default() };
        let search =
            RuleSearch::new(rules()).planning(planning).scopes(scopes.parse::<Scopes>().unwrap());
        prop_assert_eq!(in_turn(&search, &named, is_first, most), alone(&search, &named, most));
    }
}

#[test]
fn files_that_are_gone_are_errors_in_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let named = write(folder.path(), &vec![b"needle".to_vec(); 30]);
    std::fs::remove_file(folder.path().join("007")).unwrap();
    let (stop, opener) = (Arc::new(AtomicBool::new(false)), opener(false));
    let (machine, search) = (Machine::unknown(), RuleSearch::new(rules()));
    let mut run = search.start(&machine, None, &stop).unwrap();
    let mut turns = Vec::new();
    run.in_turn(&named, None, &opener, &stop, &mut |_, turn| {
        turns.push(turn.map(|turn| turn.name().to_string()).map_err(|error| error.to_string()));
        ControlFlow::Continue(())
    });
    assert_eq!(turns.len(), 30);
    for (number, turn) in turns.into_iter().enumerate() {
        match turn {
            Ok(name) => assert!(number != 7 && name.ends_with(&format!("{number:03}")), "{name}"),
            Err(error) => assert!(number == 7 && error.contains("007"), "{error}"),
        }
    }
}

#[test]
fn a_stop_ends_the_turns() {
    let folder = tempfile::tempdir().unwrap();
    let named = write(folder.path(), &vec![b"needle".to_vec(); 200]);
    let (stop, opener) = (Arc::new(AtomicBool::new(false)), opener(false));
    let (machine, search) = (Machine::unknown(), RuleSearch::new(rules()));
    let mut run = search.start(&machine, None, &stop).unwrap();
    let mut turns = 0;
    run.in_turn(&named, None, &opener, &stop, &mut |_, _| {
        turns += 1;
        stop.store(turns == 3, Ordering::Relaxed);
        ControlFlow::Continue(())
    });
    assert_eq!(turns, 3);
}
