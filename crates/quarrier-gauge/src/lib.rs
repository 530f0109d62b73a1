//! The machine's ceilings: the maximum rates of CPU, memory, disk, network and GPUs.
//!
//! ```text
//!  Request ─→ measure ─→ cpu · memory · disk · network · gpu ─→ Reading, Reading, … ─→ Report
//!                          │ each: a Subject and a trial
//!                          ▼
//!             trial: warm-up, runs on pinned threads, some dropped, until the median is known
//! ```
//!
//! Everything is measured in two visits, so that the runs of a reading are well apart in time; readings
//! that other users slowed are visited once more.
//!
//! A [`Reading`] is the median of runs that checked their result, with the spread and the conditions of
//! the measurement. A disturbed reading is marked as such.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use quarrier_gauge::{Area, Request, measure};
//!
//! let request = Request { areas: vec![Area::Memory], ..Request::quick("/var/tmp") };
//! let report = measure(&request, &mut (), &AtomicBool::new(false))?;
//! for reading in &report.readings {
//!     assert!(reading.value > 0.0);
//! }
//! # Ok::<(), quarrier_gauge::Error>(())
//! ```

mod array_bytes;
mod request;

mod reading;

pub mod report;

pub mod compare;

mod gate;

pub mod profile;

pub mod conditions;

pub mod trial;

pub mod statistics;

mod processor;

pub mod cpu;

pub mod memory;

pub mod disk;

pub mod network;

mod gpu;

mod latencies;

mod schedule;

mod one;

mod named;

mod error;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use error::{Error, Result};
pub use gate::{Gate, gate};
pub use one::measure_one;
pub use reading::{Area, Parameters, Percentiles, Reading, Subject, Timeline, Unit, Value};
pub use report::{FORMAT, Report};
pub use request::{Network, Request, Sustained};
pub use trial::Progress;

use conditions::{Conditions, Limits, Snapshot};
use trial::Session;

/// An additional visit to disturbed readings takes at most this part of the time that they took.
const AGAIN_PART: u32 = 4;
/// A quick measurement starts nothing more after this time.
const QUICK_MOST: Duration = Duration::from_secs(26);

/// Measures the requested areas in order, and then all of them again.
///
/// # Errors
/// If the request contradicts itself, a result is wrong, the system refuses something indispensable, or
/// `stop` is set.
pub fn measure(
    request: &Request,
    progress: &mut dyn Progress,
    stop: &AtomicBool,
) -> Result<Report> {
    request.check()?;
    let before = Snapshot::take();
    let when = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let start = Instant::now();
    let mut session = Session::new(request.effort.clone(), progress, stop)?;
    let clock_before_hertz = cpu::clock_hertz(&session.team).ok();
    let (mut disk, mut network) = (disk::VisitState::default(), network::VisitState::default());
    let visits = request.visits();
    for visit in 1..=visits {
        session.visit(visit, visits);
        for &area in &request.areas {
            match area {
                Area::Cpu => cpu::measure(request, &mut session)?,
                Area::Memory => memory::measure(request, &mut session)?,
                Area::Disk => disk::measure(request, &mut session, &mut disk)?,
                Area::Network => network::measure(request, &mut session, &mut network)?,
                Area::Gpu => gpu::measure(request, &mut session)?,
            }
        }
    }
    if visits > 1 {
        let until = start + start.elapsed() + start.elapsed() / AGAIN_PART;
        let until = if request.quick { until.min(start + QUICK_MOST) } else { until };
        visit_again(request, &mut session, until)?;
    }
    let clock_after_hertz = cpu::clock_hertz(&session.team).ok();
    let machine = session.machine.clone();
    let mut readings = session.readings();
    mark_limited(&mut readings, &machine.limits);
    let limited_by = (!machine.limits.is_none()).then(|| machine.limits.describe());
    let during = before.since();
    Ok(Report {
        format: FORMAT,
        quarrier: env!("CARGO_PKG_VERSION").to_owned(),
        when,
        seconds: before.seconds(),
        machine,
        limited_by,
        conditions: Conditions {
            load_before: before.load(),
            load_after: Snapshot::take().load(),
            steal: during.steal,
            others: during.others,
            throttled_periods: during.throttled_periods,
            throttled_seconds: during.throttled_seconds,
            pressure: during.pressure,
            clock_before_hertz,
            clock_after_hertz,
            disturbed: readings.iter().filter(|reading| reading.disturbed).count() as u32,
        },
        readings,
    })
}

/// Marks readings whose threads need more CPU time than a quota allows: they show the moments in which the
/// threads had it.
fn mark_limited(readings: &mut [Reading], limits: &Limits) {
    let (Some(cpus), Some(words)) = (limits.quota_cpus, limits.describe_quota()) else { return };
    let is_of_cpus = |reading: &&mut Reading| matches!(reading.area, Area::Cpu | Area::Memory);
    for reading in readings.iter_mut().filter(is_of_cpus) {
        let threads = reading.parameters.integer("threads").unwrap_or(1);
        if threads as f64 > cpus {
            reading.notes.push(format!("limited by: {words}"));
            (reading.disturbed, reading.conditions.disturbed) = (true, true);
        }
    }
}

/// Visits arithmetic and memory once more if other users slowed them, and starts nothing after `until`.
/// Disk and network runs do not show whether other users slowed them.
fn visit_again(request: &Request, session: &mut Session<'_>, until: Instant) -> Result<()> {
    session.visit_again(until);
    for &area in &request.areas {
        match area {
            Area::Cpu => cpu::measure(request, session)?,
            Area::Memory => memory::measure(request, session)?,
            Area::Disk | Area::Network | Area::Gpu => (),
        }
    }
    Ok(())
}
