//! The ends and times of a job's commands, as their events record them.

use std::time::Duration;

use cl3::error_codes::{CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_VALUE};
use cl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END,
    CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, get_event_data,
    get_event_profiling_data, release_event, wait_for_events,
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

    /// The error message of a job in which such a step failed.
    pub(super) fn failure(self) -> &'static str {
        match self {
            Part::Copy => "a copy to the device failed",
            Part::Kernel => "a kernel failed",
            Part::Collect => "a copy from the device failed",
        }
    }
}

pub(super) fn release(event: cl_event) {
    // SAFETY: an enqueueing call returned the event, and the owner releases it once.
    let _ = unsafe { release_event(event) };
}

/// Waits until all steps of a job have ended. Returns the part and the error code of the first step that
/// failed or whose end cannot be determined.
pub(super) fn wait(steps: &[(Part, cl_event)]) -> std::result::Result<(), (Part, i32)> {
    let mut all = Ok(());
    for &(part, event) in steps {
        // After a failed step, others may still be running.
        let ended = ended(event).map_err(|code| (part, code));
        all = all.and(ended);
    }
    all
}

fn ended(event: cl_event) -> std::result::Result<(), i32> {
    let waited = match status(event) {
        Ok(..=CL_COMPLETE) => Ok(()),
        Ok(_) | Err(_) => wait_for_events(&[event]),
    };
    match status(event)? {
        CL_COMPLETE => Ok(()),
        code @ ..CL_COMPLETE => Err(code),
        _ => Err(waited.err().unwrap_or(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)),
    }
}

/// Returns the status of a command: above `CL_COMPLETE` before its end, below if it failed.
fn status(event: cl_event) -> std::result::Result<i32, i32> {
    let bytes = get_event_data(event, CL_EVENT_COMMAND_EXECUTION_STATUS)?;
    bytes.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(CL_INVALID_VALUE)
}

/// Returns the times of the parts of a finished job, measured from when its first step was enqueued.
pub(super) fn times(done: &[(Part, cl_event)]) -> Times {
    let mut times = Times::default();
    let Some((_, first)) = done.first() else { return times };
    let origin = clock(*first, CL_PROFILING_COMMAND_QUEUED);
    for &(part, event) in done {
        let start = clock(event, CL_PROFILING_COMMAND_START).saturating_sub(origin);
        let end = clock(event, CL_PROFILING_COMMAND_END).saturating_sub(origin).max(start);
        let moment = match part {
            Part::Copy => &mut times.copy,
            Part::Kernel => &mut times.kernel,
            Part::Collect => &mut times.collect,
        };
        moment.add(Duration::from_nanos(start), Duration::from_nanos(end));
    }
    times
}

/// A time of an event in nanoseconds of the device's clock; 0 if the driver does not report it.
fn clock(event: cl_event, which: u32) -> u64 {
    let bytes = get_event_profiling_data(event, which).unwrap_or_default();
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
