//! Regexes over text in UTF-16LE, against the regex library over the same text in UTF-8.

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

/// Findings of one regex, after checking that chunks make no difference.
fn found(regex: &str, bytes: &[u8], ignore_case: bool) -> Vec<(u64, u32)> {
    let options = Options { ignore_case, regex_length_bytes_max: 256, ..Options::default() };
    let pattern = Pattern::regex_utf16(regex).unwrap();
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
fn pattern_files_take_them_and_refuse_unsupported_assertions() {
    let patterns = parse_file(b"mail = re16:[a-z]+@[a-z.]+\n").unwrap();
    assert!(patterns[0].is_regex());
    let searcher = Searcher::builder().build(patterns.clone()).unwrap();
    let found = searcher.find_all(&wide("to ann@example.org, ann")).unwrap();
    assert_eq!(found.iter().map(|one| (one.offset, one.length)).collect::<Vec<_>>(), [(6, 30)]);
    let mut text = String::new();
    patterns[0].show_match(&wide("ann@example.org"), &mut text);
    assert_eq!(text, "ann@example.org");
    for (line, words) in [
        (r"re16:\bword", r"has \b"),
        ("re16:(?m)^a", "^ and $ of lines"),
        (r"re16:(?-u:\xFF)a", "line 1"),
        ("re16:a*", "can match the empty string"),
        ("re16:", "is empty"),
        ("word:re16:a", "has no words"),
    ] {
        let error = parse_file(line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{line}: {error}");
    }
}
