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
        .arg(number("questions", "10000").help("How many, in all"))
        .arg(number("of-table", "40").help("How many of each table"))
        .arg(number("seed", "1").help("The first table's; the next one has the next"))
        .arg(number("rows-min", "10").help("Rows of a table, at least"))
        .arg(number("rows-max", "300000").help("Rows of a table, at most"))
        .arg(number("bytes-max", "20971520").help("Bytes of strings in a column, about, at most"))
        .arg(number("alone", "2").help("Questions of a file that get a process of their own"))
        .arg(number("wrong-max", "20").help("Wrong answers after which it ends"))
        .arg(
            Arg::new("write")
                .long("write")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help(
                    "Writes tables, questions and answers there, for other doors, and asks nothing",
                ),
        )
        .arg(
            Arg::new("quarrier")
                .long("quarrier")
                .value_parser(value_parser!(PathBuf))
                .help("The program to ask; the one beside this if none is given"),
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
