//! A set of regexes has the same findings as each regex alone, searched by the regex library.

use proptest::prelude::*;
use quarrier_search::{Options, Pattern, Searcher};

use super::engines::noise;
use super::regexes::check;

/// The parts from which regexes are composed: literals, prefixes of any length, alternatives,
/// classes, edges.
const ATOMS: [&str; 34] = [
    "key",
    "token",
    "id",
    "=",
    ":",
    " ",
    r"\b",
    "[0-9]{2,4}",
    "[a-f0-9]{6}",
    "[a-z]{1,9}?",
    r"[\w.-]{0,5}?",
    r"\s{0,3}",
    "(?:ab|abc|b)",
    "(?:key|tok)",
    "x?",
    "(?:ke?y){1,2}",
    "[^=]{1,4}",
    ".{0,6}",
    "(?i:KEY)",
    r"\d\d:\d\d",
    "$",
    "(?m:^)",
    ".*?",
    "[ab]{3,}",
    r"\x00",
    "(?u:é|è)",
    "(?u:[α-ω])",
    "(?:(?:a|b)c?){2}",
    r"\B",
    "(?:token|.)",
    "(?:12|id|=){3}",
    r"(?:\d{1,3}\.){2}",
    "(?i:(?:key|id)_?)",
    r"[0-9a-f]{32}\b",
];

/// The parts from which haystacks are composed.
const PIECES: [&str; 34] = [
    "key",
    "KEY",
    "token",
    "tok",
    "id",
    "=",
    ":",
    " ",
    "\n",
    "ab",
    "abc",
    "b",
    "x",
    "12",
    "2026",
    "a1b2c3",
    "deadbeef0",
    "12:34",
    "zz.y-",
    "\0",
    "é",
    "α",
    "keyy",
    "kkey",
    "Key_",
    "1.22.",
    "ac",
    "kyke",
    "id=12",
    ".",
    "0123456789abcdef0123456789abcdef",
    "toke",
    "aaaa",
    "  ",
];

fn regex() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&ATOMS[..]), 1..7).prop_map(|atoms| atoms.concat())
}

/// Whether a set accepts this regex: it must not match the empty string.
fn is_allowed(regex: &str) -> bool {
    Searcher::builder().build(vec![Pattern::regex(regex).unwrap()]).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_sets_find_what_each_regex_finds_alone(
        regexes in prop::collection::vec(regex(), 1..9),
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..160),
        buffer_bytes in 1usize..300,
        workers in 1usize..4,
    ) {
        let regexes: Vec<&str> = regexes.iter().map(String::as_str).filter(|r| is_allowed(r)).collect();
        prop_assume!(!regexes.is_empty());
        check(&regexes, pieces.concat().as_bytes(), buffer_bytes, workers);
    }
}

/// Typical rules of scanners for secrets, indicators and logs.
const RULES: [&str; 24] = [
    r"\b(?:AKQA|ASQA|AGQA)[A-Z2-7]{16}\b",
    r"(?i)[\w.-]{0,40}?(?:key|passwd|secret|token)[\w .-]{0,20}[ \t]{0,3}(?:=|:=|=>|:)[ \t]{0,3}'([0-9a-z_.=-]{16,100})'",
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\s\S]{32,2000}?-----END",
    r"\bey[A-Za-z0-9_-]{17,400}\.ey[A-Za-z0-9/_-]{17,400}\.[A-Za-z0-9/_-]{10,400}",
    r"[a-z][a-z0-9+.-]{1,20}://[^\s/@:]{3,40}:[^\s/@:]{3,40}@[^\s/]{1,100}",
    r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
    r"\b(?:\d{1,3}\.){3}\d{1,3}:\d{2,5}\b",
    r"\b[0-9a-f]{32}\b",
    r"[0-9a-f]{40}",
    r"\b[0-9A-Fa-f]{64}\b",
    r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,63}\.[A-Za-z]{2,10}\b",
    r"\b(?:bc1|[13])[a-km-zA-HJ-NP-Z1-9]{25,39}\b",
    r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b",
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    r"(?i)\b[a-z]:\\(?:[^\\/:*?\x22<>|\r\n]{1,60}\\){1,6}[^\\/:*?\x22<>|\r\n]{1,60}\.(?:exe|dll|scr)\b",
    r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})",
    r"(?m)^(?:Jan|Feb|Mar|Dec) [ \d]\d \d{2}:\d{2}:\d{2} [\w.-]{1,64} [\w/-]{1,40}\[\d{1,7}\]:",
    r"(?i)\b(?:error|fatal|panic)\b[^\n]{0,80}?\b(?:timeout|refused|denied)\b",
    r"\w+\s+=\s+\w+",
    r"key.*refused",
    r#""[^"\n]*""#,
    r"\S+@\S+",
    r"[\s\S]{3}password",
    r"\d+",
];

