//! Stop requests from outside of a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::input::{free, put_new};

/// A stop request, which may come from any thread. Calls end soon after the request, not at once.
pub struct Stop {
    flag: Arc<AtomicBool>,
}

impl Stop {
    /// Returns the flag at a pointer, or a new one if the caller passed none.
    ///
    /// # Safety
    /// The pointer is NULL or valid, and no thread has exclusive use of it.
    pub(crate) unsafe fn flag(stop: *const Stop) -> Arc<AtomicBool> {
        // SAFETY: the caller promises that the pointer is NULL, or valid and only shared.
        unsafe { stop.as_ref() }.map_or_else(Arc::default, |stop| Arc::clone(&stop.flag))
    }
}

/// Returns an error if the run was stopped.
pub(crate) fn unless(stopped: &AtomicBool) -> Result<(), Failure> {
    if stopped.load(Ordering::Relaxed) { Err(Failure::Stopped) } else { Ok(()) }
}

/// Creates a stop object without a request. Free it with quarrier_stop_free() after the calls that have
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_stop_new(stop: *mut *mut Stop, error: *mut *mut Error) -> Status {
    // SAFETY: the header requires that `error` and `stop` are NULL or writable.
    unsafe { run(error, || put_new(stop, "stop", Stop { flag: Arc::default() })) }
}

/// Requests the calls that have this object to end. A signal handler may call this. The request cannot
/// be revoked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_stop_request(stop: *const Stop) {
    // SAFETY: the header requires that `stop` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    if let Some(stop) = unsafe { stop.as_ref() } {
        stop.flag.store(true, Ordering::Relaxed);
    }
}

/// Returns whether a stop was requested.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_stop_is_requested(stop: *const Stop) -> bool {
    // SAFETY: the header requires that `stop` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { stop.as_ref() }.is_some_and(|stop| stop.flag.load(Ordering::Relaxed))
}

/// Frees a stop object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_stop_free(stop: *mut Stop) {
    // SAFETY: the header requires that `stop` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(stop) });
}
