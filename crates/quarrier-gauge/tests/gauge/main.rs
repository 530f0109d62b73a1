//! One binary for all tests of the crate: a module for each subject.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

mod compare;
mod cpu;
mod disk;
mod engine;
mod gate;
mod gpu;
mod made_up;
mod memory;
mod network;
mod profile;
mod readings;
mod refusing;
mod repeats;
mod report;
mod statistics;
mod sustained;
#[path = "../../../quarrier-report/tests/kit/well_formed.rs"]
mod well_formed;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_gauge::trial::{Effort, Session};
use quarrier_gauge::{Area, Parameters, Reading, Result, measure_one};

/// The smallest effort that gives a reading.
fn least_effort() -> Effort {
    Effort {
        runs: 3,
        most_runs: 3,
        warm_up: Duration::ZERO,
        trial: Duration::from_micros(200),
        patience: Duration::from_millis(1),
        narrow: 1.0,
    }
}

/// The readings of one measurement, with the smallest effort.
fn measured(area: Area, measurement: &str, parameters: Parameters) -> Result<Vec<Reading>> {
    let stop = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(least_effort(), &mut nobody, &stop)?;
    measure_one(&mut session, area, measurement, &parameters)?;
    Ok(session.readings())
}

/// Checks what holds for every reading.
fn check(reading: &Reading) {
    assert!(reading.value.is_finite() && reading.value > 0.0, "{reading:?}");
    assert!(reading.interval.0 <= reading.value && reading.value <= reading.interval.1);
    assert_eq!(reading.runs as usize, reading.samples.len());
    assert!(reading.runs >= 3, "{reading:?}");
    assert!(reading.stddev >= 0.0 && reading.mean > 0.0 && reading.best > 0.0);
}
