//! Measures one thing and prints its readings as JSON lines, for scripts that pair the gauge with
//! another program:
//!
//!     one cpu multiply-add isa=AVX2 type=f64 threads=2
//!     one memory triad threads=1 bytes=268435456 stores=ordinary
//!     one disk 'random write' path=/var/tmp file_bytes=1073741824 -- fio --filename=FILE …
//!
//! After the measurement of a disk it runs the command after `--`, with the same file in place of the
//! word that ends in `FILE`, and prints its output after the reading. Then it measures the disk once
//! more, so that a disk whose caches learn the file and get faster favours neither side.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;

use quarrier_gauge::disk::{TrialFile, measure_on};
use quarrier_gauge::trial::{Effort, Session};
use quarrier_gauge::{Area, Error, Parameters, Reading, Result, Value, measure_one};

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
    let (words, other) = match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[][..]),
    };
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
    let mut session = Session::new(Effort::alone(5), &mut nobody, &stop)?;
    if !other.is_empty() {
        return beside(&mut session, measurement, &parameters, other);
    }
    measure_one(&mut session, area, measurement, &parameters)?;
    print(&session.readings())
}

/// Measures the disk, then runs `other` on the same file, then measures again.
fn beside(
    session: &mut Session<'_>,
    measurement: &str,
    parameters: &Parameters,
    other: &[String],
) -> Result<()> {
    let folder = parameters.text("path").unwrap_or(".");
    let Some(&Value::Integer(bytes)) = parameters.get("file_bytes") else {
        return Err(Error::BadRequest("say file_bytes=N".to_owned()));
    };
    let mut file = TrialFile::make(Path::new(folder), bytes, &AtomicBool::new(false))?;
    measure_on(session, &mut file, measurement, parameters)?;
    print(&session.readings())?;
    let printed = session.readings().len();
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.file().as_raw_fd());
    let words = other[1..].iter().map(|word| match word.strip_suffix("FILE") {
        Some(option) => format!("{option}{path}"),
        None => word.clone(),
    });
    let status = Command::new(&other[0]).args(words).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err(Error::BadRequest(format!("{} failed", other[0])));
    }
    measure_on(session, &mut file, measurement, parameters)?;
    print(&session.readings()[printed..])
}

fn print(readings: &[Reading]) -> Result<()> {
    for reading in readings {
        let line = serde_json::to_string(reading)
            .map_err(|error| Error::BadRequest(format!("no JSON: {error}")))?;
        println!("{line}");
    }
    Ok(())
}
