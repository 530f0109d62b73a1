//! Two thousand questions about tables of every shape, asked through every door.

#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use quarrier_core::threads::team;
use questions::door::Doors;
use questions::round::{Size, run, run_grown};

/// The path of the program, which cargo builds next to the tests.
fn quarrier() -> std::path::PathBuf {
    let tests = std::env::current_exe().unwrap();
    let quarrier = tests.parent().unwrap().parent().unwrap().join("quarrier");
    assert!(quarrier.is_file(), "build it with 'cargo build -p quarrier-cli -p quarrier-sql'");
    quarrier
}

/// Runs one round per seed, on all cores: one core would take minutes longer than all other tests here.
fn ask(seeds: std::ops::Range<u64>, size: &Size) {
    let doors = Doors { quarrier: quarrier(), alone_max: 1 };
    let next = AtomicU64::new(seeds.start);
    let wrong = Mutex::new(Vec::new());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    team(0..cores, |_| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || wrong.lock().unwrap().len() >= 10 {
                return;
            }
            let folder = tempfile::tempdir().unwrap();
            for answer in run(seed, size, &doors, folder.path()).unwrap() {
                wrong.lock().unwrap().push(format!("seed {seed}, {size:?}, {answer}"));
            }
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn small_tables_have_one_answer_at_every_door() {
    ask(0..47, &Size { rows: (10, 3_000), bytes_max: 1 << 20, questions: 40 });
}

#[test]
fn tables_of_several_segments_have_one_answer_at_every_door() {
    ask(1_000..1_003, &Size { rows: (70_000, 140_000), bytes_max: 8 << 20, questions: 40 });
}

/// The answers are those of the same messages loaded at once, however they were split, and however
/// often the folder was closed or dropped and opened again, with its columns stored or not.
#[test]
fn a_kept_table_that_grew_answers_a_thousand_statements_as_all_of_its_messages() {
    let (mut wrong, mut asked, mut seed) = (Vec::new(), 0, 2_000);
    while asked < 1_000 {
        let folder = tempfile::tempdir().unwrap();
        // Some tables have several segments.
        let rows = if seed % 10 == 0 { (66_000, 90_000) } else { (10, 3_000) };
        let size = Size { rows, bytes_max: 1 << 20, questions: 40 };
        let (found, count) = run_grown(seed, &size, folder.path()).unwrap();
        wrong.extend(found.iter().map(|answer| format!("seed {seed}, {size:?}, {answer}")));
        assert!(wrong.len() < 10, "{}", wrong.join("\n"));
        (asked, seed) = (asked + count, seed + 1);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
