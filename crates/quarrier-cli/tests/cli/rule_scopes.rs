//! `--rules --scopes`: deleted and carved files, and members of archives.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::archives::{gif, gz, seven_zip, tar, zip};
use crate::carve_free::does;
use crate::harness::{Lab, Ran, run, skip};

const NEEDLE: &str = r#"rule needle { strings: $a = "needle" condition: $a }"#;

fn rows(ran: &Ran) -> Vec<Value> {
    ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The scope of each row, and the offset of its match.
fn scopes(ran: &Ran) -> BTreeSet<(String, Option<u64>)> {
    let scope = |row: &Value| row["scope"].as_str().unwrap().to_string();
    rows(ran).iter().map(|row| (scope(row), row["offset"].as_u64())).collect()
}

fn place_of(bytes: &[u8], wanted: &[u8]) -> u64 {
    let mut places = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(wanted));
    places.next().expect("it is there") as u64
}

#[test]
fn deleted_and_carved_files_and_members_are_scopes_if_requested() {
    let lab = Lab::with("");
    lab.put("r.yar", NEEDLE);
    lab.put_sparse("f", 16 << 20, &[]);
    let packed = b"a packed needle ".repeat(100);
    let tape = tar(&[("in/x.txt", b"a needle on a tape"), ("in/y.txt", b"nothing")]);
    std::fs::create_dir(lab.path("files")).unwrap();
    lab.put("files/gone.txt", "needle: gone");
    lab.put("files/a.txt", "needle: a");
    lab.put(
        "files/d.docx",
        zip(&[("s.txt", b"needle: stored", false), ("w/d.xml", &packed, true)]),
    );
    lab.put("files/t.tgz", gz(&tape));
    lab.put("files/u.tar", &tape);
    let mut made = does(&lab, "mkfs.vfat", &["-F", "16", "f"]);
    for name in ["gone.txt", "a.txt", "d.docx", "t.tgz", "u.tar"] {
        made = made && does(&lab, "mcopy", &["-i", "f", &format!("files/{name}"), "::"]);
    }
    if !(made && does(&lab, "mdel", &["-i", "f", "::gone.txt"])) {
        return skip("mkfs.vfat or mtools do not run");
    }
    // In free clusters.
    let mut image = std::fs::read(lab.path("f")).unwrap();
    let picture = gif(b"needle: carved");
    image[12 << 20..][..picture.len()].copy_from_slice(&picture);
    lab.put("f", &image);
    let place = |wanted: &[u8]| Some(place_of(&image, wanted));
    let found = |list: &str| {
        let words = ["--rules", "r.yar", "f", "--format", "json", "--scopes", list];
        scopes(lab.search(words).is_clean())
    };
    let row = |scope: &str, place: Option<u64>| (scope.to_string(), place);
    let deleted = found("deleted");
    assert_eq!(deleted.len(), 1, "{deleted:?}");
    for (name, offset) in &deleted {
        assert!(name.ends_with("one.txt (deleted)"), "{name}");
        assert_eq!(*offset, place(b"needle: gone"));
    }
    let carved = found("carved");
    assert!(carved.contains(&row("gif/000000c00000.gif", place(b"needle: carved"))), "{carved:?}");
    assert!(!carved.iter().any(|(_, offset)| *offset == place(b"needle: stored")), "{carved:?}");
    let members = [
        row("/d.docx!s.txt", place(b"needle: stored")),
        row("/d.docx!w/d.xml", None),
        row("/t.tgz!content!in/x.txt", None),
        row("/u.tar!in/x.txt", place(b"needle on a tape")),
    ];
    let members = BTreeSet::from(members);
    assert_eq!(found("members"), members);
    let mut all = found("source,files");
    assert!(all.contains(&row("source", place(b"needle: gone"))), "{all:?}");
    assert!(all.contains(&row("/a.txt", place(b"needle: a"))), "{all:?}");
    all.extend([deleted, carved, members].into_iter().flatten());
    assert_eq!(found("all"), all);
    let text = lab.search(["--rules", "r.yar", "f", "--scopes", "members"]);
    assert!(text.text().contains("needle $a in /d.docx!w/d.xml: needle\n"), "{}", text.text());
    let count = ["--rules", "r.yar", "f", "-c", "--format", "csv", "--scopes", "members,deleted"];
    assert_eq!(lab.search(count).is_clean().text(), "rule,count\nneedle,5\n");
}

