//! Types of patterns, and the order of their findings.

use crate::harness::{Lab, places};

#[test]
fn overlapping_occurrences_of_literals_and_hex_are_all_found() {
    let lab = Lab::with("aaaa");
    assert_eq!(lab.offsets(["aa", "f"]), [0, 1, 2]);
    assert_eq!(lab.offsets(["-x", "61 61", "f"]), [0, 1, 2]);
    assert_eq!(lab.offsets(["-x", "61 ?? 61", "f"]), [0, 1]);
}

#[test]
fn regex_matches_are_leftmost_first_and_do_not_overlap() {
    let lab = Lab::with("aaaa abab");
    assert_eq!(lab.offsets(["-E", "aa", "f"]), [0, 2]);
    let spans = |regex| -> Vec<_> {
        lab.find(["-E", regex, "f"]).iter().map(|row| (row.offset, row.length)).collect()
    };
    assert_eq!(spans("a+"), [(0, 4), (5, 1), (7, 1)]);
    assert_eq!(spans("a|ab"), [(0, 1), (1, 1), (2, 1), (3, 1), (5, 1), (7, 1)]);
    assert_eq!(spans("(ab)+?"), [(5, 2), (7, 2)]);
    assert_eq!(spans("^a"), [(0, 1)]);
    assert_eq!(spans("b$"), [(8, 1)]);
}

#[test]
fn matches_of_two_regexes_may_overlap_each_other() {
    let lab = Lab::with("abcabc");
    let rows = lab.find(["-E", "abc", "-E", "bca", "-E", "[a-c]{6}", "f"]);
    let found: Vec<_> = rows.iter().map(|row| (row.offset, row.length)).collect();
    assert_eq!(found, [(0, 3), (0, 6), (1, 3), (3, 3)]);
}

#[test]
fn a_regex_sees_bytes() {
    let lab = Lab::with(b"\xFF\xD8x\xC3\xA9\n\xFF");
    assert_eq!(lab.offsets(["-E", r"\xFF\xD8", "f"]), [0]);
    assert_eq!(lab.offsets(["-E", r"[\x80-\xFF]", "f"]), [0, 1, 3, 4, 6]);
    assert_eq!(lab.offsets(["-E", ".", "f"]), [0, 1, 2, 3, 4, 6], "but not the line feed");
    assert_eq!(lab.offsets(["-E", "(?s).", "f"]).len(), 7);
    assert_eq!(lab.offsets(["-E", "(?u)é", "f"]), [3]);
}

#[test]
fn rows_come_by_offset_and_then_in_the_order_of_the_command_line() {
    let lab = Lab::with("--abcd");
    lab.put("p", "third = ab\nfourth = re:ab?\n");
    let order = |args: &[&str]| -> Vec<_> {
        let rows = lab.find(args.iter().chain(&["f"]));
        rows.iter().map(|row| row.name.clone().unwrap_or(row.pattern.clone())).collect()
    };
    let typed = ["-E", "a.", "-x", "61 62", "-f", "p", "-e", "a"];
    assert_eq!(order(&typed), ["a.", "61 62", "third", "fourth", "a"]);
    let turned = ["-e", "a", "-f", "p", "-x", "61 62", "-E", "a."];
    assert_eq!(order(&turned), ["a", "third", "fourth", "61 62", "a."]);
    // The position of a match precedes the order of options.
    assert_eq!(order(&["-e", "d", "-E", "c", "-x", "62", "-e", "abcd"]), ["abcd", "62", "c", "d"]);
}

#[test]
fn the_same_pattern_twice_is_two_patterns() {
    let lab = Lab::with("abc");
    assert_eq!(lab.offsets(["-e", "b", "-x", "62", "-e", "b", "f"]), [1, 1, 1]);
}

#[test]
fn letters_match_in_either_case_on_request() {
    let lab = Lab::with("Abc aBC ABC @bc abc \u{c4}bc");
    assert_eq!(lab.offsets(["abc", "f"]), [16]);
    assert_eq!(lab.offsets(["-i", "abc", "f"]), [0, 4, 8, 16]);
    assert_eq!(lab.offsets(["-i", "-E", "a[b]c", "f"]), [0, 4, 8, 16]);
    assert_eq!(
        lab.offsets(["-i", "-e", "@BC", "f"]),
        [12],
        "which differs from a letter by one bit"
    );
    assert_eq!(lab.offsets(["-i", "-x", "61 62", "f"]), [16], "hex is bytes, not letters");
}

#[test]
fn every_literal_is_found_in_utf16_too_on_request() {
    let wide: Vec<u8> = "Grüße".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let lab = Lab::with(["Grüße ".as_bytes(), &wide].concat());
    let found = |args: &[&str]| -> Vec<_> {
        lab.find(args.iter().chain(&["f"])).iter().map(|row| (row.offset, row.length)).collect()
    };
    assert_eq!(found(&["Grüße"]), [(0, 7)]);
    assert_eq!(found(&["--utf16", "Grüße"]), [(0, 7), (8, 10)]);
    assert_eq!(found(&["--utf16", "-i", "gRÜSSE"]), []);
    assert_eq!(found(&["--utf16", "-i", "gRüßE"]), [(0, 7), (8, 10)]);
    assert_eq!(found(&["--utf16", "-x", "47 72"]), [(0, 2)], "hex stays as it is");
}

