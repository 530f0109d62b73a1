//! The latency of dependent loads while the other CPUs read memory.
//!
//! The other threads read block after block and pause in between. Shorter pauses inject more load, so
//! that the readings are a curve: the latency, and the rate at which the others read meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::pages::{NO_HUGE_PAGES, PageKind, Pages};
use super::reader::{BLOCK_BYTES, Reader};
use super::ring::{Ring, check_size};
use crate::conditions::free_memory_bytes;
use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::trial::{Needs, Session, ThreadWork, Trial};

/// The pauses of a full report in nanoseconds: from almost no load to all that the threads can inject.
pub(super) const PAUSES_NS: [u64; 8] = [32_000, 8_000, 4_000, 2_000, 1_000, 500, 250, 0];

/// The longest pause: the threads notice the end of a run only after it.
const PAUSE_MOST_NS: u64 = 1_000_000;

/// Size of the array of each reading thread, if memory suffices.
const ARRAY_BYTES: usize = 64 << 20;

/// The name of the latency, and that of the load beside it.
pub(crate) const LATENCY_UNDER_LOAD: &str = "latency under load";
pub(crate) const LOAD: &str = "load beside latency";

/// The work of one thread.
enum Role {
    Walk(Ring),
    Read(Reader),
}

impl Role {
    fn pages(&self) -> &Pages {
        match self {
            Role::Walk(ring) => ring.pages(),
            Role::Read(reader) => reader.pages(),
        }
    }
}

/// Ends the reading threads when it is dropped, even if the walk fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Measures the latency over a working set of `bytes` bytes, a power of two, on one of `threads` threads,
/// while the others read with each of these pauses between blocks, in nanoseconds. Each gives two readings:
/// the time of a load, and the bytes per second that the others read.
///
/// # Errors
/// If there are fewer than two threads or more than can have a CPU each, a pause is too long, memory is too
/// small, a result is wrong, or the caller stops the run.
pub fn measure(
    session: &mut Session<'_>,
    bytes: usize,
    kind: PageKind,
    threads: usize,
    pauses_ns: &[u64],
) -> Result<()> {
    check(session, bytes, threads, pauses_ns)?;
    let subject = |name: &'static str, unit, pause: u64| {
        let parameters = Parameters::new()
            .with("pause_ns", pause)
            .with("block_bytes", bytes)
            .with("access", "random")
            .with("pages", kind.name())
            .with("threads", threads);
        Subject::new(Area::Memory, name, parameters, unit)
    };
    let latency = |pause| subject(LATENCY_UNDER_LOAD, Unit::Seconds, pause);
    let wanted: Vec<u64> =
        pauses_ns.iter().copied().filter(|&pause| session.wants(&latency(pause))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let array_bytes = array_bytes(bytes, threads - 1, free_memory_bytes());
    let mut roles = session.team.prepare(threads, |index| {
        Ok(match index {
            0 => Role::Walk(Ring::new(bytes, kind)?),
            _ => Role::Read(Reader::new(array_bytes, kind)?),
        })
    })?;
    let steps = match &mut roles[0] {
        Role::Walk(ring) => ring.steps_in(session.effort.trial)?,
        Role::Read(_) => 16,
    };
    let is_small = roles.iter().any(|role| role.pages().kind() == PageKind::Small);
    for pause in wanted {
        let mut runs = session.runs(latency(pause), Needs::Cpu, |team| {
            let over = AtomicBool::new(false);
            let pause = Duration::from_nanos(pause);
            team.run(&mut roles, |_, role| match role {
                Role::Walk(ring) => {
                    let _over = Over(&over);
                    ring.walk(steps)
                }
                Role::Read(reader) => read_until(reader, pause, &over),
            })
        })?;
        if kind == PageKind::Huge && is_small {
            runs.notes.push(NO_HUGE_PAGES.to_owned());
        }
        if array_bytes < ARRAY_BYTES {
            runs.notes.push("too little memory: the caches hold a part of the load".to_owned());
        }
        let mut load = runs.clone().map(|trial| trial.units = bytes_read(trial));
        load.subject = subject(LOAD, Unit::BytesPerSecond, pause);
        session.push(runs);
        session.push(load);
    }
    Ok(())
}

/// Refuses what cannot be measured here.
fn check(session: &Session<'_>, bytes: usize, threads: usize, pauses_ns: &[u64]) -> Result<()> {
    check_size(bytes)?;
    let cpus = session.team.cpus();
    if threads < 2 || threads > cpus {
        return Err(Error::BadRequest(format!(
            "the latency under load needs 2 threads or more that have a CPU each, not {threads} of {cpus}"
        )));
    }
    if let Some(pause) = pauses_ns.iter().find(|&&pause| pause > PAUSE_MOST_NS) {
        return Err(Error::BadRequest(format!(
            "a pause of {pause} ns is too long; use {PAUSE_MOST_NS} or less"
        )));
    }
    Ok(())
}

/// Reads until `over` is set. The bytes are the check value, since the units of the run are the loads.
fn read_until(reader: &mut Reader, pause: Duration, over: &AtomicBool) -> Result<ThreadWork> {
    let mut bytes = 0;
    while !over.load(Ordering::Relaxed) {
        bytes += reader.read_block()?;
        if !pause.is_zero() {
            let until = Instant::now() + pause;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
    Ok(ThreadWork { units: 0.0, check: bytes })
}

/// The bytes that all threads but the first have read.
fn bytes_read(trial: &Trial) -> f64 {
    trial.checks.iter().skip(1).sum::<u64>() as f64
}

/// Size of the array of each of `readers` threads, if all of them and the ring take at most half of the
/// free memory; 0 means an unknown amount.
fn array_bytes(ring_bytes: usize, readers: usize, free_bytes: u64) -> usize {
    let fits =
        |bytes: &usize| free_bytes == 0 || ((bytes * readers + ring_bytes) as u64) < free_bytes / 2;
    let sizes = std::iter::successors(Some(ARRAY_BYTES), |bytes| Some(bytes / 2));
    sizes.take_while(|&bytes| bytes >= BLOCK_BYTES).find(fits).unwrap_or(BLOCK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_all_threads_fit_into_half_of_the_memory() {
        assert_eq!(array_bytes(128 << 20, 1, 0), 64 << 20);
        assert_eq!(array_bytes(128 << 20, 127, 24 << 30), 64 << 20);
        assert_eq!(array_bytes(128 << 20, 127, 8 << 30), 16 << 20);
        assert_eq!(array_bytes(128 << 20, 7, 1), BLOCK_BYTES);
    }

    #[test]
    fn threads_stop_even_if_the_walk_fails() {
        let over = AtomicBool::new(false);
        let failing = || -> Result<()> {
            let _over = Over(&over);
            Err(Error::Stopped)
        };
        assert!(failing().is_err());
        let mut reader = Reader::new(BLOCK_BYTES, PageKind::Small).unwrap();
        assert_eq!(read_until(&mut reader, Duration::ZERO, &over).unwrap().check, 0);
    }

    #[test]
    fn the_load_is_what_the_other_threads_have_read() {
        let trial = Trial { checks: vec![999, 1, 2], ..Trial::default() };
        assert_eq!(bytes_read(&trial), 3.0);
    }
}
