//! The times of a job's commands, as their events record them.

use std::time::Duration;

use cl3::event::{
    CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_QUEUED,
    CL_PROFILING_COMMAND_START, get_event_data, get_event_profiling_data, release_event,
};
use cl3::types::cl_event;

use crate::driver::{Step, Times};

/// The part of a job that a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Copy,
    Kernel,
    Collect,
}

impl Part {
    pub(super) fn of(step: &Step<'_>) -> Self {
        match step {
            Step::Write { .. } | Step::Show { .. } => Part::Copy,
            Step::Launch { .. } | Step::Copy { .. } | Step::Zero { .. } => Part::Kernel,
            Step::Read { .. } | Step::Hide { .. } => Part::Collect,
        }
    }
}

pub(super) fn release(event: cl_event) {
    // SAFETY: an enqueueing call returned the event, and the owner releases it once.
    let _ = unsafe { release_event(event) };
}

/// Returns the times of the parts of a finished job, measured from when its first step was
/// enqueued, or the error code of a step that failed.
pub(super) fn times(done: &[(Part, cl_event)]) -> std::result::Result<Times, i32> {
    let mut times = Times::default();
    let Some((_, first)) = done.first() else { return Ok(times) };
    let origin = clock(*first, CL_PROFILING_COMMAND_QUEUED);
    for &(part, event) in done {
        let status = get_event_data(event, CL_EVENT_COMMAND_EXECUTION_STATUS)?;
        if let [a, b, c, d] = *status.as_slice()
            && let code @ ..0 = i32::from_ne_bytes([a, b, c, d])
        {
            return Err(code);
        }
        let start = clock(event, CL_PROFILING_COMMAND_START).saturating_sub(origin);
        let end = clock(event, CL_PROFILING_COMMAND_END).saturating_sub(origin).max(start);
        let moment = match part {
            Part::Copy => &mut times.copy,
            Part::Kernel => &mut times.kernel,
            Part::Collect => &mut times.collect,
        };
        moment.add(Duration::from_nanos(start), Duration::from_nanos(end));
    }
    Ok(times)
}

/// A time of an event in nanoseconds of the device's clock; 0 if the driver does not report it.
fn clock(event: cl_event, which: u32) -> u64 {
    let bytes = get_event_profiling_data(event, which).unwrap_or_default();
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
