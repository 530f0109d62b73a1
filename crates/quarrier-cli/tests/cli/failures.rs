//! Failures during a run: a source among others, a full disk, a pipe that closes.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::{Lab, Ran, drain, run, skip, wait, works};

#[test]
fn a_missing_source_beside_a_good_one_leaves_the_good_one_searched() {
    let lab = Lab::with("xxabcxx");
    for sources in [["missing", "f"], ["f", "missing"]] {
        let ran = lab.search(["abc", sources[0], sources[1]]);
        assert_eq!(ran.says(2, &["missing", "No such file"]).text(), "f:2: abc: abc\n");
    }
    // Even if nothing was found, the failure counts.
    assert_eq!(lab.search(["zzz", "f", "missing"]).says(2, &["missing"]).text(), "");
}

#[test]
fn a_range_beyond_one_of_two_sources_leaves_the_other_searched() {
    let lab = Lab::with("short");
    lab.put("long", "0123456789abc");
    let ran = lab.search(["abc", "--range", "8..", "f", "long"]);
    assert_eq!(ran.says(2, &["f: ", "5 bytes"]).text(), "long:10: abc: abc\n");
}

#[test]
fn a_full_disk_for_report_or_statistics_is_reported_and_findings_are_printed() {
    let lab = Lab::with("xxabcxx");
    for (option, what) in [("--report", "report"), ("--stats", "statistics")] {
        let ran = lab.search(["abc", "f", option, "/dev/full"]);
        ran.says(2, &["/dev/full", what, "No space left"]);
        assert_eq!(ran.text(), "f:2: abc: abc\n");
    }
}

#[test]
fn a_report_in_a_missing_folder_is_refused_before_the_search() {
    let lab = Lab::with("xxabcxx");
    for option in ["--report", "--stats"] {
        let ran = lab.search(["abc", "f", option, "no/such/folder/out"]);
        ran.refuses(&["no/such/folder/out", "there is no folder no/such/folder"]);
        lab.search(["abc", "f", option, "."]).says(2, &["."]);
    }
    assert_eq!(lab.names().len(), 1);
}

/// A small file system, unmounted on drop.
pub(crate) struct FullDisk(PathBuf);

impl FullDisk {
    /// A file system with this many bytes free.
    pub(crate) fn of_free_bytes(path: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir(path).ok()?;
        let size = format!("size={bytes}");
        let options = ["-t", "tmpfs", "-o", &size, "none"].map(OsStr::new);
        if !works("mount", &[&options[..], &[path.as_os_str()]].concat()) {
            return None;
        }
        Some(FullDisk(path.to_path_buf()))
    }

    /// A file system of 16 KiB without a free byte.
    fn mount(path: &Path) -> Option<Self> {
        let disk = FullDisk::of_free_bytes(path, 16 << 10)?;
        fs::write(path.join("old"), "before").unwrap();
        let mut filler = fs::File::create(path.join("filler")).unwrap();
        while filler.write_all(&[1; 512]).is_ok() {}
        Some(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        works("umount", &[self.0.as_os_str()]);
    }
}

#[test]
fn on_a_full_disk_no_partial_file_is_left_and_the_old_one_stays() {
    let lab = Lab::with("xxabcxx");
    let Some(disk) = FullDisk::mount(&lab.path("disk")) else {
        return skip("a tmpfs cannot be mounted here");
    };
    for option in ["--report", "--stats"] {
        for name in ["disk/new", "disk/old"] {
            let ran = lab.search(["abc", "f", option, name]);
            assert_eq!(ran.says(2, &[name, "No space left"]).text(), "f:2: abc: abc\n");
        }
    }
    assert_eq!(fs::read(disk.0.join("old")).unwrap(), b"before");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 2);
}

/// Runs with standard output on `/dev/full`.
fn to_full<'a>(lab: &Lab, args: impl IntoIterator<Item = &'a str>) -> Ran {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child = lab.command(args).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = drain(child.stderr.take().unwrap());
    Ran::new(wait(&mut child), Vec::new(), &stderr)
}

#[test]
fn a_full_disk_for_rows_is_reported() {
    let words = &["standard output", "No space left"];
    let lab = Lab::with("a".repeat(100_000));
    for format in ["text", "json", "csv", "arrow"] {
        to_full(&lab, ["search", "a", "f", "--format", format]).refuses(words);
        to_full(&lab, ["search", "a", "f", "--format", format, "-c"]).refuses(words);
        // A few rows, which are written only at the end.
        to_full(&lab, ["search", "a", "f", "--format", format, "--max-count", "2"]).refuses(words);
    }
    to_full(&lab, ["search", "--list-engines"]).refuses(words);
    to_full(&lab, ["help-markdown"]).refuses(words);
}

#[test]
fn a_closed_pipe_is_success_and_ends_the_search_at_once() {
    let lab = Lab::new();
    // Longer than anybody can read in the minute after which a run counts as hanging.
    lab.put_sparse("f", 1 << 40, &[]);
    for format in ["text", "json", "csv", "arrow"] {
        let mut command = lab.search_command(["-x", "00", "f", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = BufReader::with_capacity(64, child.stdout.take().unwrap());
        first.fill_buf().unwrap();
        drop(first);
        let stderr = drain(child.stderr.take().unwrap());
        let ran = Ran::new(wait(&mut child), Vec::new(), &stderr);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{format}");
    }
}

#[test]
fn a_pipe_that_was_closed_before_is_success() {
    let lab = Lab::with("xxabcxx");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = lab.search_command(["abc", "f"]);
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = drain(child.stderr.take().unwrap());
    let ran = Ran::new(wait(&mut child), Vec::new(), &stderr);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn unreadable_standard_input_is_reported() {
    let lab = Lab::new();
    let mut command = lab.search_command(["abc", "-"]);
    command.stdin(fs::File::open(lab.path("")).unwrap());
    run(command, b"").refuses(&["-: cannot read at byte 0", "directory"]);
}

#[test]
fn a_source_is_never_overwritten_by_an_output() {
    for option in ["--report", "--stats"] {
        let lab = Lab::with("evidence");
        lab.search(["evidence", "f", option, "f"]).says(2, &["f"]);
        assert_eq!(fs::read(lab.path("f")).unwrap(), b"evidence");
    }
}
