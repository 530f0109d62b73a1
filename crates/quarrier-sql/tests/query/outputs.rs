//! Standard output that cannot be written, for every command: a full disk is an error in one line,
//! a closed pipe is success.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::harness::{Folder, text};

const FORMATS: &[&str] = &["text", "json", "csv", "arrow", "parquet"];

const SQL: &str = "SELECT a FROM 'x.ndjson'";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n{\"a\":6}\n");
    folder.file("q.sql", &format!("{SQL};\nSELECT 1;\n"));
    folder
}

/// All commands, with their standard input.
fn all() -> Vec<(Vec<&'static str>, &'static str)> {
    let mut all = vec![
        (vec!["--help"], ""),
        (vec!["--version"], ""),
        (vec!["explain", "a > 5", "x.ndjson"], ""),
        (vec!["explain", "a > 5", "x.ndjson", "--format", "json"], ""),
        (vec!["--concurrent", "q.sql", "--quiet"], ""),
        (vec!["--concurrent", "q.sql", "--quiet", "--format", "json"], ""),
    ];
    for format in FORMATS {
        all.push((vec![SQL, "--format", format], ""));
        all.push((vec!["SELECT b.a FROM 'x.ndjson' b ORDER BY a + 1", "--format", format], ""));
        all.push((vec!["--format", format], "SELECT 1 AS a;\nSELECT a FROM 'x.ndjson';\n"));
    }
    all
}

fn run(folder: &Folder, arguments: &[&str], input: &str, stdout: impl Into<Stdio>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .current_dir(folder.path(""))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_full_disk_under_standard_output_is_a_failure_in_one_line() {
    let folder = folder();
    for (arguments, input) in all() {
        let full: File = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = run(&folder, &arguments, input, full);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.contains("standard output: cannot write: No space left"), "{said}");
    }
}

#[test]
fn a_pipe_that_was_closed_before_is_success() {
    let folder = folder();
    for (arguments, input) in all() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(&folder, &arguments, input, writer);
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}
