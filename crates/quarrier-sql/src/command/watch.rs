//! Ends work on Ctrl-C or at its time limit.
//!
//! A separate thread watches the clock, because the runtime's timers stall while all of its threads
//! are busy, such as in a cross join.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::{Error, Result};
use quarrier_core::threads;
use tokio::sync::oneshot;

use super::Session;

/// How often the flag and the clock are checked.
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

/// A thread that watches the flag and the clock until this is dropped.
struct Watch {
    thread: Option<Thread>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    /// The receiver yields why the work has to end. If no thread could start, it yields nothing.
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
                // Loads check the flag, too.
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
