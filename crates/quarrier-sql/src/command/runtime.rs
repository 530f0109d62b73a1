//! The threads that statements are answered with.
//!
//! The runtime panics, or waits for ever, if the system refuses it a thread. So the number of threads
//! that can be had is determined beforehand, and the runtime requests no more.

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use quarrier_core::threads;
use tokio::runtime::{Builder, Runtime};

/// Threads beside the workers, for what waits (reading files, loads) and for looking at the clock.
const SPARE: usize = 4;

/// The fewest of them.
const SPARE_MIN: usize = 2;

/// How long threads have to end that work for a statement which was given up.
const PATIENCE: Duration = Duration::from_millis(100);

/// A runtime of up to `workers` workers, and how many they are.
///
/// # Errors
/// If the system has too few threads for one worker and its helpers.
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
        // Work that finds none of them free waits for one.
        builder.max_blocking_threads(there - workers - 1);
    }
    let runtime = builder.worker_threads(workers).thread_stack_size(stack_bytes).build()?;
    Ok((runtime, workers))
}

/// Ends the threads of `runtime`. A scan that was left alone goes on until the process ends.
///
/// Joins the threads. `Runtime::shutdown_background` detaches them while they end, and glibc's
/// `pthread_detach` can then read a thread's descriptor after the thread has unmapped it with its
/// stack (bug 19951). One run died there of a SIGSEGV; 1,000 more did not. Threads that outlast
/// the patience are still detached.
pub(super) fn end(runtime: Runtime) {
    runtime.shutdown_timeout(PATIENCE);
}

/// A runtime for connections, which wait most of the time. Statements have their own.
///
/// # Errors
/// If the system has no threads for it.
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

/// How many of `wanted` threads there can be at once, and why there are not more.
fn available(wanted: usize, stack_bytes: usize) -> (usize, Option<io::Error>) {
    let mut all = Vec::with_capacity(wanted);
    let mut refused = None;
    for _ in 0..wanted {
        let (end, waiting) = mpsc::channel::<()>();
        let wait = move || {
            // Ends with an error when the other side is dropped, as it is.
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
        // It does not panic.
        let _ = thread.join();
    }
    (there, refused)
}
