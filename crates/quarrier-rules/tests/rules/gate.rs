//! The gate never drops a rule that holds, and neither does evaluating only a few rules.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;
use quarrier_rules::{Hits, Judge, Judged, Rules, ScopeName};

use crate::draw::{Draw, rules, scope};
use crate::{Finder, compiled};

const LIMIT: Duration = Duration::from_secs(600);
/// Minimum length of scopes that may be evaluated by a few rules.
const LONG_BYTES: usize = 300 << 10;

fn gated(
    rules: &Rules,
    finder: &Finder,
    judge: &Judge,
    bytes: &Arc<Vec<u8>>,
    name: &ScopeName,
) -> Judged {
    let hits = finder.hits(bytes);
    let roughly = rules.candidates(&hits, bytes.len() as u64, None);
    let candidates = rules.candidates(&hits, bytes.len() as u64, Some(bytes));
    assert!(candidates.iter().all(|rule| roughly.contains(rule)), "more is known");
    if candidates.is_empty() {
        return Judged::default();
    }
    judge.judge(bytes, name, &candidates, &AtomicBool::new(false)).unwrap()
}

/// Returns the end of the rules whose result does not depend on a string with more matches than
/// count: how many count depends on the other rules that are evaluated.
fn end_of_exact(judged: &Judged, text: &str) -> usize {
    let is_global = |rule: usize| text.contains(&format!("global rule r{rule} "));
    match judged.overfull.iter().map(|string| string.rule).min() {
        None => usize::MAX,
        // A rule refers only to earlier ones, but every rule needs the global ones.
        Some(_) if judged.overfull.iter().any(|string| is_global(string.rule)) => 0,
        Some(first) => first,
    }
}

fn check(seed: u64) {
    let mut draw = Draw(seed);
    let count = 1 + draw.below(16);
    let text = rules(&mut draw, count);
    let rules = compiled(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (finder, judge) = (Finder::of(&rules), Judge::new(&rules, LIMIT));
    for index in 0..4 {
        let mut bytes = scope(&mut draw);
        if draw.one_in(8) {
            let filler = draw.below(2) as u8;
            bytes.resize(LONG_BYTES, filler);
        }
        let (bytes, name) = (Arc::new(bytes), ScopeName::of(&format!("/f/scope{index}")));
        let expected = judge.judge_by_all(&bytes, &name, &AtomicBool::new(false)).unwrap();
        let found = gated(&rules, &finder, &judge, &bytes, &name);
        let end = end_of_exact(&expected, &text);
        let [found, exact] = [&found, &expected].map(|judged| {
            judged.held.iter().take_while(|held| held.rule < end).collect::<Vec<_>>()
        });
        assert_eq!(found, exact, "seed {seed}, scope {index}: {bytes:?}\n{text}");
        // Hits that did not store patterns assume that all occur.
        let all = rules.candidates(&Hits::all(), bytes.len() as u64, Some(&bytes));
        assert!(expected.held.iter().all(|held| all.contains(&(held.rule as u32))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_gate_drops_no_rule_that_holds(seed in any::<u64>()) {
        check(seed);
    }
}

/// A scope that is long enough for windows: drawn ones, with much between them.
fn long_scope(draw: &mut Draw) -> Vec<u8> {
    let filler: &[u8] = draw.of(&[&[0][..], b" ", b"+-", b"aB9 \0x\xFF"]);
    let mut bytes = Vec::new();
    for _ in 0..1 + draw.below(4) {
        let length = draw.below(10_000);
        bytes.extend((0..length).map(|at| filler[at % filler.len()]));
        bytes.extend(scope(draw));
    }
    bytes
}

/// Returns the number of rules that were evaluated by windows.
fn check_windows(seed: u64) -> usize {
    let mut draw = Draw(seed);
    let count = 1 + draw.below(16);
    let text = rules(&mut draw, count);
    let rules = compiled(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let judge = Judge::new(&rules, LIMIT).windows_from(0);
    let (finder, stop) = (Finder::of(&rules), AtomicBool::new(false));
    let mut by_windows = 0;
    for index in 0..3 {
        let bytes = Arc::new(long_scope(&mut draw));
        let name = ScopeName::of(&format!("/f/scope{index}"));
        let hits = finder.hits_with_offsets(&bytes);
        let candidates = rules.candidates(&hits, bytes.len() as u64, Some(&bytes));
        let expected = judge.judge_by_all(&bytes, &name, &stop).unwrap();
        let found = judge.judge_found(&bytes, &name, &candidates, &hits, &stop).unwrap();
        by_windows += found.by_windows;
        let end = end_of_exact(&expected, &text);
        let [found, exact] = [&found, &expected].map(|judged| {
            judged.held.iter().take_while(|held| held.rule < end).collect::<Vec<_>>()
        });
        assert_eq!(found, exact, "seed {seed}, scope {index}\n{text}");
    }
    by_windows
}

#[test]
fn windows_find_what_whole_scopes_have() {
    let all: usize = (0..60).map(check_windows).sum();
    assert!(all > 100, "{all} rules were evaluated by windows");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_of_any_rules_find_what_whole_scopes_have(seed in any::<u64>()) {
        check_windows(seed);
    }
}

#[test]
fn the_gate_agrees_where_strings_have_more_matches_than_count() {
    check(4_510_947_874_596_857_808);
}

#[test]
fn rules_that_need_their_strings_are_no_candidates_without_them() {
    let text = r#"
        rule needs { strings: $a = "needle" condition: $a }
        rule both { strings: $a = "needle" $b = "thread" condition: all of them }
        private rule secret { strings: $a = "thread" condition: $a }
        rule refers { condition: secret }
        rule without { strings: $a = "ab" condition: $a }
        rule size { condition: filesize == 6 }
    "#;
    let rules = compiled(text).unwrap();
    let finder = Finder::of(&rules);
    let names = |bytes: &[u8]| {
        let candidates = rules.candidates(&finder.hits(bytes), bytes.len() as u64, Some(bytes));
        let name = |rule: u32| rules.rules()[rule as usize].name.clone();
        candidates.into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(b"nothing"), ["without"]);
    assert_eq!(names(b"a needle"), ["needs", "without"]);
    assert_eq!(names(b"thread"), ["refers", "without", "size"]);
    assert_eq!(names(b"thread and needle"), ["needs", "both", "refers", "without"]);
    let without: Vec<bool> = (0..6).map(|rule| rules.holds_without(rule)).collect();
    assert_eq!(without, [false, false, false, false, true, true]);
}

#[test]
fn a_global_rule_that_cannot_hold_leaves_no_candidates() {
    let text = r#"
        global rule all { strings: $a = "wanted" condition: $a }
        rule any { condition: true }
    "#;
    let rules = compiled(text).unwrap();
    let finder = Finder::of(&rules);
    let candidates = |bytes: &[u8]| rules.candidates(&finder.hits(bytes), bytes.len() as u64, None);
    assert!(candidates(b"nothing").is_empty());
    assert_eq!(candidates(b"is wanted"), [0, 1]);
}