#[test]
fn hex_wildcards_stand_for_bytes_and_half_bytes() {
    let lab = Lab::with(b"\xFF\xD8\xE0\x10\xFF\xD9\xE1\x20");
    assert_eq!(lab.offsets(["-x", "FF D8", "f"]), [0]);
    assert_eq!(lab.offsets(["-x", "ffd8", "f"]), [0]);
    assert_eq!(lab.offsets(["-x", "FF D?", "f"]), [0, 4]);
    assert_eq!(lab.offsets(["-x", "?8", "f"]), [1]);
    assert_eq!(lab.offsets(["-x", "FF ?? E1", "f"]), [4]);
    assert_eq!(lab.offsets(["-x", "?? ?0", "f"]), [1, 2, 6]);
    assert_eq!(lab.offsets(["-x", "?? ?? ?? ?? ?? ?? ?? 20", "f"]), [0]);
}

#[test]
fn patterns_may_hold_a_line_feed_and_zeros() {
    let text = b"one\ntwo\x00\x00\x01\x00\x00\x01 three\n\n";
    let lab = Lab::with(text);
    assert_eq!(lab.offsets(["one\ntwo", "f"]), [0]);
    assert_eq!(lab.offsets(["\n", "f"]), [3, 19, 20]);
    assert_eq!(lab.offsets(["-x", "00 00 01", "f"]), places(text, b"\0\0\x01"));
    assert_eq!(lab.offsets(["-x", "00", "f"]), [7, 8, 10, 11]);
    assert_eq!(lab.offsets(["-E", r"\x00{2}\x01", "f"]), [7, 10]);
}

#[test]
fn a_pattern_may_begin_with_a_hyphen() {
    let lab = Lab::with("a -c b --max-count c");
    assert_eq!(lab.offsets(["-e", "-c", "f"]), [2, 12]);
    assert_eq!(lab.offsets(["-e", "--max-count", "f"]), [7]);
    assert_eq!(lab.offsets(["--", "-c", "f"]), [2, 12]);
}

#[test]
fn a_pattern_may_be_as_long_as_the_source_and_longer() {
    let lab = Lab::with("abc");
    assert_eq!(lab.offsets(["abc", "f"]), [0]);
    assert_eq!(lab.search(["abcd", "f"]).is_clean().code, Some(1));
    assert_eq!(lab.search(["-E", "[a-d]{4}", "f"]).is_clean().code, Some(1));
}

#[test]
fn a_pattern_file_has_every_type_with_names_and_comments() {
    let wide: Vec<u8> = "wide".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let lab = Lab::with([b"# no plain a = b \xFF\xD8\x01 1234 wide ".as_slice(), &wide].concat());
    let file = "# no\r\n\nplain\r\njpeg = hex:FF D8 0?\nyear=re:[0-9]{4}\nnum = re:[0-9]{4}\n\
                utf16:wide\nw/2 = utf16:wide\na = b\n";
    lab.put("p", file);
    let rows = lab.find(["-f", "p", "f"]);
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.offset, row.length, row.pattern.as_str(), row.name.as_deref()))
        .collect();
    let expected = [
        (5, 5, "plain", None),
        (15, 1, "b", Some("a")),
        (17, 3, "FF D8 0?", Some("jpeg")),
        (21, 4, "[0-9]{4}", Some("num")),
        (31, 8, "wide", None),
        (31, 8, "wide", Some("w/2")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_pattern_file_may_come_from_standard_input() {
    let ran = Lab::with("xxabcxx").search_input(b"abc\n", ["-f", "-", "f"]);
    assert_eq!(ran.is_clean().text(), "f:2: abc: abc\n");
}

#[test]
fn a_pattern_file_may_hold_bytes_that_are_not_utf8() {
    let lab = Lab::with(b"a\xFF\xFEb");
    lab.put("p", b"\xFF\xFE\n");
    assert_eq!(lab.offsets(["-f", "p", "f"]), [1]);
}

#[test]
fn many_patterns_are_found_as_well_as_one() {
    let words: Vec<String> = (0..5000).map(|n| format!("<{:05}>", n * 7919 % 100_000)).collect();
    let text = words.iter().step_by(3).map(String::as_str).collect::<Vec<_>>().join("..");
    let lab = Lab::with(&text);
    lab.put("p", words.join("\n"));
    let rows = lab.find(["-f", "p", "f"]);
    assert_eq!(rows.len(), words.len().div_ceil(3));
    let bytes = text.as_bytes();
    assert!(
        rows.iter().all(|row| bytes[row.offset as usize..].starts_with(row.pattern.as_bytes()))
    );
}

#[test]
fn features_report_valid_matches_only_and_so_do_count_and_lists() {
    let lab = Lab::with("card 4111 1111 1111 1111 or 4111 1111 1111 1112, ann@example.org a@b.txt");
    let rows = lab.find(["--features", "card,email", "f"]);
    let found: Vec<_> = rows.iter().map(|row| (row.name.as_deref(), row.found.as_str())).collect();
    assert_eq!(found, [(Some("card"), "4111 1111 1111 1111"), (Some("email"), "ann@example.org")]);
    let ran = lab.search(["-e", "a@b", "--features", "email", "f", "-c", "--format", "json"]);
    let counts: Vec<u64> = ran
        .is_clean()
        .lines()
        .iter()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["count"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(counts, [1, 1]);
    assert_eq!(lab.find(["--features", "all", "--max-count", "1", "f"]).len(), 1);
    lab.search(["--features", "emial", "f"]).refuses(&["no feature 'emial'", "email"]);
}
