//! Ctrl-C: the first asks the run to end in order, a later one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::threads;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};

/// A second signal within this time is taken for an echo of the first: some senders signal
/// both the process and its group.
const ECHO: Duration = Duration::from_millis(500);

/// A flag that becomes true at the first SIGINT or SIGTERM.
pub fn watch() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let impatient = Arc::new(AtomicBool::new(false));
    let (seen, armed) = (Arc::clone(&stop), Arc::clone(&impatient));
    // Without a thread that prints a message, the second signal ends the process.
    let impatient = match threads::alone("signals", move || arm(&seen, &armed)) {
        Ok(_) => impatient,
        Err(_) => Arc::clone(&stop),
    };
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
        // In this order: a later signal finds `impatient` set and ends the process. Where the
        // handlers cannot be installed, the signal ends the process at once.
        let armed = Arc::clone(&impatient);
        let _ = signal_hook::flag::register_conditional_shutdown(signal, code, armed);
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// From now on, a file beyond the size limit (`ulimit -f`) is an error of the write, and does not end
/// the process.
pub(crate) fn outlive_long_files() {
    // Where the handler cannot be installed, the system ends the process, as it does without one.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Opens the way out some time after the first signal; ends with the process.
fn arm(seen: &AtomicBool, armed: &AtomicBool) {
    let mut first: Option<Instant> = None;
    while first.is_none_or(|first| first.elapsed() < ECHO) {
        std::thread::sleep(Duration::from_millis(50));
        if first.is_none() && seen.load(Ordering::Relaxed) {
            first = Some(Instant::now());
        }
    }
    armed.store(true, Ordering::Relaxed);
}
