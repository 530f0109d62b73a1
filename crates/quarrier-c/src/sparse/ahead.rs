//! Readahead: how much more to fetch than was requested.

use std::ffi::c_char;
use std::time::Duration;

use super::cost::CostModel;
use super::held::SparseFile;
use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::input::{free, object, object_mut, put, put_new, text};
use crate::span::Span;

/// Plans the requests of one reader from its earlier reads: fetches ahead if that saves a request.
pub struct ReadAhead {
    ahead: quarrier_sparse::ReadAhead,
    planned: Vec<Span>,
}

/// Creates a planner for the request costs in model; NULL for one that learns the costs from
/// quarrier_read_ahead_observe(). Free it with quarrier_read_ahead_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_read_ahead_new(
    model: *const CostModel,
    ahead: *mut *mut ReadAhead,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `ahead` are NULL or writable; `model` is NULL or
    // as long as its `struct_bytes` says.
    unsafe {
        run(error, || {
            let made = match model.is_null() {
                true => quarrier_sparse::ReadAhead::learning(),
                false => quarrier_sparse::ReadAhead::new(CostModel::of(model)?),
            };
            put_new(ahead, "ahead", ReadAhead { ahead: made, planned: Vec::new() })
        })
    }
}

/// Frees a planner.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_read_ahead_free(ahead: *mut ReadAhead) {
    // SAFETY: the header requires that `ahead` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(ahead) });
}

/// Stores the requests to make before the range of file can be read: none if all of it is held. requests
/// gets the first of count requests, which are valid until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_read_ahead_plan(
    ahead: *mut ReadAhead,
    file: *const SparseFile,
    offset: u64,
    length: u64,
    requests: *mut *const Span,
    count: *mut usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error`, `requests` and `count` are NULL or writable; `file`
    // is NULL or alive, and all threads share it as a pointer to const during the call; `ahead` is
    // NULL or alive, and only this thread uses it, as it is passed without const.
    unsafe {
        run(error, || {
            let (ahead, file) = (object_mut(ahead, "ahead")?, object(file, "file")?);
            let wanted = quarrier_sparse::Span::new(offset, length);
            let planned = file.look(|file| ahead.ahead.plan(file, wanted))?;
            ahead.planned = planned.into_iter().map(Span::from).collect();
            put(requests, ahead.planned.as_ptr());
            put(count, ahead.planned.len());
            Ok(())
        })
    }
}

/// Records a request: its bytes, the seconds until the first byte arrived, and until the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_read_ahead_observe(
    ahead: *mut ReadAhead,
    bytes: u64,
    first_byte_seconds: f64,
    all_seconds: f64,
    error: *mut *mut Error,
) -> Status {
    let time = |seconds: f64, name| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::Argument(name, "it is not a valid time"))
    };
    // SAFETY: the header requires that `error` is NULL or writable; `ahead` is NULL or alive, and
    // only this thread uses it, as it is passed without const.
    unsafe {
        run(error, || {
            let first_byte = time(first_byte_seconds, "first_byte_seconds")?;
            let all = time(all_seconds, "all_seconds")?;
            object_mut(ahead, "ahead")?.ahead.observe(bytes, first_byte, all);
            Ok(())
        })
    }
}

/// Returns the number of bytes that arrive within the latency of a request, by current estimates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_read_ahead_reach_bytes(ahead: *const ReadAhead) -> u64 {
    // SAFETY: the header requires that `ahead` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { object(ahead, "ahead").map_or(0, |ahead| ahead.ahead.reach_bytes()) })
}

/// Plans the first request of a file with this name and unknown length: returns true and stores its
/// head; or returns false if the name says that the file's directory is at its end: then request the
/// last 64 KiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_read_ahead_first(name: *const c_char, head: *mut Span) -> bool {
    // SAFETY: the header requires that `head` is NULL or writable; `name` is NULL or ends with a
    // zero byte.
    value(false, || unsafe {
        let first = text(name, "name").map(quarrier_sparse::ReadAhead::first);
        match first {
            Ok(Some(span)) => {
                put(head, span.into());
                true
            }
            _ => false,
        }
    })
}
