//! The time of a cache line from one core to another: two threads write it in turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, ThreadWork};

/// A report has the pairs of at most this many CPUs.
const CPUS_MOST: usize = 16;

/// Round trips between looks at the clock.
const ROUNDS: u64 = 64;

/// The value that ends a run.
const OVER: u64 = u64::MAX;

/// The name of the measurement.
const CORE_TO_CORE: &str = "core to core";

/// A value with its cache line, and the neighbouring line that a processor may fetch with it.
#[repr(align(128))]
struct Line(AtomicU64);

/// The pairs of CPUs to measure: all, or those of a part of the CPUs that is spread evenly over them.
pub(super) fn pairs(cpus: &[usize]) -> Vec<(usize, usize)> {
    let count = cpus.len().min(CPUS_MOST);
    let chosen: Vec<usize> = (0..count).map(|index| cpus[index * cpus.len() / count]).collect();
    let with_later = |(index, &from): (usize, &usize)| {
        chosen[index + 1..].iter().map(move |&to| (from, to)).collect::<Vec<_>>()
    };
    chosen.iter().enumerate().flat_map(with_later).collect()
}

/// Measures the time of a transfer between two CPUs: half a round trip of a line that their threads write
/// in turn.
///
/// # Errors
/// If the process may not use both CPUs, a transfer is lost, or the caller stops the run.
pub fn measure(session: &mut Session<'_>, from: usize, to: usize) -> Result<()> {
    let allowed = session.team.cpu_numbers();
    if let Some(cpu) = [from, to].into_iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(Error::BadRequest(format!("this process may not use CPU {cpu}")));
    }
    if from == to {
        return Err(Error::BadRequest(format!("a transfer from CPU {from} needs another CPU")));
    }
    let parameters = Parameters::new().with("from_cpu", from).with("to_cpu", to).with("threads", 2);
    let subject = Subject::new(Area::Memory, CORE_TO_CORE, parameters, Unit::Seconds);
    if !session.wants(&subject) {
        return Ok(());
    }
    let time = session.effort.trial;
    session.measure(subject, Needs::Cpu, |team| {
        let line = Line(AtomicU64::new(0));
        let trial = team.run_on(&[from, to], &mut [(), ()], |index, ()| {
            Ok(if index == 0 { call(&line, time) } else { answer(&line) })
        })?;
        match trial.checks[..] {
            [called, answered] if called == answered => Ok(trial),
            _ => {
                let reason = format!("{:?} transfers seen by the two threads", trial.checks);
                Err(Error::wrong(CORE_TO_CORE, reason))
            }
        }
    })
}

/// Writes odd numbers and waits for the even ones after them, for `time`.
fn call(line: &Line, time: Duration) -> ThreadWork {
    let Line(value) = line;
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < time || rounds == 0 {
        for _ in 0..ROUNDS {
            // No pause between the loads: on some processors it takes as long as the transfer.
            value.store(2 * rounds + 1, Ordering::Release);
            while value.load(Ordering::Acquire) != 2 * rounds + 2 {}
            rounds += 1;
        }
    }
    value.store(OVER, Ordering::Release);
    ThreadWork { units: 2.0 * rounds as f64, check: rounds }
}

/// Waits for odd numbers and writes the even ones after them, until the other thread ends.
fn answer(line: &Line) -> ThreadWork {
    let Line(value) = line;
    let mut rounds = 0;
    loop {
        match value.load(Ordering::Acquire) {
            OVER => break,
            seen if seen == 2 * rounds + 1 => {
                value.store(seen + 1, Ordering::Release);
                rounds += 1;
            }
            _ => {}
        }
    }
    ThreadWork { units: 0.0, check: rounds }
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn all_pairs_of_few_cpus_and_those_of_some_of_many() {
        assert!(pairs(&[]).is_empty() && pairs(&[3]).is_empty());
        assert_eq!(pairs(&[1, 4, 6]), [(1, 4), (1, 6), (4, 6)]);
        let many: Vec<usize> = (0..64).collect();
        let some = pairs(&many);
        assert_eq!(some.len(), 120);
        assert!(some.contains(&(0, 32)) && some.iter().all(|(from, to)| from < to));
    }
}
