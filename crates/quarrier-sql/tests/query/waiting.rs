//! Statements that wait: a signal ends the wait, and no input takes unbounded memory.

use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Folder, text};

/// A waiting run has to end this soon after a signal, on a machine that is busy with other tests.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n");
    let path = CString::new(folder.path("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: a `CString` ends with a zero byte, and `path` outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    folder
}

fn program(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"));
    command.current_dir(folder.path("")).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Sends a signal to a waiting run.
fn interrupted(folder: &Folder, arguments: &[&str], input: &str, signal: &str) -> Output {
    let mut child = program(folder, arguments).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(1_000));
    assert!(child.try_wait().unwrap().is_none(), "{arguments:?}: it does not wait");
    let line = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    let sent = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(sent.elapsed() < ENDS_WITHIN, "{arguments:?}: it waits on");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[test]
fn a_signal_ends_every_wait_for_statements_and_tables() {
    let folder = folder();
    for (arguments, input) in [
        (&["--concurrent", "pipe"][..], ""),
        (&["SELECT * FROM 'pipe'"], ""),
        (&[], ""),
        (&[], "SELECT 1 AS a;\nSELECT "),
    ] {
        for signal in ["INT", "TERM"] {
            let output = interrupted(&folder, arguments, input, signal);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(130), "{arguments:?}: {output:?}");
            assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        }
    }
}

#[test]
fn statements_before_a_signal_are_complete() {
    let output = interrupted(&folder(), &["--format", "csv"], "SELECT 1 AS a;\nSELECT 2", "INT");
    assert_eq!(text(&output.stdout), "a\n1\n");
}

#[test]
fn statements_without_an_end_are_refused_at_their_bound() {
    let folder = folder();
    let output = program(&folder, &["--concurrent", "/dev/zero"]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said.contains("/dev/zero: more than 67108864 bytes"), "{said}");
    let mut command = program(&folder, &[]);
    command.stdin(File::open("/dev/zero").unwrap());
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said.contains("longer than 67108864 bytes"), "{said}");
}
