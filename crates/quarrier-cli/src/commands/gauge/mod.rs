//! `quarrier gauge`: measures, keeps the profile, and shows the report.

mod earlier;
mod listen;
mod progress;
mod show;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use quarrier::Error;
use quarrier::account::Stats;
use quarrier::gauge::Gauged;
use quarrier_gauge::Gate;
use quarrier_gauge::report::{Report, html, prometheus};
use quarrier_report::number::{count, counted};
use quarrier_report::{Manner, on_terminal};
use serde_json::json;

use crate::args::{Gauge, Measure, Task};
use crate::commands::failed;
use crate::output::file::write_whole;
use crate::{Outcome, complain, host, interrupt};

use earlier::Earlier;
use progress::Progress;

/// Why there is no report.
enum Failure {
    /// Ctrl-C, with the interrupted measurement.
    Interrupted(String),
    Other(String),
}

/// Runs the command.
pub(crate) fn run(gauge: &Gauge) -> Outcome {
    let stop = interrupt::watch();
    match outcome(gauge, &stop) {
        Ok(outcome) => outcome,
        Err(Failure::Interrupted(place)) => {
            complain(&format!("interrupted at {place}; no report was written"));
            Outcome::Interrupted
        }
        Err(Failure::Other(message)) => failed(&message, &stop),
    }
}

fn outcome(gauge: &Gauge, stop: &AtomicBool) -> Result<Outcome, Failure> {
    // Report impossible comparisons and outputs before minutes are spent.
    let earlier = gauge.compare.iter().map(|path| Earlier::read(path, stop));
    let earlier = earlier.collect::<Result<Vec<_>, _>>().map_err(Failure::Other)?;
    for path in [&gauge.json, &gauge.html, &gauge.prometheus, &gauge.stats].into_iter().flatten() {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            check_folder(path, folder).map_err(Failure::Other)?;
        }
    }
    let (report, profile) = match &gauge.task {
        Task::Listen(address) => {
            return listen::run(*address, gauge.quiet, stop).map_err(Failure::Other);
        }
        Task::Show(path) => (earlier::read(path, stop).map_err(Failure::Other)?, None),
        Task::Measure(measure) => {
            let Gauged { report, profile, notices, .. } = measured(measure, gauge.quiet, stop)?;
            if !gauge.quiet {
                notices.iter().for_each(|notice| complain(notice));
            }
            (report, profile)
        }
    };
    let written = write(gauge, &report, &earlier, profile.as_deref());
    let shown = show::show(gauge, &report, &earlier);
    written.map_err(Failure::Other)?;
    let judged = judged(gauge, &report, &earlier);
    Ok(if matches!(shown, Outcome::Found) { judged } else { shown.worse(judged) })
}

/// The outcome of the comparisons: whether the reports have readings in common, and whether the gate
/// passes.
fn judged(gauge: &Gauge, report: &Report, earlier: &[Earlier]) -> Outcome {
    let mut outcome = Outcome::Found;
    for (earlier, comparison) in earlier.iter().zip(earlier::comparisons(earlier, report)) {
        let name = earlier.name();
        if comparison.changes.is_empty() {
            complain(&format!(
                "{name}: no reading in common; measure the same areas in the same way"
            ));
            return Outcome::Failed;
        }
        let Some(percent) = gauge.gate else { continue };
        let gate = quarrier_gauge::gate(&comparison, percent);
        if !gate.slower.is_empty() {
            outcome = Outcome::Nothing;
        }
        if !gauge.quiet || !gate.slower.is_empty() {
            complain(&format!("{name}: {}", verdict(&gate, percent)));
        }
    }
    outcome
}

/// The verdict of a gate in a line.
fn verdict(gate: &Gate<'_>, percent: f64) -> String {
    let number = |some: usize| count(some as u64);
    let (slower, all) = (number(gate.slower.len()), counted(gate.compared as u64, "reading"));
    let mut words = format!("{slower} of {all} slower by more than {percent} %");
    if gate.undecided > 0 {
        let open = number(gate.undecided);
        words.push_str(&format!("; {open} undecided: more --runs on both sides decide"));
    }
    if gate.disturbed > 0 {
        words.push_str(&format!(
            "; {} disturbed, which cannot fail the gate",
            number(gate.disturbed)
        ));
    }
    words
}

fn check_folder(path: &Path, folder: &Path) -> Result<(), String> {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(format!("{}: there is no folder {}", path.display(), folder.display())),
    }
}

/// Makes the requested measurements.
fn measured(measure: &Measure, quiet: bool, stop: &AtomicBool) -> Result<Gauged, Failure> {
    let request = quarrier::Gauge::new()
        .areas(measure.areas.clone())
        .quick(measure.quick)
        .runs(measure.runs)
        .sustained(measure.sustained)
        .folder(&measure.path)
        .peer(measure.connect.clone())
        .congestion(measure.congestion.clone());
    let mut progress = Progress::new(quiet);
    let measured = request.run(host::machine(), &mut progress, stop);
    let place = progress.end();
    measured.map_err(|error| match error {
        Error::Gauge(quarrier_gauge::Error::Stopped) => Failure::Interrupted(place),
        error => Failure::Other(error.to_string()),
    })
}

/// Writes each requested file, even if an earlier one failed.
fn write(
    gauge: &Gauge,
    report: &Report,
    earlier: &[Earlier],
    profile: Option<&Path>,
) -> Result<(), String> {
    let mut failures = Vec::new();
    let mut write = |path: &Path, bytes: &[u8]| {
        if let Err(error) = write_whole(path, bytes) {
            failures.push(format!("{}: cannot write: {error}", path.display()));
        }
    };
    if let Some(path) = &gauge.json {
        let text = report.to_json().map_err(|error| error.to_string())?;
        write(path, text.as_bytes());
    }
    if let Some(path) = &gauge.html {
        let comparisons = earlier::comparisons(earlier, report);
        write(path, html(report, &earlier::against(earlier, &comparisons)).as_bytes());
    }
    if let Some(path) = &gauge.prometheus {
        write(path, prometheus(report).as_bytes());
    }
    if let Some(path) = &gauge.stats {
        let disturbed = report.readings.iter().filter(|reading| reading.disturbed).count();
        // A gauge searches nothing: the fields about searches are 0 or empty.
        let stats = Stats { command: "gauge", seconds: report.seconds, ..Stats::default() };
        let mut stats = stats.to_json();
        stats["readings"] = json!(report.readings.len());
        stats["disturbed"] = json!(disturbed);
        stats["profile"] = json!(profile.map(|path| path.display().to_string()));
        let line = format!("{stats}\n");
        if path.as_os_str() == "-" {
            // If standard error is closed, nobody is left to read this.
            let mut out = on_terminal(std::io::stderr(), Manner::Json);
            let _ = std::io::Write::write_all(&mut out, line.as_bytes());
        } else {
            write(path, line.as_bytes());
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}