#[test]
fn the_same_rules_hold_for_members_as_by_yara_for_the_files_in_a_folder() {
    let rules = r#"
        import "hash"
        import "math"
        rule word { strings: $a = "needle" fullword condition: $a }
        rule twice { strings: $a = { 6E 65 [1-2] 64 } condition: #a == 2 }
        rule regex { strings: $a = /need[a-z]+s\b/ nocase condition: $a in (5..1000) }
        rule digest { condition: hash.md5(0, filesize) == "d41d8cd98f00b204e9800998ecf8427e" }
        rule flat { condition: math.entropy(0, filesize) < 1.0 }
        rule absent { strings: $a = "needle" condition: not $a and filesize > 3 }
    "#;
    let members: [(&str, &[u8]); 6] = [
        ("1", b"a needle"),
        ("2", b"needles and needles"),
        ("e/3", b"NEEDLES, and more NEEDLES"),
        ("e/4", b""),
        ("5", b"nothing"),
        ("6", &[b'x'; 5000]),
    ];
    let lab = Lab::with("");
    lab.put("r.yar", rules);
    std::fs::create_dir_all(lab.path("d/e")).unwrap();
    members.iter().for_each(|(name, bytes)| lab.put(format!("d/{name}"), bytes));
    let mut command = Command::new("yara");
    command.args(["-r", "r.yar", "d"]).current_dir(lab.path("")).stdin(Stdio::null());
    if command.output().is_err() {
        return skip("yara does not run");
    }
    let ran = run(command, b"");
    assert!(ran.is_clean().code == Some(0), "{ran:?}");
    let expected: BTreeSet<String> = ran.lines().into_iter().map(str::to_string).collect();
    let stored = members.map(|(name, bytes)| (name, bytes, false));
    let packed = members.map(|(name, bytes)| (name, bytes, true));
    for archive in [zip(&stored), zip(&packed), tar(&members), seven_zip(&members)] {
        lab.put("a", archive);
        let ran = lab.search(["--rules", "r.yar", "a", "--format", "json", "--scopes", "members"]);
        let found: BTreeSet<String> = rows(ran.is_clean())
            .iter()
            .map(|row| {
                let name = row["scope"].as_str().unwrap().strip_prefix("source!").unwrap();
                format!("{} d/{name}", row["rule"].as_str().unwrap())
            })
            .collect();
        assert_eq!(found, expected);
    }
    assert!(expected.len() > 6, "{expected:?}");
}

#[test]
fn members_that_are_not_judged_are_listed_with_the_reason() {
    let lab = Lab::with("");
    lab.put("r.yar", NEEDLE);
    let mut archive = zip(&[("a", b"needle", false), ("b", &[b'x'; 3000], true)]);
    let entry = place_of(&archive, b"PK\x01\x02") as usize;
    archive[entry + 8] |= 1;
    lab.put("f", &archive);
    let members = ["--rules", "r.yar", "f", "--scopes", "members", "--format", "json"];
    lab.search(members).says(3, &["f: source!a: its rules are not evaluated: encrypted"]);
    archive[entry + 8] = 0;
    lab.put("f", &archive);
    assert_eq!(scopes(lab.search(members).is_clean()).len(), 1);
    let ran = lab.search([&members[..], &["--rules-max-size", "1K"]].concat());
    ran.says(3, &["f: source!b: its rules are not evaluated: larger than the limit"]);
    assert_eq!(rows(&ran).len(), 1);
    lab.put("f", &archive[..archive.len() - 30]);
    lab.search(members)
        .says(3, &["f: source: its rules are not evaluated: the archive has no directory"]);
}

#[test]
fn compressed_files_and_7z_are_followed() {
    let lab = Lab::with("");
    lab.put("r.yar", NEEDLE);
    let noise: Vec<u8> = (0..90_000u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    lab.put("t", tar(&[("in/x", b"a needle"), ("in/y", &noise), ("in/z", b"needles")]));
    let members = ["--rules", "r.yar", "f", "--scopes", "members", "--format", "json"];
    for (program, ending) in [("xz", "xz"), ("bzip2", "bz2"), ("zstd", "zst")] {
        if !does(&lab, program, &["-k", "-q", "t"]) {
            skip(program);
            continue;
        }
        let name = format!("t.{ending}");
        let packed = std::fs::read(lab.path(&name)).unwrap();
        let seven_zip = seven_zip(&[("a", b"needle"), (&name, &packed)]);
        lab.put("f", &seven_zip);
        let way = |rest: &str| (format!("source!{rest}"), None);
        let stored = ("source!a".to_string(), Some(place_of(&seven_zip, b"needle")));
        let (x, z) = (way(&format!("{name}!content!in/x")), way(&format!("{name}!content!in/z")));
        assert_eq!(
            scopes(lab.search(members).is_clean()),
            BTreeSet::from([stored, x.clone(), z]),
            "{program}"
        );
        // Of the damaged one, what precedes the damage.
        lab.put("f", zip(&[(&name, &packed[..packed.len() / 2], false)]));
        let ran = lab.search(members);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let line = format!("f: source!{name}!content");
        assert!(ran.stderr.contains(&line), "{ran:?}");
        assert!(ran.stderr.contains(": its rules are not evaluated: "), "{ran:?}");
        assert!(scopes(&ran).is_subset(&BTreeSet::from([x])), "{program}: {ran:?}");
    }
}

#[test]
fn members_of_7z_that_are_not_judged_are_listed_with_the_reason() {
    let lab = Lab::with("");
    lab.put("r.yar", NEEDLE);
    let members = ["--rules", "r.yar", "f", "--scopes", "members", "--format", "json"];
    let mut archive = seven_zip(&[("a", b"needle 1"), ("b", b"needle 2")]);
    archive[32] = b'N';
    lab.put("f", &archive);
    let ran = lab.search(members);
    ran.says(3, &["f: source!a: its rules are not evaluated: cannot be unpacked"]);
    assert_eq!(scopes(&ran), BTreeSet::from([("source!b".to_string(), Some(40))]));
    lab.put("f", &archive[..archive.len() - 1]);
    lab.search(members).says(
        3,
        &["f: source: its rules are not evaluated: the archive has no readable directory"],
    );
}

#[test]
fn scopes_are_named() {
    let lab = Lab::with("needle");
    lab.put("r.yar", NEEDLE);
    lab.search(["--rules", "r.yar", "f", "--scopes", "slack"])
        .refuses(&["no scope 'slack'; there are source, files, deleted, carved, members and all"]);
    lab.search(["--scopes", "files", "needle", "f"]).refuses(&["--rules"]);
    // A carved file that is the whole source is not an additional scope.
    let picture = gif(b"needle: carved");
    lab.put("f", &picture);
    let all = ["--rules", "r.yar", "f", "--scopes", "all", "--format", "json"];
    assert_eq!(
        scopes(lab.search(all).is_clean()),
        BTreeSet::from([("source".to_string(), Some(22))])
    );
    lab.put("f", [&[0; 512][..], &picture].concat());
    let expected = [("source", Some(534)), ("gif/000000000200.gif", Some(534))];
    let expected = expected.map(|(scope, offset)| (scope.to_string(), offset));
    assert_eq!(scopes(lab.search(all).is_clean()), BTreeSet::from(expected));
}
