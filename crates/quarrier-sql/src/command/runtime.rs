//! The threads that run statements.
//!
//! The runtime panics, or waits forever, if the system refuses it a thread. So the number of
//! threads that the system grants is determined beforehand, and the runtime requests no more.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use quarrier_core::threads;
use tokio::runtime::{Builder, Runtime};

/// Threads besides the workers, for blocking work (reading files, loads) and for watching the
/// clock.
const SPARE: usize = 4;

/// The minimum number of such threads.
const SPARE_MIN: usize = 2;

/// How long threads may take to end after the statement that they work for was abandoned.
const PATIENCE: Duration = Duration::from_millis(100);

/// Builds a runtime of up to `workers` workers. Returns it with the number of its workers.
///
/// # Errors
/// The system grants too few threads for one worker and its helpers.
pub(super) fn runtime(workers: usize, stack_bytes: usize) -> io::Result<(Runtime, usize)> {
    let wanted = workers + SPARE;
    let (there, refused) = available(wanted, stack_bytes);
    let mut builder = Builder::new_multi_thread();
    let mut workers = workers;
    if let Some(error) = refused {
        workers = workers.min(there.saturating_sub(SPARE_MIN));
        if workers == 0 {
            return Err(error);
        }
        // Blocking work waits for one of these to become free.
        builder.max_blocking_threads(there - workers - 1);
    }
    let runtime = builder.worker_threads(workers).thread_stack_size(stack_bytes).build()?;
    Ok((runtime, workers))
}

/// Ends the threads of `runtime`. An abandoned scan continues until the process ends.
///
/// This joins the threads. `Runtime::shutdown_background` detaches them while they end, and glibc's
/// `pthread_detach` can then read a thread's descriptor after the thread has unmapped it with its
/// stack (bug 19951). One run died there of a SIGSEGV; 1,000 more did not. Threads that outlast
/// `PATIENCE` are still detached.
pub(super) fn end(runtime: Runtime) {
    runtime.shutdown_timeout(PATIENCE);
}

/// Builds a runtime for connections, which wait most of the time. Statements run on another
/// runtime.
///
/// # Errors
/// The system grants too few threads for it.
pub(super) fn runtime_of_connections() -> io::Result<Runtime> {
    const WORKERS: usize = 2;
    const STACK_BYTES: usize = 2 << 20;
    let (there, refused) = available(WORKERS + SPARE_MIN, STACK_BYTES);
    if let (Some(error), 0..=1) = (refused, there) {
        return Err(error);
    }
    let workers = WORKERS.min(there - 1);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).max_blocking_threads(there - workers);
    builder.thread_stack_size(STACK_BYTES).enable_all().build()
}

/// How many of `wanted` threads the system grants at once, and why it refused more.
fn available(wanted: usize, stack_bytes: usize) -> (usize, Option<io::Error>) {
    let mut all = Vec::with_capacity(wanted);
    let mut refused = None;
    for _ in 0..wanted {
        let (end, waiting) = mpsc::channel::<()>();
        let wait = move || {
            // `recv` returns an error when the sender is dropped, which ends the thread.
            let _ = waiting.recv();
        };
        match threads::alone_on_stack("", stack_bytes, wait) {
            Ok(thread) => all.push((end, thread)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let there = all.len();
    for (end, thread) in all {
        drop(end);
        // The thread cannot panic.
        let _ = thread.join();
    }
    (there, refused)
}
