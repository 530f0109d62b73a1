//! Locks that ignore poisoning, and a flag that is set when its owner is dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, even if a thread panicked while it held the lock.
///
/// For data that every holder leaves consistent at each step. A panic in one thread then does not
/// spread to the others; the thread that started them gets the first panic.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Releases the lock and waits for `changed`, even if another holder panicked meanwhile.
pub fn wait<'mutex, T>(changed: &Condvar, held: MutexGuard<'mutex, T>) -> MutexGuard<'mutex, T> {
    changed.wait(held).unwrap_or_else(PoisonError::into_inner)
}

/// Returns the data of `mutex`, even if a thread panicked while it held the lock.
pub fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Sets a stop flag when it is dropped, also by a panic.
///
/// If the reader of results holds it, the work that produces them stops once nobody waits for more.
#[derive(Debug, Default)]
pub struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    /// The flag, for the work to check.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_held_during_a_panic_can_be_locked_again() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = crate::threads::in_scope(scope, "", || {
                *lock(&mutex) = 2;
                let _held = lock(&mutex);
                std::panic::resume_unwind(Box::new("as a thread does that fails"));
            });
            holder.unwrap().join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 2);
    }

    #[test]
    fn a_flag_is_set_when_its_owner_is_dropped_also_by_a_panic() {
        let owner = StopOnDrop::default();
        let flag = owner.flag();
        assert!(!flag.load(Ordering::Relaxed));
        let moved = move || {
            let _owner = owner;
            std::panic::resume_unwind(Box::new("as work does that fails"));
        };
        let panicked = std::panic::catch_unwind(moved).is_err();
        assert!(panicked && flag.load(Ordering::Relaxed));
    }
}
