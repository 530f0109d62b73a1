//! Engines against the oracle, on one text.

use proptest::prelude::*;

use super::oracle::{OraclePattern, all, check, engines, searcher};

/// Bytes from a small alphabet, so that patterns occur in the text, overlap and repeat.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        4 => Just(b'a'),
        2 => Just(b'b'),
        2 => Just(0u8),
        1 => Just(0xFFu8),
        1 => Just(b'A'),
        1 => Just(0xE1u8), // 'a' with the top bit set: the packed filter cannot distinguish them
        1 => any::<u8>(),
    ]
}

pub(crate) fn meant(length: std::ops::Range<usize>) -> impl Strategy<Value = OraclePattern> {
    let mask =
        prop_oneof![12 => Just(0xFFu8), 1 => Just(0xF0u8), 1 => Just(0x0Fu8), 1 => Just(0u8)];
    prop::collection::vec((byte(), mask), length)
        .prop_filter("wildcards only", |bytes| bytes.iter().any(|&(_, m)| m != 0))
        .prop_map(|bytes| OraclePattern {
            bytes: bytes.into_iter().map(|(v, m)| (v & m, m)).collect(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn findings_equal_the_oracles(
        patterns in prop::collection::vec(meant(1..12), 1..20),
        text in prop::collection::vec(byte(), 0..700),
    ) {
        check(&patterns, &text);
    }

    #[test]
    fn long_patterns_are_compared_to_their_end(
        patterns in prop::collection::vec(meant(20..90), 1..6),
        at in prop::collection::vec(0usize..2000, 1..8),
        flip in any::<bool>(),
    ) {
        let mut text = vec![b'a'; 2100];
        for (pattern, at) in patterns.iter().zip(at) {
            for (i, (value, _)) in pattern.bytes.iter().enumerate() {
                text[at + i] = *value;
            }
            if flip {
                text[at + pattern.bytes.len() - 1] ^= 1;
            }
        }
        check(&patterns, &text);
    }

    #[test]
    fn text_of_any_length_and_alignment_is_searched_to_its_end(
        length in 0usize..200,
        skip in 0usize..64,
        pattern in prop::collection::vec(any::<u8>(), 1..9),
    ) {
        // The pattern occurs at the start, at the very end and in between, with noise around it.
        let mut text: Vec<u8> = (0..length + skip).map(|i| (i * 37) as u8).collect();
        text.extend_from_slice(&pattern);
        text.splice(skip..skip, pattern.iter().copied());
        let pattern = [OraclePattern::literal(&pattern)];
        let text = &text[skip..];
        let expected = all(&pattern, text);
        prop_assert!(expected.iter().any(|f| f.offset == 0));
        for engine in engines(&pattern) {
            prop_assert_eq!(&searcher(&pattern, engine).find_all(text).unwrap(), &expected);
        }
    }
}

/// A small generator, so that large sets need no proptest strategy.
pub(crate) fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    })
}

/// Checks many patterns, half of them planted; the oracle is a map from start to planted pattern,
/// checked against plain search for a few.
fn check_many(count: usize, make: impl Fn(usize) -> Vec<u8>, background: u8) {
    let patterns: Vec<OraclePattern> =
        (0..count).map(|i| OraclePattern::literal(&make(i))).collect();
    let mut text = vec![background; 64];
    for i in (0..count).step_by(2) {
        text.extend(make(i));
        text.extend(noise(i as u64 + 99).take(i % 23));
    }
    // A plain search for each pattern by the standard library is the oracle here.
    let mut expected = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        let bytes: Vec<u8> = pattern.bytes.iter().map(|&(v, _)| v).collect();
        for (offset, window) in text.windows(bytes.len()).enumerate() {
            if window == bytes {
                expected.push((offset as u64, index as u32));
            }
        }
        if text.len() * (index + 1) > 400_000_000 {
            break;
        }
    }
    let checked = expected.last().map_or(0, |&(_, index)| index);
    expected.sort_unstable();
    for engine in engines(&patterns).into_iter().filter(|e| e.name() != "naive") {
        let found: Vec<(u64, u32)> = searcher(&patterns, engine)
            .find_all(&text)
            .unwrap()
            .iter()
            .map(|f| (f.offset, f.pattern))
            .filter(|&(_, pattern)| pattern <= checked)
            .collect();
        assert_eq!(found, expected, "{} with {count} patterns", engine.name());
    }
}

#[test]
fn a_hundred_to_a_hundred_thousand_patterns_are_found() {
    for count in [100, 1_000, 10_000, 100_000] {
        check_many(count, |i| noise(i as u64 * 7 + 1).take(8 + i % 9).collect(), 0);
    }
}

#[test]
fn many_patterns_rich_in_zeros_are_found_among_zeros() {
    check_many(
        2_000,
        |i| {
            let mut pattern = vec![0u8; 10];
            pattern[i % 10] = (i / 10) as u8 | 1;
            pattern[(i + 3) % 10] = (i / 251) as u8;
            pattern
        },
        0,
    );
}

#[test]
fn many_patterns_with_a_common_prefix_are_distinguished() {
    check_many(3_000, |i| format!("common prefix {i:05}").into_bytes(), b' ');
}

#[test]
fn short_patterns_are_found_in_a_set_with_long_ones() {
    let mut patterns: Vec<OraclePattern> =
        (0..=255u8).map(|b| OraclePattern::literal(&[b, b ^ 1])).collect();
    patterns.push(OraclePattern::literal(b"x"));
    patterns.push(OraclePattern::literal(b"a much longer pattern than those"));
    let mut text: Vec<u8> = noise(5).take(3_000).collect();
    text.extend_from_slice(b"xx a much longer pattern than those");
    check(&patterns, &text);
}

#[test]
fn a_finding_at_every_offset_is_reported_at_every_offset() {
    check(&[OraclePattern::literal(b"aa"), OraclePattern::literal(b"aaa")], &[b'a'; 300]);
    check(&[OraclePattern::literal(&[0; 5])], &[0; 300]);
}

/// If most positions are candidates, a few short needles are compared with whole words.
#[test]
fn needles_in_data_dense_with_candidates_are_distinguished() {
    let half = |text: &str| OraclePattern {
        bytes: text.bytes().map(|b| if b == b'?' { (0, 0) } else { (b, 0xFF) }).collect(),
    };
    let needles = ["aaa", "a?a", "aaaaab", "baaaaaaa"];
    for shift in 0..3 {
        let mut text = vec![b'a'; 700];
        (0..6).for_each(|i| text[37 + shift + 101 * i] = b'b');
        text[300..333].fill(0);
        for count in 1..=needles.len() {
            let patterns: Vec<OraclePattern> = needles[..count].iter().map(|n| half(n)).collect();
            check(&patterns, &text);
            check(&patterns, &text[..64 + shift]);
        }
    }
}

#[test]
fn the_same_pattern_twice_is_found_twice() {
    check(
        &[OraclePattern::literal(b"twin"), OraclePattern::literal(b"twin")],
        b"a twin and a twin",
    );
}
