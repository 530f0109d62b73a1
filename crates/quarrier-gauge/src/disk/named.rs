//! Finds a job by the name and parameters of a reading.

use std::path::PathBuf;

use super::job::{Action, Cache, Job, Order};
use super::room::TrialFile;
use super::{FULL_BYTES, measure_job, measure_sync};
use crate::error::{Error, Result};
use crate::named::{size, threads, unknown, word};
use crate::reading::{Area, Parameters, Value};
use crate::trial::Session;

/// Measures `name` in the folder `path`, with a file of `file_bytes`.
pub(crate) fn measure_named(
    session: &mut Session<'_>,
    name: &str,
    parameters: &Parameters,
) -> Result<()> {
    let folder = parameters
        .text("path")
        .map(PathBuf::from)
        .ok_or_else(|| Error::BadRequest("add path=FOLDER, on the disk to measure".into()))?;
    let job = job_of(name, parameters)?;
    let bytes = size(parameters, "file_bytes", FULL_BYTES as usize) as u64;
    let mut file = TrialFile::make(&folder, bytes, session.stop)?;
    measure(session, &mut file, job.as_ref())
}

/// Measures `name` on an existing file, for callers that run another program on the same blocks of the
/// disk: the place of a file can change its rate twofold.
///
/// # Errors
/// If the measurement or a parameter's value is unknown, and those of [`measure_job`].
pub fn measure_on(
    session: &mut Session<'_>,
    file: &mut TrialFile,
    name: &str,
    parameters: &Parameters,
) -> Result<()> {
    let job = job_of(name, parameters)?;
    measure(session, file, job.as_ref())
}

fn measure(session: &mut Session<'_>, file: &mut TrialFile, job: Option<&Job>) -> Result<()> {
    let for_answers = session.effort.for_answers();
    let effort = std::mem::replace(&mut session.effort, for_answers);
    let runs = match job {
        Some(job) => measure_job(session, file, job),
        None => measure_sync(session, file),
    };
    session.effort = effort;
    session.push(runs?);
    Ok(())
}

/// Returns `None` if `name` is the latency of a sync.
fn job_of(name: &str, parameters: &Parameters) -> Result<Option<Job>> {
    if name == "sync" {
        return Ok(None);
    }
    let (order, action) = match name.trim_end_matches(" latency") {
        "sequential read" => (Order::Sequential, Action::Read),
        "sequential write" => (Order::Sequential, Action::Write),
        "random read" => (Order::Random, Action::Read),
        "random write" => (Order::Random, Action::Write),
        _ => return Err(unknown(Area::Disk, name)),
    };
    let offered_per_second = match parameters.get("offered_per_second") {
        Some(Value::Integer(rate)) => Some(*rate as f64),
        Some(Value::Number(rate)) => Some(*rate),
        _ => None,
    };
    Ok(Some(Job {
        order,
        action,
        cache: word(parameters, "cache", "direct", Cache::of)?,
        block_bytes: size(parameters, "block_bytes", 4096),
        depth: size(parameters, "depth", 1),
        threads: threads(parameters),
        offered_per_second,
    }))
}
