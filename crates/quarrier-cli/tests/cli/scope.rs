//! The findings that count: range, alignment, number.

use crate::harness::{Lab, NOWHERE, noise, places};

#[test]
fn a_range_holds_findings_that_lie_wholly_in_it() {
    let lab = Lab::with("0abc4abc8abc");
    let offsets = |range| lab.offsets(["abc", "f", "--range", range]);
    assert_eq!(offsets("0..12"), [1, 5, 9]);
    assert_eq!(offsets("1..8"), [1, 5]);
    assert_eq!(offsets("2..12"), [5, 9], "one begins before it");
    assert_eq!(offsets("0..7"), [1], "one ends after it");
    assert_eq!(offsets("5..8"), [5]);
    assert_eq!(offsets("5..7"), NOWHERE);
    assert_eq!(offsets("5..5"), NOWHERE);
    assert_eq!(offsets("12..12"), NOWHERE);
}

#[test]
fn a_range_may_be_open_hexadecimal_and_in_units() {
    let mut bytes = vec![b'-'; 10_000];
    for at in [0, 1000, 1024, 4096, 8192, 9999] {
        bytes[at] = b'a';
    }
    let lab = Lab::with(&bytes);
    let offsets = |range| lab.offsets(["a", "f", "--range", range]);
    assert_eq!(offsets(".."), [0, 1000, 1024, 4096, 8192, 9999]);
    assert_eq!(offsets("0x1000.."), [4096, 8192, 9999]);
    assert_eq!(offsets("..0x400"), [0, 1000]);
    assert_eq!(offsets("1K..8K"), [1024, 4096]);
    assert_eq!(offsets("1KB..4KiB"), [1000, 1024]);
    assert_eq!(offsets("9999..1T"), [9999], "an end beyond the source is its end");
}

#[test]
fn a_range_is_searched_as_if_it_were_the_whole_source() {
    let lab = Lab::with("aaaaaaaa");
    let spans = |regex: &str| -> Vec<_> {
        let rows = lab.find(["-E", regex, "f", "--range", "1..6", "--context", "9"]);
        rows.into_iter().map(|row| (row.offset, row.length, row.before_hex)).collect()
    };
    assert_eq!(spans("a+"), [(1, 5, None)]);
    assert_eq!(spans("^a"), [(1, 1, Some(String::new()))]);
    assert_eq!(spans("a$"), [(5, 1, Some("61616161".into()))]);
}

#[test]
fn ranges_anywhere_hold_what_lies_in_them() {
    let text: Vec<u8> = noise(50_000, 7).iter().map(|byte| b"ab"[usize::from(byte & 1)]).collect();
    let lab = Lab::with(&text);
    let needle = b"abbabbab";
    for (start, end) in [(0, 50_000), (1, 49_999), (4095, 8193), (4096, 8192), (4097, 4200)] {
        let range = format!("{start}..{end}");
        let expected: Vec<u64> = places(&text[start..end], needle)
            .into_iter()
            .map(|offset| offset + start as u64)
            .collect();
        for access in ["window", "read", "queue", "uring"] {
            let args = ["abbabbab", "f", "--range", &range, "--access", access];
            let sized = [&args[..], &["--buffer-size", "1000"]].concat();
            assert_eq!(lab.offsets(args), expected, "{range} {access}");
            assert_eq!(lab.offsets(sized), expected, "{range} {access}");
        }
    }
}

#[test]
fn alignment_counts_from_the_start_of_the_source() {
    let lab = Lab::with("a".repeat(2000));
    let offsets = |args: &[&str]| lab.offsets(["-e", "a", "f"].iter().chain(args));
    assert_eq!(offsets(&["--aligned", "512"]), [0, 512, 1024, 1536]);
    assert_eq!(offsets(&["--aligned", "0x200"]), [0, 512, 1024, 1536]);
    assert_eq!(offsets(&["--aligned", "1K"]), [0, 1024]);
    assert_eq!(offsets(&["--aligned", "700"]), [0, 700, 1400]);
    assert_eq!(offsets(&["--aligned", "512", "--range", "100..1537"]), [512, 1024, 1536]);
    assert_eq!(offsets(&["--aligned", "4K"]), [0]);
    assert_eq!(offsets(&["--aligned", "1"]).len(), 2000);
}

#[test]
fn aligned_regex_matches_do_not_depend_on_the_chunk_size() {
    let lab = Lab::with("a".repeat(1000));
    // Matches begin at 0, 3, 6 …; every second of them is even.
    let expected: Vec<u64> = (0..999).step_by(6).collect();
    for size in ["64", "100", "1000", "auto"] {
        let args = ["-E", "aaa", "f", "--aligned", "2", "--buffer-size", size];
        assert_eq!(lab.offsets(args), expected, "{size}");
    }
}

#[test]
fn no_more_findings_than_asked_for_are_given() {
    let lab = Lab::with("a".repeat(30_000));
    lab.put("g", "aa");
    for (access, size) in [("window", "64"), ("read", "4096"), ("queue", "auto"), ("uring", "auto")]
    {
        let sized = ["--access", access, "--buffer-size", size];
        let offsets = |most| lab.offsets([&["a", "f", "--max-count", most][..], &sized].concat());
        assert_eq!(offsets("1"), [0]);
        assert_eq!(offsets("100"), (0..100).collect::<Vec<_>>());
        assert_eq!(offsets("30001").len(), 30_000);
    }
    let count = lab.search(["a", "f", "--max-count", "70", "-c"]);
    assert_eq!(count.is_clean().text().split_whitespace().next(), Some("70"));
}

#[test]
fn the_number_of_findings_counts_over_patterns_and_sources() {
    let lab = Lab::with("aab");
    lab.put("g", "ab");
    let found = |most| -> Vec<_> {
        let rows = lab.find(["-e", "a", "-e", "b", "f", "g", "--max-count", most]);
        rows.into_iter().map(|row| (row.source, row.offset)).collect()
    };
    let all = [("f", 0), ("f", 1), ("f", 2), ("g", 0), ("g", 1)]
        .map(|(source, offset)| (source.to_string(), offset));
    assert_eq!(found("2"), all[..2]);
    assert_eq!(found("4"), all[..4]);
    assert_eq!(found("9"), all);
}

#[test]
fn a_search_that_has_enough_ends_early() {
    let lab = Lab::new();
    // Longer than anybody can read in the minute after which a run counts as hanging.
    lab.put_sparse("f", 1 << 40, &[]);
    assert_eq!(lab.offsets(["-x", "00", "f", "--max-count", "3"]), [0, 1, 2]);
}
