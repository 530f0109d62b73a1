//! Measures one thing and prints its readings as JSON lines, for scripts that pair the gauge with
//! another program:
//!
//!     one cpu multiply-add isa=AVX2 type=f64 threads=2
//!     one memory triad threads=1 bytes=268435456 stores=ordinary

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use quarrier_gauge::trial::{Effort, Session};
use quarrier_gauge::{Area, Error, Parameters, Result, measure_one};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("one: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<()> {
    let [area, measurement, parameters @ ..] = words else {
        return Err(Error::BadRequest("say AREA MEASUREMENT [NAME=VALUE …]".to_owned()));
    };
    let area = Area::of(area).ok_or_else(|| {
        Error::BadRequest(format!("{area}: no area; take cpu, memory, disk or network"))
    })?;
    let parameters = parameters.iter().try_fold(Parameters::new(), |all, word| {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| Error::BadRequest(format!("{word}: write it as NAME=VALUE")))?;
        let name = name.to_owned();
        Ok::<_, Error>(match value.parse::<u64>() {
            Ok(count) => all.with(name, count),
            Err(_) => all.with(name, value),
        })
    })?;
    let stop = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(Effort::full(5), &mut nobody, &stop)?;
    measure_one(&mut session, area, measurement, &parameters)?;
    for reading in session.readings() {
        let line = serde_json::to_string(reading)
            .map_err(|error| Error::BadRequest(format!("no JSON: {error}")))?;
        println!("{line}");
    }
    Ok(())
}
