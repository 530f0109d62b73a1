//! A thread that tends the open data folder: merges, retention and checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quarrier::DataFolder;
use quarrier_core::threads;

/// How often the thread looks for work.
const PERIOD: Duration = Duration::from_secs(1);

/// The thread; dropping this waits for its end.
pub(super) struct Tender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tender {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn begin(kept: Arc<DataFolder>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let tend = move || {
            while !stopped.load(Ordering::Relaxed) {
                // One thread: statements have the others. What fails is tried again, and a log that accepts no
                // more reports that to its writers.
                let _ = kept.tend(1, &stopped);
                thread::park_timeout(PERIOD);
            }
        };
        let thread = Some(threads::alone("tender", tend)?);
        Ok(Tender { stop, thread })
    }
}

impl Drop for Tender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was printed.
            let _ = thread.join();
        }
    }
}
