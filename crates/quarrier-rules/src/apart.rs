//! Runs work on a separate thread that the caller can abandon.
//!
//! boreal checks the clock only now and then, and never checks for cancellation. An abandoned
//! thread ends when its work ends, and frees its memory then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use quarrier_core::panics::{Panicked, caught};
use quarrier_core::threads::alone_on_stack;

/// How often the caller checks `stop` and its time limit.
const GLANCE: Duration = Duration::from_millis(20);

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// The work took too long.
    Late,
    /// `stop` became true.
    Stopped,
    /// The system could not start a thread.
    Thread(String),
    /// The work panicked.
    Panicked(Panicked),
}

/// Runs `work` until it ends, `within` has passed, or `stop` becomes true.
///
/// # Errors
/// If `work` panicked or did not end, or if no thread could be started.
pub(crate) fn apart<T: Send + 'static>(
    stack_bytes: usize,
    within: Duration,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    let (sender, receiver) = sync_channel(1);
    let started = Instant::now();
    let run = move || {
        // The caller may have stopped waiting.
        let _ = sender.send(caught(work));
    };
    alone_on_stack("rules", stack_bytes, run)
        .map_err(|error| Unfinished::Thread(error.to_string()))?;
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(result) => return result.map_err(Unfinished::Panicked),
            // Unreachable: the thread always sends a result.
            Err(RecvTimeoutError::Disconnected) => return Err(Unfinished::Late),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Unfinished::Stopped);
        }
        if started.elapsed() >= within {
            return Err(Unfinished::Late);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK_BYTES: usize = 1 << 20;
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn work_that_ends_has_its_result_and_a_panic_is_an_error() {
        let go = AtomicBool::new(false);
        assert_eq!(apart(STACK_BYTES, LONG, &go, || 7), Ok(7));
        let hook = std::panic::take_hook();
        quarrier_core::panics::watch(|| false);
        let panicked =
            apart(STACK_BYTES, LONG, &go, || -> u8 { panic!("as work does that fails") });
        std::panic::set_hook(hook);
        assert!(matches!(panicked, Err(Unfinished::Panicked(_))));
    }

    #[test]
    fn endless_work_is_abandoned() {
        fn endless() {
            loop {
                std::thread::sleep(LONG);
            }
        }
        let stopped: Result<(), Unfinished> =
            apart(STACK_BYTES, LONG, &AtomicBool::new(true), endless);
        assert_eq!(stopped, Err(Unfinished::Stopped));
        let soon = Duration::from_millis(1);
        let late: Result<(), Unfinished> =
            apart(STACK_BYTES, soon, &AtomicBool::new(false), endless);
        assert_eq!(late, Err(Unfinished::Late));
    }
}
