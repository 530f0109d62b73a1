//! The speed of the disk under a folder.
//!
//! ```text
//!  folder ─→ TrialFile: random bytes, no name ─→ Job, Job, … ─→ Reading with percentiles
//!                           ↑ every read block is partly compared with the written bytes
//! ```
//!
//! Each direct read has one stamp compared; one read in 16 MiB, and the last ones of a run, are
//! compared whole. Reads from the page cache have every page's stamp compared, and all of the last
//! block after each run. Comparing everything would measure the comparison and its effect on the
//! processor's caches.

mod content;
mod job;
mod kernel;
mod measure;
mod named;
mod places;
mod plain;

mod ring;
mod room;
mod small;
mod sustained;
mod sweep;
mod sync;
mod worker;

pub use job::{Action, Cache, Job, Order};
pub use measure::measure_job;
pub(crate) use named::measure_named;
pub use named::measure_on;
pub use room::TrialFile;
pub use sustained::measure_sustained;
pub use sync::measure_sync;

use crate::Request;
use crate::error::Result;
use crate::trial::Session;

/// The trial file's size, for the profile and for a report. A smaller file would fit in the caches of
/// the disk, or of a virtual machine's host.
const QUICK_BYTES: u64 = 256 << 20;
const FULL_BYTES: u64 = 1 << 30;
/// Request times are measured at these shares of the closed loop's rate.
const OFFERED_SHARES: [f64; 2] = [0.5, 0.8];
const OFFERED_DEPTH: usize = 64;

/// State for the second visit: both visits use the same blocks of the disk.
#[derive(Default)]
pub(crate) struct VisitState {
    file: Option<TrialFile>,
    /// Random reads per second of the first visit.
    random_reads: Option<f64>,
}

pub(crate) fn measure(
    request: &Request,
    session: &mut Session<'_>,
    state: &mut VisitState,
) -> Result<()> {
    if let Some(sustained) = &request.sustained {
        return measure_sustained(session, &request.path, sustained);
    }
    let effort = session.effort.clone();
    session.effort = effort.for_answers();
    let result = measure_all(request, session, state);
    session.effort = effort;
    result
}

fn measure_all(request: &Request, session: &mut Session<'_>, state: &mut VisitState) -> Result<()> {
    let bytes = if request.quick { QUICK_BYTES } else { FULL_BYTES };
    let file = match &mut state.file {
        Some(file) => file,
        none => none.insert(TrialFile::make(&request.path, bytes, session.stop)?),
    };
    let mut random_reads = 0.0f64;
    for job in sweep::jobs(request) {
        session.check_stop()?;
        let runs = measure_job(session, file, &job)?;
        let used = (job.order, job.action, job.block_bytes, job.cache);
        if used == (Order::Random, Action::Read, 4096, Cache::Direct) {
            random_reads = random_reads.max(runs.reading().value);
        }
        session.push(runs);
    }
    let runs = measure_sync(session, file)?;
    session.push(runs);
    let random_reads = *state.random_reads.get_or_insert(random_reads);
    for share in OFFERED_SHARES.iter().filter(|_| !request.quick) {
        let offered_per_second = Some((random_reads * share).max(1.0));
        let base = Job::read(Order::Random, 4096);
        let job = Job { offered_per_second, depth: OFFERED_DEPTH, ..base };
        let runs = measure_job(session, file, &job)?;
        session.push(runs);
    }
    // The next measurement may need the page cache's memory.
    file.forget()?;
    Ok(())
}
