//! Unreadable sectors: exit code 3, each range listed, everything around them searched.
//!
//! No real disk fails on request, so `strace` makes reads of the file fail like one.

use std::ffi::OsStr;

use crate::harness::{Lab, Ran, run, skip, works};

const LENGTH: usize = 300_000;
/// Chunks of 64 KiB: the fifth read of one begins here.
const BAD: u64 = 4 * 65_536;
/// The reads of the fifth chunk and four of its sectors, if the thread that reads them also opened the
/// file: two reads come before, of its beginning and its end.
const BY_OPENER: &str = "7..11";
/// The same reads, if another thread makes them.
const BY_READER: &str = "5..9";

/// A lab with `<needle>` before, in and after the failing sectors.
fn lab() -> Option<Lab> {
    if !works("strace", &["-qq", "-o", "/dev/null", "true"].map(OsStr::new)) {
        skip("there is no strace, or it may not trace");
        return None;
    }
    let mut bytes = vec![b'-'; LENGTH];
    for at in [100, BAD as usize + 512, BAD as usize + 2048, 280_000] {
        bytes[at..at + 8].copy_from_slice(b"<needle>");
    }
    Some(Lab::with(bytes))
}

/// Runs a search in which the reads of `f` with these numbers fail, counted for each thread.
fn search(lab: &Lab, failing: &str, args: &[&str]) -> Ran {
    let inject = format!("inject=pread64:error=EIO:when={failing}");
    let path = lab.path("f").canonicalize().unwrap();
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64", "-e", &inject, "-P"]);
    command.arg(path).arg(env!("CARGO_BIN_EXE_quarrier")).args(["search", "--workers", "1"]);
    command.args(["--buffer-size", "64K", "--engine", "gram"]).args(args);
    command.current_dir(lab.path(""));
    run(command, b"")
}

#[test]
fn bad_sectors_are_listed_and_everything_around_them_is_searched() {
    let Some(lab) = lab() else { return };
    // The fifth read fails, then those of four of its sectors.
    let range = format!("f: bytes {BAD}..{} could not be read", BAD + 4 * 512);
    for (failing, access) in [
        (BY_OPENER, &["--access", "read"][..]),
        (BY_READER, &["--access", "queue", "--readers", "1"]),
    ] {
        let ran = search(&lab, failing, &[&["<needle>", "f"][..], access].concat());
        let expected: String = [100, BAD + 2048, 280_000]
            .map(|offset| format!("f:{offset}: <needle>: <needle>\n"))
            .concat();
        assert_eq!(ran.says(3, &[&range]).text(), expected);
    }
}

#[test]
fn bad_sectors_do_not_count_as_zeros() {
    let Some(lab) = lab() else { return };
    let ran = search(&lab, BY_OPENER, &["-x", "00", "f", "--access", "read"]);
    assert_eq!(ran.says(3, &["could not be read"]).text(), "", "3 also where nothing was found");
    let ran = search(&lab, BY_OPENER, &["-E", r"\x00{3}", "f", "--access", "read"]);
    assert_eq!(ran.says(3, &["could not be read"]).text(), "");
}

#[test]
fn a_source_that_fails_as_a_whole_is_listed_in_one_range() {
    let Some(lab) = lab() else { return };
    let ran = search(&lab, "1+", &["<needle>", "f", "-c", "--access", "read"]);
    ran.says(3, &[&format!("f: bytes 0..{LENGTH} could not be read")]);
    assert_eq!(ran.text().trim(), "0  <needle>");
}

#[test]
fn bad_sectors_stand_in_the_report_and_do_not_hide_a_failure() {
    let Some(lab) = lab() else { return };
    let args = ["<needle>", "f", "missing", "--access", "read", "--report", "report.html"];
    let ran = search(&lab, BY_OPENER, &args);
    assert_eq!((ran.code, ran.lines().len()), (Some(2), 3), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 2);
    let page = std::fs::read_to_string(lab.path("report.html")).unwrap();
    assert!(page.contains("2 KiB unreadable"));
}
