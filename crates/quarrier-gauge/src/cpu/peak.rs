//! Operations per second, by instruction set and type of lane, with the clock measured in between.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::processor::arch::{self, STEPS};
use crate::processor::{Isa, Lane, flop_per_cycle};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Series, Session, ThreadWork};

/// Measures one kind of arithmetic and stores the reading. If the processor's design is known, it also
/// stores the theoretical peak at the clock measured between the runs.
///
/// # Errors
/// If a lane counts wrong, or the caller stops the run.
pub fn measure(session: &mut Session<'_>, isa: Isa, lane: Lane, threads: usize) -> Result<()> {
    if !isa.is_available() {
        let name = isa.name();
        return Err(Error::BadRequest(format!("{name} is not available on this machine")));
    }
    let subject = subject(isa, lane, threads);
    if !session.wants(&subject) {
        return Ok(());
    }
    let loops = loops_in(isa, lane, session.effort.trial)?;
    let runs = session.runs(subject, Needs::Cpu, |team| {
        team.run(&mut vec![(); threads], |_, ()| run_loops(isa, lane, loops))
    })?;
    session.push(runs.clone());
    if let Some(per_cycle) = flop_per_cycle(isa, lane) {
        session.push(theoretical(runs, isa, lane, threads, per_cycle));
    }
    Ok(())
}

/// The subject of the reading.
fn subject(isa: Isa, lane: Lane, threads: usize) -> Subject {
    let (name, unit) = if lane.is_float() {
        ("multiply-add", Unit::FlopPerSecond)
    } else {
        ("add", Unit::OpPerSecond)
    };
    Subject::new(Area::Cpu, name, parameters(isa, lane, threads), unit)
}

fn parameters(isa: Isa, lane: Lane, threads: usize) -> Parameters {
    Parameters::new().with("type", lane.name()).with("isa", isa.name()).with("threads", threads)
}

/// Returns the theoretical rate of the cores at the clock measured during `runs`.
fn theoretical(runs: Series, isa: Isa, lane: Lane, threads: usize, per_cycle: f64) -> Series {
    let mut peak = runs.map(|trial| {
        trial.units = trial.clock_hertz * per_cycle * trial.cores as f64 * trial.seconds;
    });
    let parameters = parameters(isa, lane, threads);
    peak.subject = Subject::new(Area::Cpu, "theoretical peak", parameters, Unit::FlopPerSecond);
    peak
}

fn run_loops(isa: Isa, lane: Lane, loops: u32) -> Result<ThreadWork> {
    let lanes = arch::lanes(isa, lane);
    for _ in 0..loops {
        let right = arch::run(isa, lane);
        if right != lanes {
            let name = format!("{} {}", isa.name(), lane.name());
            return Err(Error::wrong(name, format!("{} of {lanes} lanes", lanes - right)));
        }
    }
    let per_lane = if lane.is_float() { 2.0 } else { 1.0 };
    let steps = f64::from(loops) * f64::from(STEPS);
    Ok(ThreadWork { units: per_lane * lanes as f64 * steps, check: u64::from(loops) })
}

/// Returns the number of calls of the loop that take about `time`.
fn loops_in(isa: Isa, lane: Lane, time: Duration) -> Result<u32> {
    run_loops(isa, lane, 4)?;
    let start = Instant::now();
    run_loops(isa, lane, 4)?;
    let one = (start.elapsed() / 4).as_secs_f64().max(1e-7);
    Ok(((time.as_secs_f64() / one) as u32).max(1))
}
