//! Ctrl-C while Rust works: another thread works, and the calling thread checks for signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;
use quarrier_core::threads;

/// The interval between checks for signals.
const PERIOD: Duration = Duration::from_millis(50);

/// Runs `work` with the interpreter's lock released. When a signal handler raises, the flag passed
/// to `work` becomes true; `work` must then end soon.
///
/// # Errors
/// The exception that the handler raised (`KeyboardInterrupt` for Ctrl-C), after `work` has ended.
/// `OSError` if the system refuses a thread.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, waiting) = mpsc::channel::<()>();
            let stop = &stop;
            let worker = threads::in_scope(scope, "", move || {
                // Dropped at the end, or by a panic, which wakes the waiting thread.
                let _done = done;
                work(stop)
            })?;
            let mut raised = None;
            while waiting.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| py.check_signals()) {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                    break;
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}
