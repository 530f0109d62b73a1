//! A real image with a published answer: the keyword test of dftt.sf.net, number 2.
//!
//! The image is not part of the tree; without it, the tests are skipped.

use std::path::Path;
use std::process::Command;

use crate::harness::{Lab, NOWHERE, skip};

const ZIP: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora/dftt/2-kwsrch-fat.zip");
const IMAGE: &str = "2-kwsrch-fat/fat-img-kw.dd";
const IMAGE_BYTES: usize = 15_728_640;
const IMAGE_MD5: &str = "bac12239bd466fa6c86ceb0b0426da0a";

/// The table of the image's `index.html`: string, sector, offset in the sector.
const LITERALS: &[(&str, u64, u64)] = &[
    ("first", 271, 167),
    ("SECOND", 272, 288),
    ("SECOND", 239, 480),
    ("1cross1", 271, 508),
    ("2cross2", 273, 508),
    ("3cross3", 283, 508),
    ("1slack1", 272, 396),
    ("2slack2", 274, 508),
    ("3slack3", 277, 385),
    // The table says 500; the bytes are at 502, and the rest of the sentence elsewhere.
    ("2fragment ", 278, 502),
    ("deleted", 276, 230),
    (r"a?b\c*d$e#f[g^", 279, 160),
];

/// The regexes of the page, and the literals above that they must find (with the offset of the match
/// from the literal's start).
const REGEXES: &[(&str, &[(u64, u64)])] = &[
    ("f[[:alpha:]]rst", &[(271, 167)]),
    ("f[a-z]r[0-9]?s[[:space:]]*t", &[(271, 167)]),
    ("d[a-z]l.?t.?d", &[(276, 230)]),
    (
        "[r-t][[:space:]]?[j-m][[:space:]]?[a-c]{2,2}[[:space:]]?[j-m]",
        &[(272, 397), (274, 509), (277, 386)],
    ),
    ("[1572943][[:space:]]?fr.{2,3}ent[[:space:]]?", &[(278, 502)]),
    (r"a\??[a-c]\\*[a-c]\**", &[(279, 160)]),
    (r"[[:alpha:]]\??x?y?Q?[a-c]\\*u*[a-c]\**d\$[0-9]*e#", &[(279, 160)]),
];

/// A lab with the image as `f`.
fn image() -> Option<Lab> {
    if !Path::new(ZIP).exists() {
        skip("the image is not here");
        return None;
    }
    let script = "import sys, zipfile; \
                  sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))";
    let unzipped = [("unzip", &["-p", ZIP, IMAGE][..]), ("python3", &["-c", script, ZIP, IMAGE])]
        .into_iter()
        .filter_map(|(program, args)| Command::new(program).args(args).output().ok())
        .find(|output| output.status.success());
    let Some(unzipped) = unzipped else {
        skip("there is neither unzip nor python3");
        return None;
    };
    let lab = Lab::with(&unzipped.stdout);
    assert_eq!(unzipped.stdout.len(), IMAGE_BYTES);
    if let Ok(sum) = Command::new("md5sum").arg(lab.path("f")).output() {
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(IMAGE_MD5));
    }
    Some(lab)
}

fn offset(&(sector, within): &(u64, u64)) -> u64 {
    512 * sector + within
}

#[test]
fn every_literal_is_where_the_answer_says_and_nowhere_else() {
    let Some(lab) = image() else { return };
    let mut expected: Vec<(u64, &str)> =
        LITERALS.iter().map(|&(text, sector, within)| (512 * sector + within, text)).collect();
    expected.sort_unstable();
    let mut args: Vec<&str> = LITERALS.iter().flat_map(|&(text, ..)| ["-e", text]).collect();
    args.drain(2..4); // the table has SECOND twice
    args.extend(["-e", "1fragment1", "f"]); // only a file system joins the parts of this one
    for engine in ["auto", "gram", "naive"] {
        let rows = lab.find(args.iter().chain(&["--engine", engine]));
        let found: Vec<_> = rows.iter().map(|row| (row.offset, row.pattern.as_str())).collect();
        assert_eq!(found, expected, "{engine}");
    }
}

#[test]
fn case_is_ignored_as_the_answer_says() {
    let Some(lab) = image() else { return };
    assert_eq!(lab.offsets(["FirST", "f"]), NOWHERE);
    assert_eq!(lab.offsets(["-i", "FirST", "f"]), [offset(&(271, 167))]);
}

#[test]
fn every_regex_finds_what_the_answer_says() {
    let Some(lab) = image() else { return };
    for (regex, places) in REGEXES {
        let expected: Vec<u64> = places.iter().map(offset).collect();
        assert_eq!(lab.offsets(["-E", regex, "f"]), expected, "{regex}");
        let cut =
            ["-E", regex, "f", "--buffer-size", "64K", "--access", "read", "--range", "64K..256K"];
        assert_eq!(lab.offsets(cut), expected, "{regex}");
    }
}
