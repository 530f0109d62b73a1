//! The rates that a disk sustains: one long stream of writes, then one of reads of what was written.
//!
//! ```text
//!  free space ─→ an empty file, reserved ─→ writes in order, and again from its start ─→ Windows
//!                its part that was written ─→ reads in order, and again from its start ─→ Windows
//! ```
//!
//! A drive first writes to a faster part of itself, and a cloud's volume has credits for bursts: only the
//! rate over time shows when they end. So nothing is written before the measured time, and the file is as
//! large as may be.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quarrier_report::number;
use rustix::fs::Advice;

use super::job::{Action, Job, Order};
use super::measure::{Means, calls, means};
use super::places::Places;
use super::room::{TrialFile, room};
use super::worker::Worker;
use crate::error::{Error, Result};
use crate::reading::{Subject, Value};
use crate::request::Sustained;
use crate::trial::{Series, Session, Windows};

const BLOCK_BYTES: usize = 1 << 20;
/// The number of blocks in flight: those of the deep jobs of a report.
const DEPTH: usize = 32;
/// The file takes at most this part of the free space, as a divisor.
const FREE_PART: u64 = 4;
/// A file has at least one block for each request in flight.
const FILE_BYTES_MIN: u64 = (DEPTH * BLOCK_BYTES) as u64;
/// No disk writes more in a second: a larger file would only keep space from others.
const BYTES_PER_SECOND_MAX: u64 = 16 << 30;

/// Writes to the disk of `folder`, and reads, each for the requested time, and adds a reading for each: the
/// median rate after its last change, with the rate over time.
///
/// # Errors
/// If `folder` has too little free space or no `O_DIRECT`, the system refuses, or a read returns other
/// bytes than were written.
pub fn measure_sustained(
    session: &mut Session<'_>,
    folder: &Path,
    sustained: &Sustained,
) -> Result<()> {
    let mut file = make_file(folder, sustained)?;
    if file.direct_bytes().is_none_or(|least| least > BLOCK_BYTES) {
        return Err(Error::BadRequest(format!(
            "{}: its file system ({}) has no O_DIRECT, so memory would be measured; name a folder on \
             another",
            folder.display(),
            file.file_system()
        )));
    }
    for action in [Action::Write, Action::Read] {
        let runs = stream(session, &mut file, action, sustained.time)?;
        session.push(runs);
        if action == Action::Write {
            file.keep_written()?;
        }
    }
    Ok(())
}

/// Makes the largest file that may be.
fn make_file(folder: &Path, sustained: &Sustained) -> Result<TrialFile> {
    let (free, limit) = room(folder)?;
    let used = BYTES_PER_SECOND_MAX.saturating_mul(sustained.time.as_secs().max(1));
    let most = [sustained.file_bytes_max, free / FREE_PART, limit, used].into_iter().min();
    let block = BLOCK_BYTES as u64;
    let mut bytes = most.unwrap_or_default() / block * block;
    if bytes < FILE_BYTES_MIN {
        let subject = format!("trial file in {}", folder.display());
        let asked_bytes = FILE_BYTES_MIN * FREE_PART;
        return Err(Error::NoRoom { subject, asked_bytes, left_bytes: free.min(limit) });
    }
    loop {
        match TrialFile::make_empty(folder, bytes, BLOCK_BYTES) {
            // The user's quota may be smaller than the free space.
            Err(Error::NoRoom { .. }) if bytes / 2 >= FILE_BYTES_MIN => {
                bytes = bytes / 2 / block * block;
            }
            made => return made,
        }
    }
}

/// Makes one stream of requests for `time`.
fn stream(
    session: &mut Session<'_>,
    file: &mut TrialFile,
    action: Action,
    time: Duration,
) -> Result<Series> {
    let blocks = (file.bytes() / BLOCK_BYTES as u64) as usize;
    let job = Job { action, depth: DEPTH.min(blocks), ..Job::read(Order::Sequential, BLOCK_BYTES) };
    job.verify(file)?;
    let Means { job, ring, notes } = means(file, &job)?;
    file.advise(Advice::Sequential);
    file.set_direct(true)?;
    let (generation, stop) = (file.next_generation(), session.stop);
    let shared: &TrialFile = file;
    let windows = Arc::new(Windows::of(time));
    let mut workers = session.team.prepare(job.threads, |thread| {
        let places = Places::together(BLOCK_BYTES, shared.bytes(), thread, job.threads);
        let too_small = || Error::BadRequest("the trial file has no block".to_owned());
        let worker = Worker::at(&job, shared, ring, places.ok_or_else(too_small)?)?;
        Ok(worker.counting(&windows))
    })?;
    workers.iter_mut().try_for_each(|worker| worker.prepare(shared, generation))?;
    let mut runs =
        session.long_run(subject(shared, &job, ring, time), &windows, |team, show| {
            let work = |_: usize, worker: &mut Worker| worker.run(shared, generation, time, stop);
            team.run_watched(&mut workers, work, show).map(|_| ())
        })?;
    workers.iter_mut().try_for_each(|worker| worker.compare(shared))?;
    file.set_direct(false)?;
    let requests: u64 = workers.iter().map(|worker| worker.outcome.requests).sum();
    let done = if action == Action::Write { "written to" } else { "read from" };
    runs.notes.push(format!(
        "{} {done} a file of {}",
        number::bytes(requests * BLOCK_BYTES as u64),
        number::bytes(file.bytes())
    ));
    runs.notes.extend(notes);
    Ok(runs)
}

/// Makes the subject. It does not name the size of the file, which changes with the free space.
fn subject(file: &TrialFile, job: &Job, ring: bool, time: Duration) -> Subject {
    let seconds = match time.subsec_nanos() {
        0 => Value::from(time.as_secs()),
        _ => Value::from(time.as_secs_f64()),
    };
    let Subject { area, measurement, parameters, unit } = job.subject();
    let measurement = measurement.replace("sequential", "sustained");
    let parameters = parameters
        .with("calls", calls(job, ring))
        .with("seconds", seconds)
        .with("file_system", file.file_system());
    Subject::new(area, measurement, parameters, unit)
}
