//! Regexes over text in UTF-16, against the regex library over the same text in UTF-8.

use proptest::prelude::*;
use quarrier_core::pipeline::Access;
use quarrier_core::source::Memory;
use quarrier_search::{Options, Pattern, Searcher, parse_file};
use regex_automata::meta::Regex;

use super::oracle::{Cut, run};

/// Offset and length of each match that the library finds in UTF-8, converted to bytes of UTF-16.
fn expected(regex: &str, text: &str) -> Vec<(u64, u32)> {
    let units = |text: &str| 2 * text.encode_utf16().count();
    let regex = Regex::new(regex).unwrap();
    regex
        .find_iter(text)
        .map(|found| (units(&text[..found.start()]) as u64, units(&text[found.range()]) as u32))
        .collect()
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Swaps the bytes of all units, which end with the text.
fn swapped(bytes: &[u8]) -> Vec<u8> {
    let (before, units) = bytes.split_at(bytes.len() % 2);
    before.iter().copied().chain(units.chunks(2).flat_map(|unit| [unit[1], unit[0]])).collect()
}

/// Findings of one regex, after checking that neither chunks nor the byte order make a difference.
fn found(regex: &str, bytes: &[u8], ignore_case: bool) -> Vec<(u64, u32)> {
    let little = found_by(Pattern::regex_utf16(regex).unwrap(), bytes, ignore_case);
    let big = Pattern::regex_utf16be(regex).unwrap();
    assert_eq!(found_by(big, &swapped(bytes), ignore_case), little, "{regex}, big endian");
    little
}

fn found_by(pattern: Pattern, bytes: &[u8], ignore_case: bool) -> Vec<(u64, u32)> {
    let regex = pattern.text.clone();
    let options = Options { ignore_case, regex_length_bytes_max: 256, ..Options::default() };
    let searcher = Searcher::builder().options(options).build(vec![pattern]).unwrap();
    let found = searcher.find_all(bytes).unwrap();
    let source = Memory::new("text", bytes);
    for buffer_bytes in [1, 7, 64] {
        let cut = Cut { access: Access::Read, workers: 2, buffers: 3, buffer_bytes };
        assert_eq!(run(&searcher, &source, cut), found, "{regex}: {cut:?}");
    }
    found.iter().map(|finding| (finding.offset, finding.length)).collect()
}

// Each match has an ASCII character, so that none begins in the middle of another.
const REGEXES: [&str; 12] = [
    "ab",
    "a.b",
    "a[^b]{1,3}?b",
    "(?:ab|b+a)c?",
    "[a-c]{2}",
    "aé+",
    "a[à-ÿ]*b",
    "a\u{1F600}?",
    "a[^a-z]b",
    "(a|b)(c|é)",
    r"a\w+",
    r"(?-u:[0-9])a?",
];

#[test]
fn matches_are_those_of_the_same_text_in_utf8() {
    let letters = ['a', 'b', 'c', 'é', 'ÿ', '\u{400}', '\u{1F600}', '7', '\n', 'A'];
    let mut state = 1u64;
    let mut some = 0;
    for round in 0..6 {
        let text: String = (0..60)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round | 1);
                letters[(state >> 33) as usize % letters.len()]
            })
            .collect();
        for regex in REGEXES {
            let expected_here = expected(regex, &text);
            some += expected_here.len();
            assert_eq!(found(regex, &wide(&text), false), expected_here, "{regex} in {text:?}");
            // At odd offsets, too.
            let odd: Vec<(u64, u32)> =
                expected_here.iter().map(|(offset, length)| (offset + 1, *length)).collect();
            assert_eq!(found(regex, &[&[0xD8], &wide(&text)[..]].concat(), false), odd, "{regex}");
            let folded = expected(&format!("(?i){regex}"), &text);
            assert_eq!(found(regex, &wide(&text), true), folded, "(?i){regex} in {text:?}");
        }
    }
    assert!(some > 80, "{some}");
}

