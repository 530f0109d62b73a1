//! Locks that outlive a panic.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also where a thread panicked that held it.
///
/// For data that every holder leaves consistent at each step, so that a panic in one thread does not
/// become one in all the others: the thread that started them gets the first one.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `changed` with the lock given back, also where a thread panicked meanwhile.
pub fn wait<'mutex, T>(changed: &Condvar, held: MutexGuard<'mutex, T>) -> MutexGuard<'mutex, T> {
    changed.wait(held).unwrap_or_else(PoisonError::into_inner)
}

/// The data of `mutex`, also where a thread panicked that held it.
pub fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_left_locked_can_be_locked_again() {
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
}
