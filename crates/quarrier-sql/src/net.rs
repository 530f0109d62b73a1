//! Catches panics, and turns them into errors of the statement.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use quarrier_core::panics;

use crate::{Error, Result};

/// Runs a future, and turns a panic into an error.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| Err(Error::Internal(panics::taken())))
}

/// Runs a closure, and turns a panic into an error.
pub(crate) fn caught_now<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    panics::caught(work).unwrap_or_else(|panicked| Err(Error::Internal(panicked)))
}

/// Runs work that may block on a disk or take long. It runs on a thread for blocking work, and a panic
/// becomes an error.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(|| caught_now(work)).await {
        Ok(done) => done,
        Err(error) => Err(Error::Setup { reason: format!("work ended early: {error}") }),
    }
}
