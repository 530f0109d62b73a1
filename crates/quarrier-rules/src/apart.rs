//! Work on a thread of its own, which the caller can leave behind.
//!
//! The rules' library looks at the clock now and then only, and never at whether anybody still waits. A
//! thread that is left behind ends with its work; what it holds is freed then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use quarrier_core::panics::{Panicked, caught};
use quarrier_core::threads::alone_on_stack;

/// How often the caller looks whether it still waits.
const GLANCE: Duration = Duration::from_millis(20);

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    /// It took too long.
    Late,
    /// Nobody waits any more.
    Stopped,
    /// The system refused a thread.
    Thread(String),
    /// The work panicked.
    Panicked(Panicked),
}

/// Runs `work` until it ends, `within` is over, or `stop` becomes true.
///
/// # Errors
/// If it did not end.
pub(crate) fn apart<T: Send + 'static>(
    stack_bytes: usize,
    within: Duration,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Left> {
    let (sender, receiver) = sync_channel(1);
    let started = Instant::now();
    let run = move || {
        // Whether anybody takes it does not matter.
        let _ = sender.send(caught(work));
    };
    alone_on_stack("rules", stack_bytes, run).map_err(|error| Left::Thread(error.to_string()))?;
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(result) => return result.map_err(Left::Panicked),
            // It never ends without a result.
            Err(RecvTimeoutError::Disconnected) => return Err(Left::Late),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Left::Stopped);
        }
        if started.elapsed() >= within {
            return Err(Left::Late);
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
        let told = std::panic::take_hook();
        quarrier_core::panics::watch(|| false);
        let panicked =
            apart(STACK_BYTES, LONG, &go, || -> u8 { panic!("as work does that fails") });
        std::panic::set_hook(told);
        assert!(matches!(panicked, Err(Left::Panicked(_))));
    }

    #[test]
    fn work_without_an_end_is_left_behind() {
        fn endless() {
            loop {
                std::thread::sleep(LONG);
            }
        }
        let stopped: Result<(), Left> = apart(STACK_BYTES, LONG, &AtomicBool::new(true), endless);
        assert_eq!(stopped, Err(Left::Stopped));
        let soon = Duration::from_millis(1);
        let late: Result<(), Left> = apart(STACK_BYTES, soon, &AtomicBool::new(false), endless);
        assert_eq!(late, Err(Left::Late));
    }
}
