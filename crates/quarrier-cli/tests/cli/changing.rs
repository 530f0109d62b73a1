//! A file that another process changes, truncates or appends to while it is read: the output is UTF-8,
//! in whole rows, with the right exit code, and no signal ends the run.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::{Lab, Ran, run};

const LINE: &str = "{\"id\":1000001,\"text\":\"caf\u{e9} cr\u{e8}me \u{1F980}\",\"qty\":7}\n";
const LINES: usize = 40_000;

/// The action of the other process.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    /// Bytes inside multi-byte characters change, in every other line.
    Flips,
    /// The file is truncated, and grows again.
    Cuts,
    /// Lines are appended, each in two writes.
    Grows,
}

impl Change {
    /// Acts once on the whole file, or until `is_over`.
    fn once(self, file: &File, round: u64, is_over: &AtomicBool) {
        let length = (LINE.len() * LINES) as u64;
        match self {
            Change::Flips => {
                let at = LINE.find('\u{e9}').unwrap() as u64 + 1;
                let byte =
                    if round.is_multiple_of(2) { 0xFF } else { LINE.as_bytes()[at as usize] };
                for line in (0..LINES as u64).step_by(2) {
                    file.write_all_at(&[byte], line * LINE.len() as u64 + at).unwrap();
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
            Change::Cuts => {
                let cut = length / 4 + (round * 7_919) % (length / 2);
                file.set_len(cut).unwrap();
                let rest = LINE.repeat(LINES).into_bytes();
                file.write_all_at(&rest[cut as usize..], cut).unwrap();
            }
            Change::Grows => {
                let at = length + round.min(100_000) * LINE.len() as u64;
                let (first, second) = LINE.as_bytes().split_at(round as usize % LINE.len());
                file.write_all_at(first, at).unwrap();
                file.write_all_at(second, at + first.len() as u64).unwrap();
            }
        }
    }
}

/// Runs the binary several times while the file `f` changes, and passes each answer to `judge`.
fn check(change: Change, args: &[&str], judge: impl Fn(&Ran)) {
    let lab = Lab::with(LINE.repeat(LINES));
    let file = OpenOptions::new().write(true).open(lab.path("f")).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (is_over, file) = (&is_over, &file);
        scope.spawn(move || {
            for round in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                change.once(file, round, is_over);
            }
        });
        let stops = Stops(is_over);
        for _ in 0..3 {
            let ran = run(lab.command(args), b"");
            assert_eq!(ran.signal, None, "{change:?} {args:?}: {}", ran.stderr);
            let text = std::str::from_utf8(&ran.stdout);
            assert!(text.is_ok(), "{change:?} {args:?}: {text:?}");
            judge(&ran);
        }
        drop(stops);
    });
}

/// Stops the changes, even when a check fails.
struct Stops<'f>(&'f AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks that findings came without a failure; or, if the file was truncated, that an error says so.
fn check_code(change: Change, ran: &Ran) {
    match ran.code {
        Some(0) => {}
        Some(2) if change == Change::Cuts => {
            let says = |words| ran.stderr.contains(words);
            let is_said =
                says("f: shrank while it was read") || says("f: changed while it was read");
            assert!(is_said, "{}", ran.stderr);
        }
        _ => panic!("{change:?}: {:?} {}", ran.code, ran.stderr),
    }
}

const CHANGES: [Change; 3] = [Change::Flips, Change::Cuts, Change::Grows];

/// Messages verbatim, and as rows.
#[test]
fn filter_prints_valid_messages_of_a_changing_file() {
    for change in CHANGES {
        for format in [&[][..], &["--format", "json"]] {
            let args = [&["filter", "qty = 7 AND text LIKE 'caf%'", "f"], format].concat();
            check(change, &args, |ran| {
                check_code(change, ran);
                for line in ran.lines() {
                    let message: serde_json::Value = serde_json::from_str(line).unwrap();
                    assert_eq!(message["qty"], 7, "{line}");
                }
            });
        }
    }
}

#[test]
fn filter_counts_in_a_changing_file() {
    for change in CHANGES {
        check(change, &["filter", "qty = 7 AND text LIKE 'caf%'", "f", "-c"], |ran| {
            check_code(change, ran);
        });
    }
}

#[test]
fn search_prints_whole_rows_of_a_changing_file() {
    for change in CHANGES {
        for pattern in [&["-e", "cr\u{e8}me"][..], &["-E", "caf[^ ]{1,3} cr"], &["-c", "-e", "me"]]
        {
            let format = ["--format", "json", "--context", "4", "f"];
            check(change, &[&["search"], pattern, &format].concat(), |ran| {
                check_code(change, ran);
                for line in ran.lines() {
                    assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
                }
            });
        }
    }
}