#[test]
fn pattern_files_take_them_and_refuse_what_is_not_text() {
    let patterns = parse_file(b"mail = re16:[a-z]+@[a-z.]+\n").unwrap();
    assert!(patterns[0].is_regex());
    let searcher = Searcher::builder().build(patterns.clone()).unwrap();
    let found = searcher.find_all(&wide("to ann@example.org, ann")).unwrap();
    assert_eq!(found.iter().map(|one| (one.offset, one.length)).collect::<Vec<_>>(), [(6, 30)]);
    let mut text = String::new();
    patterns[0].show_match(&wide("ann@example.org"), &mut text);
    assert_eq!(text, "ann@example.org");
    for (line, words) in [
        (r"re16:(?-u:\xFF)a", "line 1"),
        ("re16:a*", "can match the empty string"),
        ("re16:", "is empty"),
        ("word:re16:a*", "can match the empty string"),
    ] {
        let error = parse_file(line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{line}: {error}");
    }
}

/// Regexes with assertions about characters, each match with an ASCII character as above.
const ASSERTING: [&str; 16] = [
    r"\ba",
    r"\bab?\b",
    r"a\B",
    r"\Ba",
    r"\b\w*a\w*\b",
    r"\w+?a\b",
    "(?m)^a",
    "(?m)a$",
    "(?m)^[^\n]*a[^\n]*$",
    r"(?mR)^\w*a",
    r"(?mR)a.?$",
    r"\b{start}a|a\b{end}",
    r"\b{start-half}a\b{end-half}",
    r"(?-u:\b)a(?-u:\b)",
    r"a(?:\b|b)\W*\ba",
    r"(?:a\b.?)+",
];

const LETTERS: [char; 12] =
    ['a', 'b', 'é', 'ÿ', '\u{161}', '\u{1F600}', '\u{10400}', '7', '\n', '\r', ' ', '_'];

#[test]
fn assertions_are_about_characters() {
    let mut state = 7u64;
    let mut some = 0;
    for _ in 0..8 {
        let text: String = (0..60)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                LETTERS[(state >> 33) as usize % LETTERS.len()]
            })
            .collect();
        for regex in ASSERTING {
            let expected_here = expected(regex, &text);
            some += expected_here.len();
            assert_eq!(found(regex, &wide(&text), false), expected_here, "{regex} in {text:?}");
            let folded = expected(&format!("(?i){regex}"), &text);
            assert_eq!(found(regex, &wide(&text), true), folded, "(?i){regex} in {text:?}");
        }
    }
    assert!(some > 150, "{some}");
}

#[test]
fn a_gated_regex_with_assertions_finds_the_same() {
    let text =
        format!("{}pass Password pass\u{161} pass\npass {}", "x".repeat(5000), "é ".repeat(5000));
    for regex in [r"\bpass\b", r"(?m)^pass", r"(?m)pass$", r"\bPass\w+", r"[a-z]+ \bpass\b"] {
        assert_eq!(found(regex, &wide(&text), false), expected(regex, &text), "{regex}");
    }
}

#[test]
fn a_match_with_assertions_that_is_too_long_is_an_error() {
    let pattern = Pattern::regex_utf16(r"(?s)\bstart.*\bend\b").unwrap();
    let options = Options { regex_length_bytes_max: 64, ..Options::default() };
    let searcher = Searcher::builder().options(options).build(vec![pattern]).unwrap();
    let text = |middle: &str| wide(&format!("a start {middle} end"));
    let found = searcher.find_all(&text("in the")).unwrap();
    assert_eq!(found.iter().map(|one| (one.offset, one.length)).collect::<Vec<_>>(), [(4, 32)]);
    let too_long = searcher.find_all(&text(&"long ".repeat(20))).unwrap_err();
    assert_eq!((too_long.pattern, too_long.offset), (0, 4));
    // Nothing ends at a word here.
    assert!(searcher.find_all(&text(&"long ".repeat(20))[..200]).unwrap().is_empty());
    let bent = wide(&format!("a start {} bend ends", "long ".repeat(20)));
    assert!(searcher.find_all(&bent).unwrap().is_empty());
}

fn assertion() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "",
            "",
            r"\b",
            r"\B",
            "(?m:^)",
            "(?m:$)",
            "(?mR:^)",
            "(?mR:$)",
            r"\b{start}",
            r"\b{end}",
            r"\b{start-half}",
            r"\b{end-half}",
            r"(?-u:\b)",
        ][..],
    )
}

fn atom() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "a",
            "b+",
            r"\w",
            "[^a]*",
            "é?",
            r"\s*?",
            "(?s:.)",
            "(?:a|_b)",
            "\u{10400}?",
            "(?:7|\n)*",
        ][..],
    )
}

