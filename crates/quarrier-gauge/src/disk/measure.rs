//! Measures a job.

use std::sync::atomic::Ordering;

use rustix::fs::Advice;

use super::job::{Action, Cache, Job, Order};
use super::ring::ring_of;
use super::room::TrialFile;
use super::worker::Worker;
use crate::error::{Error, Result};
use crate::latencies::Latencies;
use crate::reading::{Subject, Unit};
use crate::trial::{Needs, Series, Session, Trial};

/// Maximum number of threads that replace io_uring, one per request in flight.
const STAND_INS_MAX: usize = 128;
/// A file with a larger share in the page cache is not cold.
const COLD_SHARE_MAX: f64 = 0.01;

/// How a job runs on this system, with notes for the reader.
pub(super) struct Means {
    pub(super) job: Job,
    pub(super) ring: bool,
    pub(super) notes: Vec<String>,
}

/// Measures `job` on `file` and returns the runs, with the time of each request. Requests in a closed
/// loop wait for each other: a slow one delays later ones, and their times do not show it (coordinated
/// omission). The times of offered requests count from when they fell due.
///
/// If the file system lacks `O_DIRECT`, or the system refuses io_uring, the job runs by other means and
/// the notes say so.
///
/// # Errors
/// If the job cannot be measured on this file, the system refuses, or a read returns other bytes than
/// were written.
pub fn measure_job(session: &mut Session<'_>, file: &mut TrialFile, job: &Job) -> Result<Series> {
    job.verify(file)?;
    let Means { job, ring, mut notes } = means(file, job)?;
    notes.extend(prepare_cache(session, file, &job)?);
    let subject = subject(file, &job, ring);
    let unit = subject.unit;
    let shared: &TrialFile = file;
    let mut workers =
        session.team.prepare(job.threads, |thread| Worker::new(&job, shared, ring, thread))?;
    let (time, stop, needs) = (session.effort.trial, session.stop, needs(&job));
    let mut times = Vec::new();
    let mut runs = session.runs(subject, needs, |team| {
        if job.cache == Cache::Cold && job.action == Action::Read {
            file.forget()?;
        }
        let generation = file.next_generation();
        let shared: &TrialFile = file;
        workers.iter_mut().try_for_each(|worker| worker.prepare(shared, generation))?;
        let work = |_: usize, worker: &mut Worker| worker.run(shared, generation, time, stop);
        let trial = match needs {
            Needs::Cpu => team.run(&mut workers, work),
            Needs::Answers => team.run_unpinned(&mut workers, work),
        }?;
        if stop.load(Ordering::Relaxed) {
            // A truncated run does not count.
            return Err(Error::Stopped);
        }
        let latencies = compared(&mut workers, shared)?;
        let trial = valued(trial, unit, &job, &latencies);
        times.push(latencies);
        Ok(trial)
    })?;
    file.set_direct(false)?;
    runs.latencies = Some(Latencies::sum(&runs.kept_of(&times))?);
    runs.notes.extend(notes);
    Ok(runs)
}

/// Makes the job's subject, with parameters of the file and the system.
fn subject(file: &TrialFile, job: &Job, ring: bool) -> Subject {
    let mut subject = job.subject();
    subject.parameters = subject
        .parameters
        .with("calls", calls(job, ring))
        .with("file_bytes", file.bytes())
        .with("file_system", file.file_system());
    subject
}

/// The system calls that make the job's requests.
pub(super) fn calls(job: &Job, ring: bool) -> &'static str {
    match (ring, job.action) {
        (true, _) => "io_uring",
        (false, Action::Read) => "pread",
        (false, Action::Write) => "pwrite",
    }
}

/// Threads that read from the page cache copy all the time and never wait.
fn needs(job: &Job) -> Needs {
    match (job.cache, job.action) {
        (Cache::Warm, Action::Read) => Needs::Cpu,
        _ => Needs::Answers,
    }
}

/// Lets the threads compare their last blocks, and merges their times.
fn compared(workers: &mut [Worker], file: &TrialFile) -> Result<Latencies> {
    let mut latencies = Latencies::new()?;
    for worker in workers {
        worker.compare(file)?;
        latencies.add(&worker.outcome.latencies);
    }
    Ok(latencies)
}

/// Sets a trial's value. Its units are requests; a sequential job converts them to bytes, and the value
/// of an offered job is the median time of a request.
fn valued(trial: Trial, unit: Unit, job: &Job, latencies: &Latencies) -> Trial {
    match unit {
        Unit::Seconds => Trial { seconds: latencies.median_seconds(), units: 1.0, ..trial },
        Unit::BytesPerSecond => Trial { units: trial.units * job.block_bytes as f64, ..trial },
        _ => trial,
    }
}

/// Returns how the job can run on this system.
pub(super) fn means(file: &TrialFile, job: &Job) -> Result<Means> {
    let mut job = job.clone();
    let mut notes = Vec::new();
    if job.cache == Cache::Direct && file.direct_bytes().is_none_or(|least| least > job.block_bytes)
    {
        notes.push(match file.direct_bytes() {
            None => "no O_DIRECT on this file system: buffered".to_owned(),
            Some(least) => format!("O_DIRECT needs {least} bytes or more here: buffered"),
        });
        job.cache = Cache::Cold;
    }
    let mut ring = false;
    if job.cache == Cache::Direct {
        match ring_of(job.depth) {
            Ok(_) => ring = true,
            Err(error) => notes.push(format!("io_uring refused ({error}): a thread each request")),
        }
    }
    if !ring && job.depth > 1 {
        job.threads = (job.threads * job.depth).min(STAND_INS_MAX);
        job.depth = 1;
    }
    if job.cache == Cache::Cold && job.action == Action::Read {
        let held = file.forget()?;
        if held > COLD_SHARE_MAX {
            notes.push(format!("{:.0} % of the file stay in the page cache: warm", held * 100.0));
            job.cache = Cache::Warm;
        }
    }
    Ok(Means { job, ring, notes })
}

/// Brings the page cache into the state that the job needs. Returns a note if it cannot.
fn prepare_cache(session: &Session<'_>, file: &TrialFile, job: &Job) -> Result<Option<String>> {
    file.advise(match job.order {
        Order::Sequential => Advice::Sequential,
        Order::Random => Advice::Random,
    });
    let mut note = None;
    if job.cache == Cache::Warm && job.action == Action::Read {
        let held = file.warm(session.stop)?;
        if held < 1.0 - COLD_SHARE_MAX {
            note = Some(format!("only {:.0} % of the file stay in the page cache", held * 100.0));
        }
    }
    if job.cache == Cache::Direct {
        // Otherwise the kernel would drop the file's pages during the run.
        file.forget()?;
    }
    file.set_direct(job.cache == Cache::Direct)?;
    Ok(note)
}
