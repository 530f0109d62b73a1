//! Options that change the meaning of a literal.

use quarrier_search::{Options, Pattern, parse_file};

use super::oracle::searcher_with;

fn places(patterns: Vec<Pattern>, options: Options, text: &[u8]) -> Vec<(u64, u32, u32)> {
    let found = searcher_with(patterns, options).find_all(text).unwrap();
    found.iter().map(|f| (f.offset, f.pattern, f.length)).collect()
}

#[test]
fn ignoring_case_touches_ascii_letters_only() {
    let options = Options { ignore_case: true, ..Options::default() };
    let pattern = || vec![Pattern::literal("a[1]Z").unwrap()];
    let text = b"A[1]z a{1}z a[1]Z \xC1[1]Z a[\x11]z";
    assert_eq!(places(pattern(), options, text), [(0, 0, 5), (12, 0, 5)]);
    assert_eq!(places(pattern(), Options::default(), text), [(12, 0, 5)]);
}

#[test]
fn ignoring_case_leaves_hex_patterns_alone() {
    let options = Options { ignore_case: true, ..Options::default() };
    let patterns = vec![Pattern::hex("61 62").unwrap(), Pattern::literal("ab").unwrap()];
    assert_eq!(places(patterns, options, b"AB ab"), [(0, 1, 2), (3, 0, 2), (3, 1, 2)]);
}

#[test]
fn utf16_finds_both_forms_under_one_pattern() {
    let options = Options { utf16: true, ..Options::default() };
    let patterns = vec![Pattern::literal("hé").unwrap()];
    let mut text = "hé ".as_bytes().to_vec();
    text.extend("hé".encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(places(patterns, options, &text), [(0, 0, 3), (4, 0, 4)]);
}

#[test]
fn utf16_lines_of_a_pattern_file_mean_that_form_only() {
    let patterns = parse_file(b"wide = utf16:ab").unwrap();
    assert_eq!(places(patterns, Options::default(), b"ab a\0b\0"), [(3, 0, 4)]);
}

#[test]
fn wildcards_match_any_byte_and_halves_match_half() {
    let patterns = vec![Pattern::hex("FF ?? 4?").unwrap(), Pattern::hex("?A").unwrap()];
    let text = b"\xFF\x00\x4F \x1A \xFF\xFF\x50";
    assert_eq!(places(patterns, Options::default(), text), [(0, 0, 3), (4, 1, 1)]);
}

#[test]
fn newlines_and_leading_zeros_are_bytes_like_any_other() {
    let patterns = vec![Pattern::literal("a\nb").unwrap(), Pattern::hex("00 00 61").unwrap()];
    assert_eq!(places(patterns, Options::default(), b"\0\0a\nb"), [(0, 1, 3), (2, 0, 3)]);
}

#[test]
fn an_empty_set_and_empty_patterns_are_refused() {
    assert!(quarrier_search::Searcher::builder().build(Vec::new()).is_err());
    assert!(Pattern::literal("").is_err());
    assert!(Pattern::regex("").is_err());
}

#[test]
fn hex_that_says_nothing_or_is_wrong_is_refused_with_a_reason() {
    for (text, reason) in [
        ("FF D", "odd number"),
        ("GG", "'G' at character 1"),
        ("", "is empty"),
        ("  ", "is empty"),
        ("?? ??", "wildcards only"),
    ] {
        let message = Pattern::hex(text).unwrap_err().to_string();
        assert!(message.contains(reason), "{text}: {message}");
    }
}

#[test]
fn a_stopped_set_is_not_compiled() {
    use std::sync::atomic::AtomicBool;

    use quarrier_search::{EngineName, Error, Searcher, parse_file_until};

    let (wanted, stopped) = (AtomicBool::new(false), AtomicBool::new(true));
    let lines = b"one\nhex:FF ?? 01\nre:a[bc]+d\nutf16:two\nmore than sixteen\n";
    assert_eq!(parse_file_until(lines, &stopped), Err(Error::Stopped));
    let patterns = parse_file_until(lines, &wanted).unwrap();
    for engine in EngineName::ALL.into_iter().filter(|engine| engine.is_available()) {
        let build = |stop| {
            let patterns = match engine {
                EngineName::Memmem => vec![Pattern::literal("one").unwrap()],
                _ => patterns.clone(),
            };
            Searcher::builder().engine(engine).stop(stop).build(patterns)
        };
        assert!(build(&wanted).is_ok(), "{engine:?}");
        assert!(matches!(build(&stopped), Err(Error::Stopped)), "{engine:?}");
    }
}
