//! Matches that extend over the borders of large units.

use quarrier::Search;
use quarrier_search::{Options, Pattern};

use super::lab::{Lab, planning};

/// Compares a join of existing objects with a plain search.
fn check(text: &[u8], regexes: &[&str], unit_bytes: u64, length_bytes_max: usize) {
    let lab = Lab::with(text);
    let patterns = regexes.iter().map(|regex| Pattern::regex(regex).unwrap()).collect();
    let options = Options { regex_length_bytes_max: length_bytes_max, ..Options::default() };
    let search = Search::new(patterns).options(options).planning(planning(0));
    let expected = lab.plain(&search);
    for _ in 0..2 {
        assert_eq!(lab.joined(&search, unit_bytes).0, expected, "{regexes:?}");
    }
}

/// Pseudorandom bytes, the same every time (xorshift).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b"aaabbc \n"[(state >> 32) as usize % 8]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_match_over_a_border_resynchronises_soon_later_or_never() {
    let regexes = ["aa", "[a-c]+", "a{1,4}b?", "(?s:.){3}", "(?s:.){7}"];
    check(&noise(300_000), &regexes, 40_000, 1 << 16);
    // An odd number of bytes before the border: no match of the unit alone is right.
    let text = [b"x".as_slice(), &vec![b'a'; 200_001], b"y", &[b'a'; 1000]].concat();
    check(&text, &["aa", "aaa"], 50_000, 1 << 16);
}

#[test]
fn a_match_that_proves_too_long_some_units_later_is_the_same_error() {
    let mut text = noise(120_000);
    text.iter_mut().for_each(|byte| *byte = byte.to_ascii_lowercase());
    text[30_500] = b'<';
    for end in [None, Some(31_000), Some(45_000), Some(119_000)] {
        if let Some(end) = end {
            text.fill(b'-');
            text[30_500] = b'<';
            text[end] = b'>';
        }
        for unit_bytes in [10_000, 40_000] {
            check(&text, &["<[^>]*>", "a{2}"], unit_bytes, 2_000);
        }
    }
}
