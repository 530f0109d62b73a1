//! Regexes against regex-automata's own iterator over the whole text.

use proptest::prelude::*;
use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::Memory;
use quarrier_search::{Finding, Options, Pattern, Searcher};
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use std::ops::ControlFlow;

use super::oracle::{Cut, run, searcher_with};

fn expected(regexes: &[&str], text: &[u8]) -> Vec<Finding> {
    let mut all = Vec::new();
    for (index, regex) in regexes.iter().enumerate() {
        let regex = Regex::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .build(regex)
            .unwrap();
        all.extend(regex.find_iter(text).map(|m| Finding {
            offset: m.start() as u64,
            pattern: index as u32,
            length: m.len() as u32,
        }));
    }
    all.sort_unstable();
    all
}

fn check(regexes: &[&str], text: &[u8], buffer_bytes: usize, workers: usize) {
    let patterns = regexes.iter().map(|r| Pattern::regex(r).unwrap()).collect();
    let searcher = searcher_with(patterns, Options::default());
    let expected = expected(regexes, text);
    assert_eq!(searcher.find_all(text).unwrap(), expected);
    let source = Memory::new("text", text);
    for access in [Access::Window, Access::Read, Access::Queue] {
        let cut = Cut { access, workers, buffers: workers + 2, buffer_bytes };
        assert_eq!(run(&searcher, &source, cut), expected, "{regexes:?} {cut:?}");
    }
}

/// Regexes whose matches depend on where the match before ended, on context, on order.
const REGEXES: [&str; 32] = [
    "aa",
    "aba",
    "a{2,5}",
    "(?:ab|a)(?:c|bcd)?",
    "a|ab|abc",
    "[ab]{3}",
    "ab*a",
    "(?:aab){1,3}",
    r"\bab",
    r"a\b",
    "(?m)^a{1,3}",
    "(?m)b$",
    r"\Aa",
    r"[ab]{2}\z",
    // With rare runs, some way from the start, so that the packed filter gates them.
    "[ab]{0,3}cd",
    r"a{1,4}c[ab]{1,2}\n",
    "(?:ab|b)dc?",
    r"\bc.d|cdc",
    "(?:a{1,2}c){2,3}",
    "d[ab]*d",
    r"(?m)^b?c$",
    "c{2,}d?",
    // That read on through nearly any byte.
    "a.*",
    "a.*b",
    "a.*?b",
    "c[^ab]*c",
    r"\S+c",
    "(?s).+d",
    "(?s:a.*)d|b",
    "a(?:.*c)?",
    "d(?s:.)*?d",
    r"(?m)^.+$",
];

/// What the contract says: at each place what matches there within one byte more than allowed,
/// up to the first match that is too long.
fn bounded(regex: &str, text: &[u8], bytes_max: usize) -> (Vec<Finding>, Option<u64>) {
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let regex = Regex::builder().syntax(syntax).build(regex).unwrap();
    let (mut found, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let reach = start..text.len().min(start + bytes_max + 1);
        let here = regex.find(Input::new(text).span(reach).anchored(Anchored::Yes));
        match here.map(|found| found.len()) {
            Some(length) if length > bytes_max => return (found, Some(start as u64)),
            Some(length) => {
                found.push(Finding { offset: start as u64, pattern: 0, length: length as u32 });
                start += length;
            }
            None => start += 1,
        }
    }
    (found, None)
}

