//! Runs that wait: for a pipe that nobody opens, for a silent one, for an endless file. A signal ends
//! each of them at once, and memory is bounded.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::gauge::report;
use crate::harness::{Lab, Ran, drain, run, send, until_it_handles_interrupts, wait};

/// Maximum time from a signal to the end of a waiting run, on a machine that is busy with other tests.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Commands that wait for `pipe`.
const WAITING: &[&[&str]] = &[
    &["search", "-f", "pipe", "f"],
    &["search", "-f", "-", "f"],
    &["search", "a", "pipe"],
    &["search", "a", "-"],
    &["filter", "--many", "pipe", "f"],
    &["filter", "a > 0", "pipe"],
    &["filter", "a > 0", "-"],
    &["explain", "--many", "pipe", "f"],
    &["explain", "a > 0", "pipe"],
    &["carve", "--signatures", "pipe", "f", "--dry-run"],
    &["gauge", "--from", "pipe"],
    &["gauge", "--from", "report.json", "--compare", "pipe"],
];

fn lab() -> Lab {
    let lab = Lab::with("{\"a\":1}\n");
    lab.put("report.json", report(50e9, "host"));
    let path = CString::new(lab.path("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: a `CString` ends with a zero byte, and `path` outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    lab
}

/// Sends a signal to a waiting run, and returns its answer.
fn interrupted(lab: &Lab, arguments: &[&str], signal: &str) -> Ran {
    let mut command = lab.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Kept open, and silent.
    let stdin = child.stdin.take().unwrap();
    until_it_handles_interrupts(&child);
    thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none(), "{arguments:?}: it does not wait");
    send(signal, &child);
    let sent = Instant::now();
    let status = wait(&mut child);
    assert!(sent.elapsed() < ENDS_WITHIN, "{arguments:?}: {:?}", sent.elapsed());
    drop(stdin);
    let (out, err) = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
    Ran::new(status, out, &err)
}

#[test]
fn a_signal_ends_every_wait_for_a_pipe_that_nobody_opens() {
    let lab = lab();
    for arguments in WAITING {
        for signal in ["INT", "TERM"] {
            interrupted(&lab, arguments, signal).says(130, &["interrupted"]);
        }
    }
}

#[test]
fn a_signal_ends_every_wait_for_a_silent_pipe() {
    let lab = lab();
    let silent: File = OpenOptions::new().read(true).write(true).open(lab.path("pipe")).unwrap();
    for arguments in WAITING {
        interrupted(&lab, arguments, "INT").says(130, &["interrupted"]);
    }
    drop(silent);
}

#[test]
fn a_signal_ends_the_compiling_of_a_huge_set() {
    let lab = lab();
    let word =
        |n: u32| format!("{:08x} {:016x}", n, u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let lines = |line: &dyn Fn(u32) -> String, count: u32| (0..count).map(line).collect::<String>();
    lab.put("literals", lines(&|n| format!("{}\n", word(n)), 1_000_000));
    lab.put("wide", lines(&|n| format!("{0}{0}{0}{0}{0}{0}{0}{0}\n", word(n)), 250_000));
    lab.put("classes", lines(&|n| format!("re:(?u)\\w{{4}}{n}\n"), 200_000));
    lab.put("simple", lines(&|n| format!("re:a{n}b*c\n"), 500_000));
    for patterns in ["literals", "wide", "classes", "simple"] {
        let arguments = ["search", "-f", patterns, "f"];
        interrupted(&lab, &arguments, "INT").says(130, &["interrupted"]);
    }
    let gram = ["search", "-f", "wide", "f", "--engine", "gram"];
    interrupted(&lab, &gram, "INT").says(130, &["interrupted"]);
}

#[test]
fn a_pipe_is_read_to_its_end_while_waiting() {
    let lab = lab();
    for (arguments, input, expected) in [
        (["search", "-f", "pipe", "f"], "\"a\"", "f:1: \"a\": \"a\"\n"),
        (["search", "-f", "f", "pipe"], "{\"a\":1}", "pipe:0: {\"a\":1}: {\"a\":1}\n"),
        (["filter", "--many", "pipe", "f"], "a = 1\n", "           1  a = 1\n"),
    ] {
        let pipe = lab.path("pipe");
        let writer = thread::spawn(move || {
            // Long after the run waits for it.
            thread::sleep(Duration::from_millis(300));
            std::fs::write(pipe, input).unwrap();
        });
        assert_eq!(run(lab.command(arguments), b"").text(), expected, "{arguments:?}");
        writer.join().unwrap();
    }
}

#[test]
fn a_file_without_an_end_is_refused_at_its_bound() {
    let lab = lab();
    for arguments in [
        &["search", "-f", "/dev/zero", "f"][..],
        &["filter", "--many", "/dev/zero", "f"],
        &["explain", "--many", "/dev/zero", "f"],
        &["carve", "--signatures", "/dev/zero", "f", "--dry-run"],
    ] {
        run(lab.command(arguments), b"").refuses(&["/dev/zero: more than 67108864 bytes"]);
    }
    run(lab.command(["gauge", "--from", "/dev/zero"]), b"").refuses(&["/dev/zero: more than"]);
}

#[test]
fn patterns_are_bounded_in_number_and_regexes_in_memory() {
    let lab = lab();
    lab.put("many", "ab\n".repeat(1_000_001));
    run(lab.command(["search", "-f", "many", "f"]), b"").refuses(&["many: ", "1000000 patterns"]);
    // Each takes some MiB.
    lab.put("large", "re:[a-z]{3000}x{4000}\n".repeat(2_000));
    run(lab.command(["search", "-f", "large", "f"]), b"").refuses(&["regexes", "MiB", "fewer"]);
}
