//! Files that another process changes, truncates or appends to while a statement reads them.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::harness::{Folder, text};

const LINE: &str = "{\"id\":1000001,\"text\":\"caf\u{e9} cr\u{e8}me \u{1F980}\",\"qty\":7}\n";
const LINES: usize = 30_000;

/// Runs a statement several times while `change` modifies the file; it gets the number of the
/// round.
fn check(change: impl Fn(&std::fs::File, u64) + Sync, may_shrink: bool) {
    let folder = Folder::new();
    let path = folder.file("x.ndjson", &LINE.repeat(LINES));
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rounds = 0..;
            while !is_over.load(Ordering::Relaxed) {
                change(&file, rounds.next().unwrap());
            }
        });
        for _ in 0..4 {
            let sql = "SELECT text, qty FROM 'x.ndjson' WHERE qty = 7 AND text LIKE 'caf%'";
            let output = std::panic::catch_unwind(|| folder.run(&[sql, "--format", "json"]));
            is_over.store(output.is_err(), Ordering::Relaxed);
            let output = output.unwrap();
            let is_right = match output.status.code() {
                Some(0) => true,
                Some(2) => may_shrink && text(&output.stderr).contains("shrank"),
                _ => false,
            };
            let said = String::from_utf8(output.stdout);
            let are_rows = said.is_ok_and(|said| {
                said.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
            });
            is_over.store(!is_right || !are_rows, Ordering::Relaxed);
            assert!(is_right && are_rows, "{:?} {}", output.status, text(&output.stderr));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn changed_files_give_valid_rows() {
    let at = LINE.find('\u{e9}').unwrap() as u64 + 1;
    check(
        |file, round| {
            let byte = if round % 2 == 0 { 0xFF } else { LINE.as_bytes()[at as usize] };
            let line = 2 * (round / 2 % (LINES as u64 / 2));
            file.write_all_at(&[byte], line * LINE.len() as u64 + at).unwrap();
        },
        false,
    );
}

#[test]
fn truncated_files_are_errors_or_give_valid_rows() {
    let all = LINE.repeat(LINES).into_bytes();
    check(
        |file, round| {
            let cut = all.len() / 4 + round as usize * 7_919 % (all.len() / 2);
            file.set_len(cut as u64).unwrap();
            file.write_all_at(&all[cut..], cut as u64).unwrap();
        },
        true,
    );
}

#[test]
fn growing_files_give_valid_rows() {
    check(
        |file, round| {
            let at = (LINES as u64 + round.min(100_000)) * LINE.len() as u64;
            let (first, second) = LINE.as_bytes().split_at(round as usize % LINE.len());
            file.write_all_at(first, at).unwrap();
            file.write_all_at(second, at + first.len() as u64).unwrap();
        },
        false,
    );
}