fn check_bounded(regex: &str, text: &[u8], bytes_max: usize, cut: Cut) {
    let options = Options { regex_length_bytes_max: bytes_max, ..Options::default() };
    let searcher = Searcher::builder().options(options).build(vec![Pattern::regex(regex).unwrap()]);
    // A regex that always matches more than so few bytes is refused.
    let Ok(searcher) = searcher else { return };
    let (expected, too_long) = bounded(regex, text, bytes_max);
    match searcher.find_all(text) {
        Ok(found) => assert_eq!((found, None), (expected.clone(), too_long), "{regex}"),
        Err(error) => assert_eq!(Some(error.offset), too_long, "{regex}"),
    }
    let mut all = Vec::new();
    let mut sink = searcher.sink(|_, findings| {
        all.extend_from_slice(findings);
        ControlFlow::Continue(())
    });
    Pipeline::new(&Memory::new("text", text))
        .access(cut.access)
        .workers(cut.workers)
        .buffers(cut.buffers)
        .buffer_bytes(cut.buffer_bytes)
        .run(&searcher, &mut sink)
        .unwrap();
    let told = sink.too_long().map(|error| error.to_string());
    assert_eq!(told.is_some(), too_long.is_some(), "{regex} {cut:?}: {told:?}, {too_long:?}");
    if let (Some(told), Some(offset)) = (told, too_long) {
        assert!(told.contains(&format!("at offset {offset};")), "{regex}: {told}, {offset}");
    }
    assert_eq!(all, expected, "{regex} of {bytes_max} bytes {cut:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn matches_do_not_depend_on_chunks(
        text in prop::collection::vec(
            prop_oneof![5 => Just(b'a'), 3 => Just(b'b'), 1 => Just(b'c'), 1 => Just(b'd'), 1 => Just(b'\n'), 1 => Just(b' ')],
            0..600,
        ),
        first in 0..REGEXES.len(),
        second in 0..REGEXES.len(),
        buffer_bytes in 1usize..70,
        workers in 1usize..5,
    ) {
        check(&[REGEXES[first], REGEXES[second]], &text, buffer_bytes, workers);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_counts_within_the_bound_does_not_depend_on_chunks(
        text in prop::collection::vec(
            prop_oneof![5 => Just(b'a'), 3 => Just(b'b'), 1 => Just(b'c'), 1 => Just(b'd'), 1 => Just(b'\n'), 1 => Just(b' ')],
            0..600,
        ),
        // A stretch on which nothing ends, longer than a piece.
        (stretch, at) in (prop_oneof![Just(0usize), 0usize..3000], any::<prop::sample::Index>()),
        regex in 0..REGEXES.len(),
        bytes_max in prop_oneof![1usize..40, 40usize..700],
        buffer_bytes in 1usize..700,
        workers in 1usize..5,
    ) {
        let mut text = text;
        let at = at.index(text.len() + 1);
        text.splice(at..at, std::iter::repeat_n(b'a', stretch));
        let cut = Cut { access: Access::Read, workers, buffers: workers + 2, buffer_bytes };
        check_bounded(REGEXES[regex], &text, bytes_max, cut);
    }
}

/// Each start reads on for an end that never comes, or comes too late: what it costs is bounded.
#[test]
fn a_regex_that_reads_on_at_every_byte_costs_its_bound_a_byte() {
    let cut = Cut { access: Access::Read, workers: 2, buffers: 4, buffer_bytes: 1 << 17 };
    let mut text = vec![b'a'; 1 << 18];
    check_bounded("a(?:.*b)?", &text, 100, cut);
    check_bounded("(?s)a.*b", &text, 100, cut);
    text.iter_mut().step_by(64).for_each(|byte| *byte = b'c');
    text.push(b'b');
    check_bounded("(?s)a.*b|c", &text, 100, cut);
}

#[test]
fn a_run_of_overlapping_candidates_is_stitched_across_all_chunks() {
    // Every chunk's guess is off by one against the chunk before, all the way through.
    let text = vec![b'a'; 10_001];
    check(&["aa", "a{3}"], &text, 77, 3);
}

#[test]
fn a_match_of_exactly_the_longest_length_is_found_and_a_longer_one_is_an_error() {
    let options = Options { regex_length_bytes_max: 100, ..Options::default() };
    let pattern = || vec![Pattern::regex("a+").unwrap()];
    let searcher = searcher_with(pattern(), options);
    let mut text = vec![b'b'; 500];
    text[200..300].fill(b'a');
    let found = searcher.find_all(&text).unwrap();
    assert_eq!(found, [Finding { offset: 200, pattern: 0, length: 100 }]);
    text[300] = b'a';
    let too_long = searcher.find_all(&text).unwrap_err();
    assert_eq!((too_long.offset, too_long.pattern), (200, 0));
}

#[test]
fn regexes_that_match_nothing_or_too_much_or_are_none_are_refused() {
    for (regex, reason) in [
        ("a*", "nothing at all"),
        ("|a", "nothing at all"),
        ("a{70000}", "raise --regex-max-length"),
        ("(a", "unclosed group"),
        ("[z-a]", "invalid"),
    ] {
        let built = Searcher::builder().build(vec![Pattern::regex(regex).unwrap()]);
        let message = built.err().unwrap().to_string();
        assert!(message.contains(reason) && !message.contains('\n'), "{regex}: {message}");
    }
}

#[test]
fn a_byte_escape_in_a_regex_is_that_byte() {
    let searcher =
        searcher_with(vec![Pattern::regex(r"\xFF\xD8[\x80-\xFF]").unwrap()], Options::default());
    let found = searcher.find_all(b"..\xFF\xD8\xFF..").unwrap();
    assert_eq!(found, [Finding { offset: 2, pattern: 0, length: 3 }]);
}

/// Runs of narrow bytes, far longer than any match may be: what counts is that these end.
#[test]
fn runs_longer_than_any_match_take_no_longer_than_they_are() {
    let searcher =
        |regex: &str| searcher_with(vec![Pattern::regex(regex).unwrap()], Options::default());
    // A match from every start, each too long but for the last.
    let mut zeros = vec![0u8; 1 << 20];
    zeros.push(0xFF);
    let too_long = searcher(r"\x00+\xFF").find_all(&zeros).unwrap_err();
    assert_eq!(too_long.offset, (1 << 20) - 65_536);
    // A rare run at every position of one stretch, and no match in it.
    let mut letters: Vec<u8> = super::engines::noise(9).take(1 << 19).collect();
    letters.extend((0..1 << 20).map(|i| b"qz"[i % 2]));
    letters.extend_from_slice(b" qzqzq!");
    let found = searcher("q[qz]+q!").find_all(&letters).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].length, 6);
}

#[test]
fn a_match_too_long_after_many_tries_in_vain_ends_the_search_for_good() {
    let mut text = b"q\x01\x029".repeat(40);
    let offset = text.len() as u64;
    text.extend_from_slice(b"q\x01\x02");
    text.extend(std::iter::repeat_n(b'a', 70_000));
    let searcher =
        searcher_with(vec![Pattern::regex(r"q\x01\x02(?:a+|bb)").unwrap()], Options::default());
    assert_eq!(searcher.find_all(&text).unwrap_err().offset, offset);
}
