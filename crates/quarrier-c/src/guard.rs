//! Where calls come in: panics end here, and failures become what C understands.

use std::sync::Once;

use quarrier_core::panics;

use crate::error::{Error, Failure, Status};

/// Sees that panics print nothing: they become errors.
fn quiet() {
    static QUIET: Once = Once::new();
    if !QUIET.is_completed() {
        QUIET.call_once(|| panics::watch(|| false));
    }
}

/// Runs a call that can fail, and hands out its failure where somebody wants it.
///
/// # Safety
/// `error` is NULL or can be written to.
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
    // SAFETY: as the caller promises.
    unsafe { hand_out(failure, error) }
}

/// # Safety
/// `error` is NULL or can be written to.
#[cold]
unsafe fn hand_out(failure: Failure, error: *mut *mut Error) -> Status {
    let status = failure.status();
    // SAFETY: as the caller promises.
    if let Some(place) = unsafe { error.as_mut() } {
        *place = Box::into_raw(Box::new(failure.into_error()));
    }
    status
}

/// What a call that cannot fail returns; of a panic, `otherwise`.
#[inline]
pub(crate) fn value<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    quiet();
    panics::caught(call).unwrap_or(otherwise)
}
