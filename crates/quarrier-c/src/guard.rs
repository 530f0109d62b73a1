//! Entry points of calls: they catch panics, and turn failures into statuses and error objects.

use std::sync::Once;

use quarrier_core::panics;

use crate::error::{Error, Failure, Status};

/// Silences panics: they become errors.
fn quiet() {
    static QUIET: Once = Once::new();
    if !QUIET.is_completed() {
        QUIET.call_once(|| panics::watch(|| false));
    }
}

/// Runs a call that can fail, and stores the error in `error` if the caller wants it.
///
/// # Safety
/// `error` is NULL or writable.
#[inline]
pub(crate) unsafe fn run(
    error: *mut *mut Error,
    call: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    quiet();
    let failure = match panics::caught(call) {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panicked) => Failure::Internal(panicked.to_string()),
    };
    // SAFETY: the caller promises that `error` is NULL or writable.
    unsafe { hand_out(failure, error) }
}

/// # Safety
/// `error` is NULL or writable.
#[cold]
unsafe fn hand_out(failure: Failure, error: *mut *mut Error) -> Status {
    let status = failure.status();
    if !error.is_null() {
        // SAFETY: the caller promises that `error` is writable if it is not NULL; being a `*mut *mut
        // Error` of C, it is aligned. Its old value, if it has one, needs no drop.
        unsafe { error.write(Box::into_raw(Box::new(failure.into_error()))) };
    }
    status
}

/// Runs a call that cannot fail, and returns its value, or `otherwise` if it panics.
#[inline]
pub(crate) fn value<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    quiet();
    panics::caught(call).unwrap_or(otherwise)
}
