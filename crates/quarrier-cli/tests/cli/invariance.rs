//! Findings do not depend on engine, access, workers, buffers or their size.

use crate::harness::{Lab, Row, noise, places};

/// Noise with words at the borders of chunks and pages.
fn bytes() -> Vec<u8> {
    let mut bytes = noise(150_000, 11);
    for border in [0, 64, 4096, 5000, 8192, 65_536, 131_072, 149_990] {
        for shift in [0i64, 1, 5, 9] {
            let at = (border - shift).max(0) as usize;
            bytes[at..at + 10].copy_from_slice(b"<Needle42>");
        }
    }
    bytes[70_000..90_000].fill(0);
    bytes[100_000..100_300].fill(b'a');
    bytes
}

const PATTERNS: &[&str] = &[
    "-e",
    "<Needle42>",
    "-e",
    "Needle",
    "-e",
    "4",
    "-x",
    "3C 4E ?? 65",
    "-x",
    "?0 00 41",
    "-x",
    "00 00 00 00 00 00 00 7?",
    "-E",
    "N[a-z]+[0-9]{1,3}",
    "-E",
    "a{2,7}",
    "-e",
    "aaaaaaaaaaaa",
];

/// The engines that this machine has and that support any set of patterns.
fn engines() -> Vec<String> {
    let listed = Lab::new().search(["--list-engines"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let available = listed.lines().into_iter().filter_map(|line| line.strip_suffix(" available"));
    let names: Vec<String> = available.map(|name| name.trim().to_string()).collect();
    for name in ["auto", "gram", "naive", "memmem"] {
        assert!(names.iter().any(|listed| listed == name), "no {name} in {names:?}");
    }
    names.into_iter().filter(|name| name != "memmem").collect()
}

/// Runs with each of `options` and compares with the run without any.
#[track_caller]
fn check(options: impl IntoIterator<Item = String>) {
    let bytes = bytes();
    let lab = Lab::with(&bytes);
    let find = |options: &str| -> Vec<Row> {
        lab.find(PATTERNS.iter().copied().chain(options.split_whitespace()).chain(["f"]))
    };
    let expected = find("");
    for literal in ["<Needle42>", "Needle", "4", "aaaaaaaaaaaa"] {
        let rows = expected.iter().filter(|row| row.pattern == literal);
        assert_eq!(
            rows.map(|row| row.offset).collect::<Vec<_>>(),
            places(&bytes, literal.as_bytes())
        );
    }
    for options in options {
        let rows = find(&options);
        let differs = rows.iter().zip(&expected).find(|(row, expected)| row != expected);
        assert!(rows == expected, "{options}: {} {} {differs:?}", rows.len(), expected.len());
    }
}

#[test]
fn every_engine_finds_the_same_with_every_access() {
    let accesses = ["window", "read", "queue", "uring"];
    check(engines().iter().flat_map(|engine| {
        accesses.map(|access| format!("--engine {engine} --access {access} --buffer-size 4096"))
    }));
}

#[test]
fn every_engine_finds_the_same_in_buffers_of_any_size() {
    check(engines().iter().flat_map(|engine| {
        ["500", "5000", "64K", "1M"].map(|size| format!("--engine {engine} --buffer-size {size}"))
    }));
}

#[test]
fn every_access_finds_the_same_in_buffers_of_any_size() {
    check(["window", "read", "queue", "uring"].into_iter().flat_map(|access| {
        ["777", "4095", "4097", "16K", "100000", "8M"]
            .map(|size| format!("--access {access} --buffer-size {size}"))
    }));
}

#[test]
fn any_number_of_workers_finds_the_same() {
    check((1..=8).map(|workers| format!("--workers {workers} --buffer-size 3000")));
    check(["window", "read", "queue", "uring"].map(|a| format!("--workers 33 --access {a}")));
}

#[test]
fn any_number_of_buffers_and_readers_finds_the_same() {
    check(["window", "read", "queue", "uring"].into_iter().flat_map(|access| {
        [1, 2, 300].map(|buffers| {
            format!("--access {access} --buffers {buffers} --workers 3 --buffer-size 10000")
        })
    }));
    check([1, 3, 8].map(|readers| format!("--readers {readers} --buffer-size 5000")));
}

#[test]
fn buffers_smaller_than_a_pattern_find_the_same() {
    let bytes = &bytes()[67_000..74_000];
    let lab = Lab::with(bytes);
    let patterns = ["-e", "Needle42>", "-x", "?? 00 00 00", "-E", "[a-z]{3,}[0-9]"];
    let expected = lab.find(patterns.iter().chain(&["f"]));
    assert!(expected.len() > 3000);
    for size in ["1", "7", "64", "65"] {
        for access in ["window", "read", "queue", "uring"] {
            let sized = ["--buffer-size", size, "--access", access, "f"];
            let found = lab.find(patterns.iter().chain(&sized));
            assert!(found == expected, "{size} {access}");
        }
    }
}

#[test]
fn memmem_finds_a_literal_as_the_others_do() {
    let bytes = bytes();
    let lab = Lab::with(&bytes);
    for literal in ["Needle", "aaaa", "4"] {
        let expected = places(&bytes, literal.as_bytes());
        for size in ["100", "4096", "auto"] {
            let args = [literal, "f", "--engine", "memmem", "--buffer-size", size];
            assert_eq!(lab.offsets(args), expected, "{literal} {size}");
        }
    }
}

#[test]
fn letters_without_case_and_utf16_do_not_depend_on_the_engine() {
    let text = "Grüße NEEDLE needle";
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let lab = Lab::with([noise(20_000, 2).as_slice(), &wide, text.as_bytes(), &wide].concat());
    let patterns = ["-i", "--utf16", "-e", "needle", "-e", "GRüße", "-e", "e n", "f"];
    let expected = lab.find(patterns);
    assert_eq!(expected.len(), 15);
    for engine in engines() {
        for size in ["50", "4096"] {
            let sized = ["--engine", &engine, "--buffer-size", size];
            assert_eq!(lab.find(patterns.iter().chain(&sized)), expected, "{engine} {size}");
        }
    }
}
