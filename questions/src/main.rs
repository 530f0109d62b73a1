//! `cargo run -p questions -- --questions 100000 --seed 1`: asks random questions through every door.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, Command, value_parser};
use questions::door::Doors;
use questions::round::{Size, run, write};

fn main() -> ExitCode {
    match asked() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program for developers that prints its results")]
fn complain(text: &str) {
    eprintln!("questions: {text}");
}

#[expect(clippy::print_stdout, reason = "a program for developers that prints its results")]
fn say(text: &str) {
    println!("{text}");
}

fn command() -> Command {
    let number = |name: &'static str, default: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(value_parser!(u64))
    };
    Command::new("questions")
        .about(
            "Asks random questions of random tables through every door, and compares the answers",
        )
        .arg(number("questions", "10000").help("Number of questions"))
        .arg(number("of-table", "40").help("Number of questions per table"))
        .arg(
            number("seed", "1")
                .help("Seed of the first table; each further table has the next one"),
        )
        .arg(number("rows-min", "10").help("Minimum number of rows of a table"))
        .arg(number("rows-max", "300000").help("Maximum number of rows of a table"))
        .arg(
            number("bytes-max", "20971520")
                .help("Approximate maximum number of bytes of strings in a column"),
        )
        .arg(number("alone", "2").help("Questions per file that run in a separate process"))
        .arg(number("wrong-max", "20").help("Number of wrong answers after which to stop"))
        .arg(
            Arg::new("write")
                .long("write")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help("Only write tables, questions and answers to this folder, for other doors"),
        )
        .arg(
            Arg::new("quarrier")
                .long("quarrier")
                .value_parser(value_parser!(PathBuf))
                .help("The quarrier program; by default the one beside this program"),
        )
}

/// Returns whether all answers are right.
fn asked() -> std::io::Result<bool> {
    let matches = command().get_matches();
    let number = |name: &str| matches.get_one::<u64>(name).copied().unwrap_or(0);
    let quarrier = match matches.get_one::<PathBuf>("quarrier") {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("quarrier"),
    };
    let doors = Doors { quarrier, alone_max: number("alone") as usize };
    let size = Size {
        rows: (number("rows-min").max(1) as usize, number("rows-max").max(1) as usize),
        bytes_max: number("bytes-max") as usize,
        questions: number("of-table").max(1) as usize,
    };
    let (mut seen, mut wrong) = (0, 0);
    for table in 0.. {
        if seen >= number("questions") || wrong >= number("wrong-max") {
            break;
        }
        let seed = number("seed") + table;
        seen += size.questions as u64;
        if let Some(folder) = matches.get_one::<PathBuf>("write") {
            write(seed, &size, &folder.join(seed.to_string()))?;
            continue;
        }
        let folder = tempfile::tempdir()?;
        for answer in run(seed, &size, &doors, folder.path())? {
            say(&format!("seed {seed}, {answer}"));
            wrong += 1;
        }
        if table % 50 == 49 {
            say(&format!("{seen} questions, {wrong} wrong answers"));
        }
    }
    say(&format!("{seen} questions, {wrong} wrong answers"));
    Ok(wrong == 0)
}
