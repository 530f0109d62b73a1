//! Two thousand questions about tables of every shape, asked through every door.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use questions::door::Doors;
use questions::round::{Size, run};

/// The program, which cargo builds beside the tests.
fn quarrier() -> std::path::PathBuf {
    let tests = std::env::current_exe().unwrap();
    let quarrier = tests.parent().unwrap().parent().unwrap().join("quarrier");
    assert!(quarrier.is_file(), "build it with 'cargo build -p quarrier-cli -p quarrier-sql'");
    quarrier
}

fn ask(seeds: std::ops::Range<u64>, size: &Size) {
    let doors = Doors { quarrier: quarrier(), alone_max: 1 };
    let mut wrong = Vec::new();
    for seed in seeds {
        let folder = tempfile::tempdir().unwrap();
        for answer in run(seed, size, &doors, folder.path()).unwrap() {
            wrong.push(format!("seed {seed}, {size:?}, {answer}"));
        }
        assert!(wrong.len() < 10, "{}", wrong.join("\n"));
    }
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
