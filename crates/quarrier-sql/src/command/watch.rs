//! Work that ends when it is interrupted, or takes too long.
//!
//! A thread of its own looks at the clock: the runtime's timers stand still while all of its threads
//! are in the middle of something, such as a join of everything with everything.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use quarrier_core::threads;
use quarrier_sql::{Error, Result};
use tokio::sync::oneshot;

use super::Session;

/// How often the flag is looked at.
const PERIOD: Duration = Duration::from_millis(20);

/// The result of `work`, unless Ctrl-C or the time limit comes first.
pub(super) async fn until<T>(
    session: &Session<'_>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (watch, alarm) = Watch::begin(&session.stop, session.query.timeout);
    let ended = tokio::select! {
        done = work => done,
        Ok(alarm) = alarm => Err(alarm),
    };
    drop(watch);
    ended
}

/// A thread that looks at the flag and the clock until this is dropped.
struct Watch {
    thread: Option<Thread>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// The receiver yields why the work has to end; without a thread, it yields nothing.
    fn begin(stop: &Arc<AtomicBool>, limit: Option<Duration>) -> (Self, oneshot::Receiver<Error>) {
        let (sender, alarm) = oneshot::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (stop, seen_over) = (Arc::clone(stop), Arc::clone(&is_over));
        let began = Instant::now();
        let look = move || {
            while !seen_over.load(Ordering::Relaxed) {
                let late = limit.filter(|&limit| began.elapsed() >= limit);
                let error = match late {
                    _ if stop.load(Ordering::Relaxed) => Error::Cancelled,
                    Some(limit) => Error::TimedOut { seconds: limit.as_secs_f64() },
                    None => {
                        thread::park_timeout(PERIOD);
                        continue;
                    }
                };
                // Loads look at the flag, too.
                stop.store(true, Ordering::Relaxed);
                let _ = sender.send(error);
                return;
            }
        };
        let thread = threads::alone("watch", look);
        let thread = thread.ok().map(|handle| handle.thread().clone());
        (Watch { thread, is_over }, alarm)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}
