//! Loom's locks, under the names in `src/log/sync.rs`.

pub(crate) use loom::sync::{Arc, Condvar, Mutex};

use std::sync::PoisonError;
use std::time::Duration;

use loom::sync::MutexGuard;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn wait<'mutex, T>(
    changed: &Condvar,
    held: MutexGuard<'mutex, T>,
) -> MutexGuard<'mutex, T> {
    changed.wait(held).unwrap_or_else(PoisonError::into_inner)
}

/// Without a clock: a thread that is not woken waits forever, which loom reports.
pub(crate) fn wait_while<'mutex, T>(
    changed: &Condvar,
    mut held: MutexGuard<'mutex, T>,
    _: Duration,
    mut holds: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'mutex, T> {
    while holds(&mut held) {
        held = wait(changed, held);
    }
    held
}