const LINES: [&str; 12] = [
    "the author has a key to the secretary's keyboard, and a token = 'abc'\n",
    "api_key = 'a1b2c3d4e5f60718293a4b5c' https://name:password@example.net/1\n",
    "AKQAABCDEFGHIJKLMNOP eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3j\n",
    "10.0.3.17:8080 999.1.1.1.7 0123456789abcdef0123456789abcdef\n",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709da39a3ee5e6b4b0d3255bfef95601890afd80709\n",
    "Jan  7 04:15:59 host-1 sshd[4711]: fatal: connection REFUSED\n",
    "2026-01-07T04:15:59.120Z Error: timeout \"x\" 00:1b:44:11:3A:b7\n",
    "C:\\Windows\\Temp\\evil.exe 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2 who@example.org\n",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n-----END\n",
    "123e4567-e89b-12d3-a456-426614174000\u{0}\u{1}\u{2}monkey  =  capital\n",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n",
    "nothing of interest in this line, which is here for its length alone\n",
];

/// Across the blocks of filters, and the seams of chunks.
#[test]
fn rules_find_what_each_finds_alone_across_blocks_and_seams() {
    let mut draws = noise(21);
    let mut text = Vec::new();
    while text.len() < 300_000 {
        match draws.next() {
            Some(draw) if draw < 0xF0 => {
                let line = LINES[usize::from(draw) % LINES.len()].as_bytes();
                // Now and then, truncate it.
                let kept = if draw % 7 == 0 { line.len() / 2 } else { line.len() };
                text.extend_from_slice(&line[..kept]);
            }
            _ => text.extend(draws.by_ref().take(100)),
        }
    }
    check(&RULES, &text, 70_000, 2);
    check(&RULES, &text[..70_000], 3_001, 3);
}

/// Runs everywhere without a match, until the gate gives up; then data in which it helps again.
#[test]
fn a_useless_gate_gives_up_and_comes_back() {
    let mut text = b"key".repeat(60_000);
    text.extend(b"nothing here. ".repeat(100_000));
    for at in [3_000, 90_001, 170_000, 400_000, 1_400_000] {
        text[at..at + 5].copy_from_slice(b"keya!");
    }
    let regexes = ["key[a-z]{0,900}!", "[a-z]{0,300}key[^!]{0,700}!", "(?:key)+a"];
    check(&regexes, &text, 1 << 20, 2);
}

#[test]
fn every_regex_of_a_set_reports_its_gate() {
    let regexes = ["(?:secret|passwd)=[0-9a-f]{16}", "[a-z ]{3}"];
    let patterns = regexes.iter().map(|regex| Pattern::regex(regex).unwrap()).collect();
    let searcher = Searcher::builder().build(patterns).unwrap();
    let gates = searcher.regex_gates();
    let of = |pattern: u32| gates.iter().find(|gate| gate.pattern == pattern).unwrap();
    assert!(of(0).runs.as_deref().is_some_and(|runs| runs.contains("secret=")), "{gates:?}");
    assert_eq!(of(1).runs, None);
}

#[test]
fn regexes_that_take_too_much_memory_are_refused() {
    let options = Options { regex_memory_bytes_max: 1 << 20, ..Options::default() };
    let patterns = (0..200).map(|i| Pattern::regex(&format!("a{i}[a-z]{{1,300}}b")).unwrap());
    let built = Searcher::builder().options(options).build(patterns.collect());
    let message = built.err().unwrap().to_string();
    assert!(message.contains("--regex-memory"), "{message}");
}
