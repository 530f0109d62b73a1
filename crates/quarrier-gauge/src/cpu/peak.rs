//! Operations a second, by instruction set and kind of lane, with the clock measured beside them.

use std::time::{Duration, Instant};

use super::arch::{self, STEPS};
use super::{Isa, Lane, clock, units};
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Reading, Subject, Unit};
use crate::trial::{Done, Needs, Session, Team, Trial};

/// A core that does less than this part of what it can in a cycle is not ours alone. The loops give
/// 0.97 and more of what the design allows.
const PER_CYCLE_MIN: f64 = 0.93;

/// Measures one kind of arithmetic, and pushes it with the theoretical peak at the clock that was
/// measured between the runs, where the design is known.
///
/// # Errors
/// A lane counted wrong, or the caller stopped it.
pub fn measure(session: &mut Session<'_>, isa: Isa, lane: Lane, threads: usize) -> Result<()> {
    if !isa.is_available() {
        let name = isa.name();
        return Err(Error::BadRequest(format!("{name} is not to be had on this machine")));
    }
    let loops = loops_in(isa, lane, session.effort.trial)?;
    let runs = session.runs(&subject(isa, lane, threads), Needs::Cpu, |team| {
        let clock_hertz = clock_of(team, threads)?;
        let mut states = vec![(); threads];
        let trial = team.run(&mut states, |_, ()| run_loops(isa, lane, loops))?;
        Ok(Trial { clock_hertz, ..trial })
    })?;
    let mut reading = runs.clone().reading(subject(isa, lane, threads));
    let clock_hertz = reading.conditions.clock_hertz.unwrap_or(0.0);
    let cores = threads.min(session.team.cpus()) as f64;
    let theory = units::flop_per_cycle(isa, lane).filter(|_| clock_hertz > 0.0);
    if clock_hertz > 0.0 {
        let per_cycle = reading.value / clock_hertz / cores;
        reading.notes.push(format!("{per_cycle:.2} a cycle at {:.2} GHz", clock_hertz / 1e9));
        let usual = theory.or_else(|| alone(session.readings(), &reading));
        if let Some(note) = usual.filter(|_| !has_siblings()).and_then(|u| shared(per_cycle, u)) {
            reading.disturb(note);
        }
    }
    session.push(reading);
    if let Some(flop_per_cycle) = theory {
        let peak = |trial: &Trial| trial.clock_hertz * flop_per_cycle * cores;
        session.push(theoretical(runs, isa, lane, threads, peak));
    }
    Ok(())
}

/// What one thread did in a cycle, by a reading of the same arithmetic that nobody disturbed.
fn alone(readings: &[Reading], new: &Reading) -> Option<f64> {
    let same =
        |name: &str, reading: &Reading| reading.parameters.get(name) == new.parameters.get(name);
    let mut readings = readings.iter().filter(|reading| {
        reading.measurement == new.measurement
            && same("type", reading)
            && same("isa", reading)
            && reading.parameters.integer("threads") == Some(1)
            && !reading.disturbed
    });
    let reading = readings.next()?;
    Some(reading.value / reading.conditions.clock_hertz?)
}

/// Why a core that does so much in a cycle has not been ours alone, if so. A host can give the other
/// half of a core to somebody else, or two halves of one core to us, and no counter of the system
/// shows that; the clock stays what it was, and a chain of additions as fast.
fn shared(per_cycle: f64, usual: f64) -> Option<String> {
    (per_cycle < PER_CYCLE_MIN * usual).then(|| {
        format!("{per_cycle:.2} a cycle where a core does {usual:.2}: it was not ours alone")
    })
}

/// Whether the system says that CPUs are halves of a core: then two do less than twice as much.
fn has_siblings() -> bool {
    let list = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    std::fs::read_to_string(list).is_ok_and(|list| list.trim().contains([',', '-']))
}

/// What the reading is called.
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

fn theoretical(
    mut runs: crate::trial::Series,
    isa: Isa,
    lane: Lane,
    threads: usize,
    peak: impl Fn(&Trial) -> f64,
) -> Reading {
    for trial in &mut runs.kept {
        trial.units = peak(trial) * trial.seconds;
    }
    let parameters = parameters(isa, lane, threads);
    runs.reading(Subject::new(Area::Cpu, "theoretical peak", parameters, Unit::FlopPerSecond))
}

/// The mean clock of the cores while all of them are busy; 0 where it cannot be measured.
fn clock_of(team: &Team, threads: usize) -> Result<f64> {
    let threads = threads.min(team.cpus());
    let clocks = team.prepare(threads, |_| Ok(clock::here(2).unwrap_or(0.0)))?;
    Ok(clocks.iter().sum::<f64>() / clocks.len() as f64)
}

fn run_loops(isa: Isa, lane: Lane, loops: u32) -> Result<Done> {
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
    Ok(Done { units: per_lane * lanes as f64 * steps, check: u64::from(loops) })
}

/// How many calls of the loop take about `time`.
fn loops_in(isa: Isa, lane: Lane, time: Duration) -> Result<u32> {
    run_loops(isa, lane, 4)?;
    let start = Instant::now();
    run_loops(isa, lane, 4)?;
    let one = (start.elapsed() / 4).as_secs_f64().max(1e-7);
    Ok(((time.as_secs_f64() / one) as u32).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_does_half_as_much_is_shared() {
        assert_eq!(shared(31.3, 32.0), None);
        assert!(shared(15.7, 31.4).unwrap().starts_with("15.70 a cycle where a core does 31.40"));
    }

    #[test]
    fn what_a_core_does_is_taken_from_one_thread_of_the_same_kind() {
        let reading = |threads: usize, value: f64, disturbed: bool| {
            let of = subject(Isa::Scalar, Lane::I32, threads);
            let trial = Trial { units: value, seconds: 1.0, clock_hertz: 2.0, ..Trial::default() };
            let mut reading = crate::trial::Series::of(vec![trial]).reading(of);
            reading.disturbed = disturbed;
            reading
        };
        let readings = [reading(2, 9.0, false), reading(1, 8.0, true), reading(1, 6.0, false)];
        assert_eq!(alone(&readings, &reading(2, 4.0, false)), Some(3.0));
        assert_eq!(alone(&readings[..2], &reading(2, 4.0, false)), None);
    }
}