proptest! {
    #[test]
    fn drawn_assertions_hold_as_in_utf8(
        parts in prop::collection::vec((assertion(), atom()), 0..4),
        around in (assertion(), assertion(), assertion()),
        letters in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..50),
    ) {
        let mut regex = format!("{}a{}", around.0, around.1);
        parts.iter().for_each(|(assertion, atom)| {
            regex.push_str(assertion);
            regex.push_str(atom);
        });
        regex.push_str(around.2);
        let text: String = letters.into_iter().collect();
        prop_assert_eq!(found(&regex, &wide(&text), false), expected(&regex, &text), "{}", regex);
    }
}

/// The first match at each place that is a whole word by its neighbours alone: every way to match is
/// tried in the order of preference, as spelled out by the regexes `at` one start and of one end.
fn whole_words(regex: &str, text: &str) -> Vec<(u64, u32)> {
    let is_of_word =
        |one: Option<char>| one.is_some_and(|one| one.is_ascii_alphanumeric() || one == '_');
    let units = |text: &str| 2 * text.encode_utf16().count();
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut found = Vec::new();
    let mut from = 0;
    for &start in &places {
        if start < from || is_of_word(text[..start].chars().next_back()) {
            continue;
        }
        // The ends of words, each of which is an end for the regex if it matches all up to it.
        let ends =
            places.iter().filter(|&&end| end > start && !is_of_word(text[end..].chars().next()));
        let ends: Vec<usize> = ends.copied().collect();
        let all = Regex::new(&format!(r"(?s)\A(?:{regex})\z")).unwrap();
        let fits = ends.into_iter().filter(|&end| all.is_match(&text[start..end]));
        // The regexes of this test are greedy, so that the longest match is preferred.
        if let Some(end) = fits.max() {
            found.push((units(&text[..start]) as u64, units(&text[start..end]) as u32));
            from = end;
        }
    }
    found
}

const GREEDY: [&str; 8] = [
    "ab*",
    "[a-z]+",
    "(?:[^ ]* )?a[^b]*b?",
    "é?a+",
    "a\u{1F600}?b{0,2}",
    "7?[ab_]+7?",
    "[ab]{1,3}",
    "a.*",
];

#[test]
fn whole_words_are_the_same_as_in_other_encodings() {
    for (text, offsets) in [
        ("pass passed compass pass_ (pass) épass", &[0u64, 27, 34][..]),
        ("\u{161}pass \u{1F600}pass\u{10400}", &[1, 8][..]),
    ] {
        let big = parse_file(b"word:re16be:pass").unwrap().remove(0);
        let pattern = parse_file(b"word:re16:pass").unwrap().remove(0);
        assert_eq!(
            found_by(big, &swapped(&wide(text)), false),
            found_by(pattern.clone(), &wide(text), false)
        );
        let found: Vec<u64> =
            found_by(pattern, &wide(text), false).iter().map(|(offset, _)| offset / 2).collect();
        assert_eq!(found, offsets, "{text}");
        let literal = Searcher::builder().build(parse_file(b"word:utf16:pass").unwrap()).unwrap();
        let found = literal.find_all(&wide(text)).unwrap();
        assert_eq!(found.iter().map(|one| one.offset / 2).collect::<Vec<_>>(), offsets, "{text}");
    }
}

proptest! {
    #[test]
    fn whole_words_are_those_between_other_characters(
        regex in prop::sample::select(&GREEDY[..]),
        letters in prop::collection::vec(prop::sample::select(&LETTERS[..]), 0..60),
    ) {
        let text: String = letters.into_iter().filter(|one| !"\n\r".contains(*one)).collect();
        let expected_here = whole_words(regex, &text);
        let pattern = || Pattern::regex_utf16(regex).unwrap().word().unwrap();
        prop_assert_eq!(found_by(pattern(), &wide(&text), false), expected_here.clone(), "{}", regex);
        // At odd offsets, too, and as by the library for the regex with its assertions.
        let odd: Vec<(u64, u32)> =
            expected_here.iter().map(|(offset, length)| (offset + 1, *length)).collect();
        let shifted = [&[0xD8], &wide(&text)[..]].concat();
        prop_assert_eq!(found_by(pattern(), &shifted, false), odd, "{}", regex);
        let big = Pattern::regex_utf16be(regex).unwrap().word().unwrap();
        prop_assert_eq!(found_by(big, &swapped(&wide(&text)), false), expected_here.clone());
        let asserting = format!(r"(?-u:\b{{start-half}})(?:{regex})(?-u:\b{{end-half}})");
        prop_assert_eq!(expected(&asserting, &text), expected_here);
    }
}
