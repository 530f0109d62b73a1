//! Threads on their own CPUs that start together.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use quarrier_core::sync::lock;
use quarrier_core::threads;
use rustix::thread::CpuSet;

use super::gate::Gate;
use super::{ThreadWork, Trial};
use crate::conditions::{Limits, allowed_cpus};
use crate::error::{Error, Result};
use crate::processor::{Core, core_now};

/// The interval at which a run is watched.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// The CPUs that this process may use, and the threads that run on them. Additional threads share CPUs
/// in turn.
#[derive(Debug)]
pub struct Team {
    cpus: Vec<usize>,
    /// The number of threads that can have a CPU each: fewer than CPUs if control groups limit the
    /// time.
    threads: usize,
    /// The CPU of the first thread.
    first: AtomicUsize,
    /// Fused multiply-adds per cycle: for each number of cores, the three best values of the slowest
    /// core in a probe, in rising order.
    most_fused: Mutex<Vec<[f64; 3]>>,
}

/// When a thread ran, and how much of its CPU it got.
struct Ran {
    cpu: usize,
    start: Instant,
    end: Instant,
    cpu_seconds: f64,
    done: ThreadWork,
}

impl Team {
    /// Creates a team on the CPUs of the calling thread's affinity mask.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn here() -> Result<Team> {
        let cpus = allowed_cpus()
            .map_err(|error| Error::io("CPUs", "ask for the affinity mask", error))?;
        let threads = Limits::threads_of_process(cpus.len());
        Ok(Team { cpus, threads, first: AtomicUsize::new(0), most_fused: Mutex::default() })
    }

    /// The number of threads that can have a CPU each.
    pub fn cpus(&self) -> usize {
        self.threads
    }

    /// Makes the next trials begin on the next CPU, because others use this one.
    pub fn turn(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers of the CPUs that the threads may use, in order.
    pub fn cpu_numbers(&self) -> &[usize] {
        &self.cpus
    }

    /// Creates a state for each of `threads`, on the thread's CPU, so that the memory it touches is
    /// near.
    ///
    /// # Errors
    /// If a thread cannot be started or panics, or `make` fails.
    pub fn prepare<S: Send>(
        &self,
        threads: usize,
        make: impl Fn(usize) -> Result<S> + Sync,
    ) -> Result<Vec<S>> {
        self.prepare_on(&self.in_turn(), threads, make)
    }

    /// Like [`Team::prepare`], with the threads on these CPUs, which additional threads share in turn.
    ///
    /// # Errors
    /// Those of [`Team::prepare`].
    pub fn prepare_on<S: Send>(
        &self,
        cpus: &[usize],
        threads: usize,
        make: impl Fn(usize) -> Result<S> + Sync,
    ) -> Result<Vec<S>> {
        if threads == 0 {
            return Err(Error::BadRequest("0 threads measure nothing; use 1 or more".to_owned()));
        }
        thread::scope(|scope| {
            let make = &make;
            let mut handles = Vec::with_capacity(threads);
            for index in 0..threads {
                let cpu = cpu_of(cpus, index);
                let spawned = threads::in_scope(scope, "", move || {
                    pin(cpu);
                    make(index)
                });
                handles.push(spawned.map_err(no_thread)?);
            }
            all_joined(handles)
        })
    }

    /// Runs `work` once for each state, each on a thread with its own CPU if there are enough; the
    /// threads start together. The cores are probed right before and after.
    ///
    /// # Errors
    /// If a thread cannot be started or panics, or `work` fails.
    pub fn run<S: Send>(
        &self,
        states: &mut [S],
        work: impl Fn(usize, &mut S) -> Result<ThreadWork> + Sync,
    ) -> Result<Trial> {
        self.run_on(&self.in_turn(), states, work)
    }

    /// Like [`Team::run`], with the threads on these CPUs, which additional threads share in turn.
    ///
    /// # Errors
    /// Those of [`Team::run`].
    pub fn run_on<S: Send>(
        &self,
        cpus: &[usize],
        states: &mut [S],
        work: impl Fn(usize, &mut S) -> Result<ThreadWork> + Sync,
    ) -> Result<Trial> {
        // More threads than a quota allows still run on a core each, if there are enough.
        let used = &cpus[..states.len().min(cpus.len())];
        let before = self.probe(used)?;
        let timed = |cpu, index, state: &mut S| timed(cpu, || work(index, state));
        let trial = summed(&together(cpus, states, true, timed, |_| ())?);
        let probed = before.zip(self.probe(used)?);
        Ok(match probed {
            None => trial,
            Some((before, after)) => Trial {
                clock_hertz: f64::midpoint(before.clock_hertz, after.clock_hertz),
                fused_per_cycle: before.fused_per_cycle.min(after.fused_per_cycle),
                ..trial
            },
        })
    }

    /// Like [`Team::run`], without pinning threads, for work that waits for a device: a thread wakes
    /// soonest on the CPU that gets the device's interrupts, and the scheduler knows which that is.
    ///
    /// # Errors
    /// Those of [`Team::run`].
    pub fn run_unpinned<S: Send>(
        &self,
        states: &mut [S],
        work: impl Fn(usize, &mut S) -> Result<ThreadWork> + Sync,
    ) -> Result<Trial> {
        let timed = |cpu, index, state: &mut S| timed(cpu, || work(index, state));
        Ok(summed(&together(&self.in_turn(), states, false, timed, |_| ())?))
    }

    /// Like [`Team::run_unpinned`], and calls `watch` every few hundredths of a second meanwhile, on the
    /// calling thread.
    ///
    /// # Errors
    /// Those of [`Team::run`].
    pub(crate) fn run_watched<S: Send>(
        &self,
        states: &mut [S],
        work: impl Fn(usize, &mut S) -> Result<ThreadWork> + Sync,
        mut watch: impl FnMut(),
    ) -> Result<Trial> {
        let timed = |cpu, index, state: &mut S| timed(cpu, || work(index, state));
        let watched = |handles: &[ScopedJoinHandle<'_, Result<Ran>>]| {
            while !handles.iter().all(ScopedJoinHandle::is_finished) {
                thread::sleep(WATCH_EVERY);
                watch();
            }
        };
        Ok(summed(&together(&self.in_turn(), states, false, timed, watched)?))
    }

    /// Probes these cores at once: returns the mean of their clocks, and the multiply-adds per cycle
    /// of the slowest. `None` if they cannot be measured.
    fn probe(&self, cpus: &[usize]) -> Result<Option<Core>> {
        let cores = cpus.len();
        let found = together(cpus, &mut vec![(); cores], true, |_, _, ()| Ok(core_now()), |_| ())?;
        let found: Vec<Core> = found.into_iter().flatten().collect();
        if found.is_empty() {
            return Ok(None);
        }
        let core = Core {
            clock_hertz: found.iter().map(|core| core.clock_hertz).sum::<f64>()
                / found.len() as f64,
            fused_per_cycle: found.iter().map(|core| core.fused_per_cycle).fold(f64::MAX, f64::min),
        };
        let mut most = lock(&self.most_fused);
        let places = most.len().max(cores + 1);
        most.resize(places, [0.0; 3]);
        let best = &mut most[cores];
        best[0] = best[0].max(core.fused_per_cycle);
        best.sort_unstable_by(f64::total_cmp);
        Ok(Some(core))
    }

    /// Fused multiply-adds per cycle: the most that each of `cores` cores has reached, in three or more
    /// probes, since a single probe can be wrong.
    pub(super) fn most_fused_per_cycle(&self, cores: usize) -> f64 {
        let most = lock(&self.most_fused);
        most.get(cores).map_or(0.0, |best| best[0])
    }

    /// All CPUs, beginning with that of the first thread.
    fn in_turn(&self) -> Vec<usize> {
        let mut cpus = self.cpus.clone();
        match cpus.len() {
            0 => cpus.push(0),
            count => cpus.rotate_left(self.first.load(Ordering::Relaxed) % count),
        }
        cpus
    }
}

