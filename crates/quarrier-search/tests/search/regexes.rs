//! Regexes against regex-automata's own iterator over the whole text.

use proptest::prelude::*;
use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::{FileSource, Memory};
use quarrier_search::{Finding, Options, Pattern, Searcher};
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use std::io::{Seek, SeekFrom, Write};
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

pub(crate) fn check(regexes: &[&str], text: &[u8], buffer_bytes: usize, workers: usize) {
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

/// Regexes whose matches depend on the end of the match before, on context, on order.
const REGEXES: [&str; 48] = [
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
    // Regexes with rare runs at some distance from the start, so that the packed filter gates them.
    "[ab]{0,3}cd",
    r"a{1,4}c[ab]{1,2}\n",
    "(?:ab|b)dc?",
    r"\bc.d|cdc",
    "(?:a{1,2}c){2,3}",
    "d[ab]*d",
    r"(?m)^b?c$",
    "c{2,}d?",
    // Regexes that read on through nearly any byte.
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
    // Regexes whose matches or attempts end far after the bound.
    "ad*b",
    "(?s)a.*?c|b.*?d",
    "(?s)a.*?dd|b",
    "(?s)(?:ab|b).*d|a",
    "(?:aa)+b",
    "(?:aa|aaa)+(?:b|cd)",
    "a{3,}b",
    r"\ba+\b",
    r"(?s)b.*\bc$",
    r"(?s-u:d.*)\z",
    r"(?s:c.*\n)|a",
    r"(?m)^a.*(?s:.)+?c$",
    r"(?u:\b)a+(?u:\b)",
    "(?s)a|b.*c|d",
    "b|a[^c]*[cd]",
    "(?s)c.*(?:aab|b a)",
];

/// The contract: leftmost-first, non-overlapping matches, up to one that is longer than allowed,
/// whose start is reported. If the first such match proves too long at byte `D`, findings count up
/// to `D` minus the bound and a byte.
fn bounded(regex: &str, text: &[u8], bytes_max: usize) -> (Vec<Finding>, Option<u64>) {
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let regex = Regex::builder().syntax(syntax).build(regex).unwrap();
    let length = |start: usize, end: usize| {
        let here = Input::new(text).span(start..end).anchored(Anchored::Yes);
        regex.find(here).map_or(0, |found| found.len())
    };
    let (mut found, mut start) = (Vec::new(), 0);
    let (mut first, mut counts_until) = (None, usize::MAX);
    while start < text.len().min(counts_until.saturating_add(1)) {
        if length(start, text.len()) > bytes_max {
            first.get_or_insert(start as u64);
            let mut ends = start..text.len();
            while !ends.is_empty() {
                let middle = ends.start.midpoint(ends.end);
                let is_proven = length(start, middle) > bytes_max;
                if is_proven { ends.end = middle } else { ends.start = middle + 1 }
            }
            counts_until = counts_until.min(ends.end - bytes_max - 1);
        }
        match length(start, text.len().min(start + bytes_max + 1)) {
            0 => start += 1,
            length => {
                found.push(Finding { offset: start as u64, pattern: 0, length: length as u32 });
                start += length;
            }
        }
    }
    found.retain(|finding| finding.offset < counts_until as u64);
    (found, first)
}

fn check_bounded(regex: &str, text: &[u8], bytes_max: usize, cut: Cut) {
    let options = Options { regex_length_bytes_max: bytes_max, ..Options::default() };
    let searcher = Searcher::builder().options(options).build(vec![Pattern::regex(regex).unwrap()]);
    // A regex whose matches are all longer than this bound is refused.
    let Ok(searcher) = searcher else { return };
    let (expected, too_long) = bounded(regex, text, bytes_max);
    check_against(&searcher, regex, text, (expected, too_long), cut);
}

fn check_against(
    searcher: &Searcher,
    regex: &str,
    text: &[u8],
    (expected, too_long): (Vec<Finding>, Option<u64>),
    cut: Cut,
) {
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
        .run(searcher, &mut sink)
        .unwrap();
    let reported = sink.too_long().map(|error| error.to_string());
    assert_eq!(
        reported.is_some(),
        too_long.is_some(),
        "{regex} {cut:?}: {reported:?}, {too_long:?}"
    );
    if let (Some(reported), Some(offset)) = (reported, too_long) {
        assert!(
            reported.contains(&format!("at offset {offset};")),
            "{regex}: {reported}, {offset}"
        );
    }
    assert_eq!(all, expected, "{regex} {cut:?} {too_long:?}");
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
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn findings_within_the_bound_do_not_depend_on_chunks(
        text in prop::collection::vec(
            prop_oneof![5 => Just(b'a'), 3 => Just(b'b'), 1 => Just(b'c'), 1 => Just(b'd'), 1 => Just(b'\n'), 1 => Just(b' ')],
            0..600,
        ),
        // A stretch, sometimes longer than a piece, in which no match ends.
        (stretch, at) in (prop_oneof![Just(0usize), 0usize..3000], any::<prop::sample::Index>()),
        byte in prop_oneof![2 => Just(b'a'), 1 => Just(b'd'), 1 => Just(b' ')],
        regex in 0..REGEXES.len(),
        bytes_max in prop_oneof![1usize..40, 40usize..700],
        buffer_bytes in 1usize..700,
        workers in 1usize..5,
    ) {
        let mut text = text;
        let at = at.index(text.len() + 1);
        text.splice(at..at, std::iter::repeat_n(byte, stretch));
        let cut = Cut { access: Access::Read, workers, buffers: workers + 2, buffer_bytes };
        check_bounded(REGEXES[regex], &text, bytes_max, cut);
    }
}

/// Each start looks for an end that never comes, or comes too late: the cost per byte is bounded.
#[test]
fn a_regex_that_reads_on_at_every_byte_costs_its_bound_a_byte() {
    let cut = Cut { access: Access::Read, workers: 2, buffers: 4, buffer_bytes: 1 << 17 };
    let options = Options { regex_length_bytes_max: 100, ..Options::default() };
    let check = |regex: &str, text: &[u8], found: Vec<Finding>, too_long: Option<u64>| {
        let searcher = searcher_with(vec![Pattern::regex(regex).unwrap()], options);
        check_against(&searcher, regex, text, (found, too_long), cut);
    };
    let at = |offset| Finding { offset, pattern: 0, length: 1 };
    let mut text = vec![b'a'; 1 << 18];
    check("a(?:.*b)?", &text, (0..1 << 18).map(at).collect(), None);
    check("(?s)a.*b", &text, Vec::new(), None);
    text.iter_mut().step_by(64).for_each(|byte| *byte = b'c');
    let c = || (0..1 << 18).step_by(64).map(at);
    check("(?s)a.*b|c", &text, c().collect(), None);
    text.push(b'b');
    // The match proves too long only at the end.
    let counts_until = (1 << 18) + 1 - 101;
    let before = c().filter(|found| found.offset < counts_until).collect();
    check("(?s)a.*b|c", &text, before, Some(1));
}

#[test]
fn a_run_of_overlapping_candidates_is_stitched_across_all_chunks() {
    // Every provisional match is off by one against the chunk before.
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
fn empty_overlong_and_invalid_regexes_are_refused() {
    for (regex, reason) in [
        ("a*", "the empty string"),
        ("|a", "the empty string"),
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

/// Long runs of bytes that a regex repeats, far longer than any match may be: the search must end.
#[test]
fn runs_longer_than_any_match_take_linear_time() {
    let searcher =
        |regex: &str| searcher_with(vec![Pattern::regex(regex).unwrap()], Options::default());
    // A match begins at every start, and most are too long: the first is reported.
    let mut zeros = vec![1u8; 10];
    zeros.resize(1 << 19, 0);
    zeros.push(0xFF);
    for regex in [r"\x00+\xFF", r"(?:\x00\x00)+\xFF"] {
        let too_long = searcher(regex).find_all(&zeros).unwrap_err();
        assert_eq!(too_long.offset, 10, "{regex}");
    }
    // A rare run at every position of one stretch, without a match.
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

/// Holes of sparse sources are skipped only if no match reaches into them.
#[test]
fn a_match_that_continues_through_a_hole_is_too_long() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(64 << 20).unwrap();
    file.write_all(b"xxab").unwrap();
    file.seek(SeekFrom::Start(40 << 20)).unwrap();
    file.write_all(b"b").unwrap();
    let source = FileSource::open(file.path()).unwrap();
    for (regex, offset) in [
        ("(?s)a.*b", Some(2)),
        (r"[^x]+?b\x00+b", Some(2)),
        (r"\x00+b", Some(4)),
        ("(?s)a.*c|[bx]", None),
        (r"b\x00*\z", Some(40 << 20)),
        ("x+a", None),
    ] {
        let searcher = searcher_with(vec![Pattern::regex(regex).unwrap()], Options::default());
        let mut sink = searcher.sink(|_, _| ControlFlow::Continue(()));
        Pipeline::new(&source).access(Access::Read).run(&searcher, &mut sink).unwrap();
        let reported = sink.too_long().map(|error| error.to_string());
        assert_eq!(reported.is_some(), offset.is_some(), "{regex}: {reported:?}");
        if let (Some(reported), Some(offset)) = (reported, offset) {
            assert!(reported.contains(&format!("at offset {offset};")), "{regex}: {reported}");
        }
    }
}

/// There are more states than the cache holds: all but those in use are dropped again and again.
#[test]
fn attempts_in_more_states_than_the_cache_holds_are_followed() {
    let regex = "(?:[ab]*a[ab]{12}|c)+d";
    let mut text: Vec<u8> =
        super::engines::noise(5).take(1 << 18).map(|byte| b"ab"[usize::from(byte & 1)]).collect();
    text.insert(0, b' ');
    let searcher = searcher_with(vec![Pattern::regex(regex).unwrap()], Options::default());
    assert_eq!(searcher.find_all(&text), Ok(Vec::new()));
    text.push(b'd');
    text[(1 << 18) - 13] = b'a';
    assert_eq!(searcher.find_all(&text).unwrap_err().offset, 1);
}
