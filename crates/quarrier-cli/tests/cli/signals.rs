//! Ctrl-C: the output is complete, and a message says where the search stopped.

use std::io::{Read, Write};
use std::process::{ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Lab, Ran, drain, send, until_it_handles_interrupts, wait};

/// Starts a search; once the first rows are out, sends `signal` and waits for the end. `feed` writes to
/// its standard input while it is read.
fn interrupted(lab: &Lab, args: &[&str], signal: &str, feed: fn(ChildStdin)) -> Ran {
    let mut command = lab.search_command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let feeder = thread::spawn(move || feed(stdin));
    let mut out = child.stdout.take().unwrap();
    let mut stdout = vec![0; 1000];
    out.read_exact(&mut stdout).unwrap();
    send(signal, &child);
    out.read_to_end(&mut stdout).unwrap();
    let stderr = drain(child.stderr.take().unwrap());
    let ran = Ran::new(wait(&mut child), stdout, &stderr);
    feeder.join().unwrap();
    ran
}

/// The byte offset in its message about the stop.
fn stopped_at(ran: &Ran, source: &str) -> u64 {
    let tail = ran.stderr.split(&format!("{source}: interrupted at byte ")).nth(1).unwrap();
    tail[..tail.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap()
}

/// Every line is a whole JSON object, and the offsets are 0, 1, 2, … up to `end`.
fn check_rows(ran: &Ran, source: &str, end: u64) {
    let text = ran.text();
    assert!(text.ends_with('\n'), "the last line is cut");
    let mut expected = 0u64;
    for line in text.lines() {
        let start = format!("{{\"source\":\"{source}\",\"offset\":{expected},\"length\":1,");
        assert!(line.starts_with(&start) && line.ends_with('}'), "{line}");
        expected += 1;
    }
    assert_eq!(expected, end, "the findings before the byte named are complete");
}

#[test]
fn ctrl_c_ends_the_search_of_a_file_with_whole_lines_and_the_place() {
    let lab = Lab::new();
    lab.put_sparse("f", 64 << 30, &[]);
    for access in ["window", "read", "queue", "uring"] {
        let sized = ["--buffer-size", "4K", "--workers", "2", "--access", access];
        let args = [&["-x", "00", "f", "--format", "json"][..], &sized].concat();
        let ran = interrupted(&lab, &args, "INT", drop);
        ran.says(130, &["f: interrupted at byte"]);
        check_rows(&ran, "f", stopped_at(&ran, "f"));
    }
}

#[test]
fn a_request_to_end_is_answered_in_the_same_way() {
    let lab = Lab::new();
    lab.put_sparse("f", 64 << 30, &[]);
    let args = ["-x", "00", "f", "--format", "json", "--buffer-size", "4K"];
    let ran = interrupted(&lab, &args, "TERM", drop);
    assert!(matches!(ran.code, Some(130 | 143)), "{:?}", ran.code);
    check_rows(&ran, "f", stopped_at(&ran, "f"));
}

/// Writes a piece at intervals, until the reader closes.
fn slowly(mut stdin: ChildStdin) {
    while stdin.write_all(&[b'a'; 10_000]).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_ends_the_search_of_a_slow_stream() {
    let args = ["a", "-", "--format", "json", "--buffer-size", "20000"];
    let ran = interrupted(&Lab::new(), &args, "INT", slowly);
    ran.says(130, &["-: interrupted at byte"]);
    check_rows(&ran, "-", stopped_at(&ran, "-"));
}

#[test]
fn ctrl_c_leaves_the_counts_up_to_there() {
    let lab = Lab::new();
    lab.put_sparse("f", 1 << 40, &[]);
    let mut command =
        lab.search_command(["-c", "-x", "00", "f", "--stats", "stats", "--buffer-size", "64K"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_handles_interrupts(&child);
    // Its own threads exist once the search has begun.
    let tasks = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&tasks).unwrap().count() < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(100));
    send("INT", &child);
    let (out, err) = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
    let ran = Ran::new(wait(&mut child), out, &err);
    ran.says(130, &["f: interrupted at byte"]);
    let end = stopped_at(&ran, "f");
    assert_eq!(ran.text().split_whitespace().collect::<Vec<_>>(), [&end.to_string(), "00"]);
    let stats = std::fs::read(lab.path("stats")).unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    assert_eq!(stats["findings"], end);
}

#[test]
fn ctrl_c_ends_everything_and_the_sources_after_are_not_begun() {
    let lab = Lab::new();
    lab.put_sparse("f", 64 << 30, &[]);
    lab.put_sparse("g", 64 << 30, &[]);
    let args = ["-x", "00", "f", "g", "--format", "json", "--buffer-size", "4K"];
    let ran = interrupted(&lab, &args, "INT", drop);
    ran.says(130, &["f: interrupted at byte"]);
    assert!(!ran.text().contains("\"g\""));
}

#[test]
fn ctrl_c_ends_the_search_of_a_stream_that_is_idle() {
    let lab = Lab::new();
    let mut command = lab.search_command(["abc", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"xxabcxx").unwrap();
    until_it_handles_interrupts(&child);
    thread::sleep(Duration::from_secs(2));
    send("INT", &child);
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(10));
    }
    let in_time = child.try_wait().unwrap().is_some();
    drop(stdin);
    let (out, err) = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
    let ran = Ran::new(wait(&mut child), out, &err);
    assert!(in_time, "it waited for standard input");
    assert_eq!(ran.says(130, &["-: interrupted at byte"]).text(), "-:2: abc: abc\n");
}