fn cpu_of(cpus: &[usize], thread: usize) -> usize {
    cpus.get(thread % cpus.len().max(1)).copied().unwrap_or(0)
}

/// Runs `work` with the CPU, the number and the state of each thread; the threads start together. Calls
/// `watch` once they have started.
fn together<S: Send, T: Send>(
    cpus: &[usize],
    states: &mut [S],
    pinned: bool,
    work: impl Fn(usize, usize, &mut S) -> Result<T> + Sync,
    watch: impl FnOnce(&[ScopedJoinHandle<'_, Result<T>>]),
) -> Result<Vec<T>> {
    if states.is_empty() {
        return Err(Error::BadRequest("0 threads measure nothing; use 1 or more".to_owned()));
    }
    let gate = Gate::new(states.len());
    thread::scope(|scope| {
        let (gate, work) = (&gate, &work);
        let mut handles = Vec::with_capacity(states.len());
        for (index, state) in states.iter_mut().enumerate() {
            let cpu = cpu_of(cpus, index);
            let spawned = threads::in_scope(scope, "", move || {
                if pinned {
                    pin(cpu);
                }
                if gate.pass() { work(cpu, index, state) } else { Err(Error::Stopped) }
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    gate.give_up();
                    return Err(no_thread(error));
                }
            }
        }
        watch(&handles);
        all_joined(handles)
    })
}

/// Pins the calling thread. If the system refuses, the thread runs anywhere: its share of the CPU is
/// measured anyway.
fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

fn timed(cpu: usize, work: impl FnOnce() -> Result<ThreadWork>) -> Result<Ran> {
    let cpu_before = cpu_seconds();
    let start = Instant::now();
    let done = work()?;
    let end = Instant::now();
    Ok(Ran { cpu, start, end, cpu_seconds: cpu_seconds() - cpu_before, done })
}

/// CPU time of the calling thread, in seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn summed(ran: &[Ran]) -> Trial {
    let Some((first, last)) = ends(ran.iter()) else { return Trial::default() };
    let seconds = (last - first).as_secs_f64().max(1e-9);
    let mut cpus: Vec<usize> = ran.iter().map(|ran| ran.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let share = cpus.iter().map(|&cpu| share_of(cpu, ran)).fold(1.0, f64::min);
    let together =
        match (ran.iter().map(|ran| ran.start).max(), ran.iter().map(|ran| ran.end).min()) {
            (Some(start), Some(end)) => end.saturating_duration_since(start).as_secs_f64(),
            _ => 0.0,
        };
    Trial {
        seconds,
        units: ran.iter().map(|ran| ran.done.units).sum(),
        checks: ran.iter().map(|ran| ran.done.check).collect(),
        cpu_share: share,
        overlap: if ran.len() > cpus.len() { 1.0 } else { together / seconds },
        cores: cpus.len(),
        ..Trial::default()
    }
}

/// The part of the time between the first start and the last end on this CPU in which one of our
/// threads had it. Threads that share it take turns, so their times add up.
fn share_of(cpu: usize, ran: &[Ran]) -> f64 {
    let here = || ran.iter().filter(|ran| ran.cpu == cpu);
    let Some((first, last)) = ends(here()) else { return 1.0 };
    let got: f64 = here().map(|ran| ran.cpu_seconds).sum();
    got / (last - first).as_secs_f64().max(1e-9)
}

fn ends<'a>(ran: impl Iterator<Item = &'a Ran> + Clone) -> Option<(Instant, Instant)> {
    Some((ran.clone().map(|ran| ran.start).min()?, ran.map(|ran| ran.end).max()?))
}

/// Waits for all threads, even after one has failed: a scope would panic if another one panicked.
fn all_joined<T>(handles: Vec<ScopedJoinHandle<'_, Result<T>>>) -> Result<Vec<T>> {
    let ended: Vec<Result<Result<T>>> = handles.into_iter().map(joined).collect();
    ended.into_iter().map(|result| result?).collect()
}

fn joined<T>(handle: ScopedJoinHandle<'_, T>) -> Result<T> {
    handle.join().map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Error::Panicked(text.unwrap_or_else(|| "no reason given".to_owned()))
    })
}

fn no_thread(error: std::io::Error) -> Error {
    Error::io("threads", "start one more", error)
}
