//! A file that shrinks while it is searched: an error or a lost race, never a signal.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::harness::{Lab, Ran, drain, wait};

const LENGTH: usize = 64 << 20;

/// A file with an `a` in every 256 bytes.
fn lab() -> Lab {
    let mut bytes = vec![b'-'; LENGTH];
    bytes.iter_mut().step_by(256).for_each(|byte| *byte = b'a');
    Lab::with(bytes)
}

/// Searches a file in small pieces, truncates it to `to` bytes when the first findings arrive, then
/// reads on. The rows of the first pieces fill the pipe, so the search cannot be finished by then.
fn check(access: &str, to: u64, pattern: &[&str]) -> Option<i32> {
    let lab = lab();
    let args =
        ["f", "--format", "csv", "--access", access, "--workers", "2", "--buffer-size", "1M"];
    let mut command = lab.search_command(pattern.iter().chain(&args));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut stdout = vec![0; 1000];
    out.read_exact(&mut stdout).unwrap();
    let file = fs::OpenOptions::new().write(true).open(lab.path("f")).unwrap();
    file.set_len(to).unwrap();
    // Still slow: the reader must continue with the bytes it has.
    thread::sleep(Duration::from_millis(50));
    out.read_to_end(&mut stdout).unwrap();
    let stderr = drain(child.stderr.take().unwrap());
    let ran = Ran::new(wait(&mut child), stdout, &stderr);
    assert_eq!(ran.signal, None, "{access}: {}", ran.stderr);
    match ran.code {
        Some(2) => {
            ran.says(2, &["f: shrank while it was read", &LENGTH.to_string()]);
        }
        Some(0 | 1 | 3) => assert!(ran.stderr.is_empty() || ran.code == Some(3), "{}", ran.stderr),
        _ => panic!("{access}: {:?} {}", ran.code, ran.stderr),
    }
    // The earlier output is valid: real findings, in order, in whole lines.
    let rows = ran.text().strip_suffix('\n').unwrap().lines().skip(1);
    for (at, row) in rows.enumerate() {
        assert!(row.starts_with(&format!("f,{},1,", 256 * at)), "{access}: {row} at row {at}");
    }
    ran.code
}

#[test]
fn a_file_truncated_under_a_window_is_reported_without_a_signal() {
    let codes = [0, 0, 4097, LENGTH as u64 / 2].map(|to| check("window", to, &["a"]));
    assert!(codes.contains(&Some(2)), "{codes:?}");
}

#[test]
fn a_file_truncated_while_it_is_read_is_reported() {
    for access in ["read", "queue", "uring"] {
        let codes = [0, 1_000_001].map(|to| check(access, to, &["a"]));
        assert!(codes.contains(&Some(2)), "{access} {codes:?}");
    }
}

#[test]
fn a_regex_on_a_file_that_shrinks_is_no_signal() {
    check("window", 0, &["-E", "a"]);
    check("read", 0, &["-E", "a"]);
}

#[test]
fn a_file_that_is_cut_and_grows_again_all_the_time_is_no_signal() {
    let lab = lab();
    let file = fs::OpenOptions::new().write(true).open(lab.path("f")).unwrap();
    for _ in 0..5 {
        let args = ["-c", "-e", "zzz", "f", "--access", "window"];
        let mut command = lab.search_command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            file.set_len(LENGTH as u64 / 3).unwrap();
            file.set_len(LENGTH as u64).unwrap();
        }
        let (out, err) = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
        let ran = Ran::new(wait(&mut child), out, &err);
        assert_eq!(ran.signal, None);
        assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
        assert!(ran.code == Some(1) || ran.stderr.contains("shrank"), "{ran:?}");
    }
}
