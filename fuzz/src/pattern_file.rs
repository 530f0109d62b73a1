//! Any bytes as a pattern file: an answer or an error, never a panic.

use quarrier_search::{Encodings, Options, Pattern, Searcher, parse_file};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target =
    Target { name: "pattern_file", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"",
    b"\0\0\0\0\0\0\0\0",
    b"plain words\n# comment\n\njpeg = hex:FF D8 FF\nnum = re:[0-9]{3}\nutf16:wide\n\xFF\xFEraw\r\n",
    b"hex:?? 4? ?F\nhex:00\nhex:ff,D8:ff\n",
    b"aaaa\naaaa\naaa\naa\na\n",
    b"re:(?i)a+b{2,5}[^c]|\\bd$\nre:(?u)\\w{1,3}\nre:^\\x00\\xFF(?:x|y)*z",
    "utf16:\u{161}\u{10348}\nname/1 = utf16:K\nword:\u{44f}\n".as_bytes(),
    b"hex:FF [2-4] (D8 ~00 | ~4? [1-] 41 (42|43)) 44\nutf16be:ab\nxor:key\nbase64:secret\n",
];

const WORDS: &[&[u8]] = &[
    b"hex:",
    b"re:",
    b"utf16:",
    b"utf16be:",
    b"xor:",
    b"base64:",
    b"word:",
    b"[1-",
    b"[2]",
    b"~",
    b" = ",
    b"#",
    b"\n",
    b"\r\n",
    b"\r",
    b"??",
    b"?",
    b"4?",
    b"FF ",
    b"a = ",
    b"(?i)",
    b"(?u)",
    b"(?-u:",
    b"(?:",
    b"(",
    b")",
    b"|",
    b"*",
    b"+",
    b"+?",
    b"{2,5}",
    b"{3,}",
    b"{0}",
    b"{99}",
    b"[^",
    b"[",
    b"]",
    b"&&",
    b"--",
    b"\\b",
    b"\\B",
    b"^",
    b"$",
    b"\\A",
    b"\\z",
    b"\\xFF",
    b"\\x{10FFFF}",
    b"\\p{L}",
    b"\\w",
    b"\\D",
    b".",
    b"\xFF",
    b"\xC3\xA9",
    b"\0",
];

const PATTERNS_MAX: usize = 64;
const INPUT_BYTES_MAX: usize = 4 * 1024;

/// Parses `bytes`; builds the patterns, unless they are too many, and searches the pattern file
/// itself for them.
pub fn run(bytes: &[u8]) -> Verdict {
    let Ok(patterns) = parse_file(bytes) else { return Verdict::Skipped };
    assert!(!patterns.is_empty(), "no error and no pattern");
    if patterns.len() > PATTERNS_MAX || bytes.len() > INPUT_BYTES_MAX {
        return Verdict::Skipped;
    }
    for options in [
        Options::default(),
        Options {
            ignore_case: true,
            utf16: true,
            utf16be: true,
            encodings: Encodings::parse("cp1251,shift_jis,utf-16le").unwrap_or_default(),
            xor: patterns.len() < 4,
            base64: true,
            regex_length_bytes_max: 100,
            regex_memory_bytes_max: 16 << 20,
        },
    ] {
        search(patterns.clone(), options, bytes);
    }
    Verdict::Checked
}

fn search(patterns: Vec<Pattern>, options: Options, text: &[u8]) {
    match Searcher::builder().options(options).build(patterns) {
        Ok(searcher) => drop(searcher.find_all(text)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
