//! The locks of the queue. The package `interleavings` compiles the queue with the locks of `loom` instead,
//! which tries every order in which threads can run.

pub(super) use std::sync::{Arc, Condvar, Mutex};

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

pub(super) use quarrier_core::sync::{lock, wait};

/// Waits for `changed` while `holds`, at most for `time`, and releases the lock meanwhile.
pub(super) fn wait_while<'mutex, T>(
    changed: &Condvar,
    held: MutexGuard<'mutex, T>,
    time: Duration,
    holds: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'mutex, T> {
    let waited = changed.wait_timeout_while(held, time, holds);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
