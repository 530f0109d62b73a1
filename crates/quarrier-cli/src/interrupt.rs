//! Ctrl-C: the first asks the run to end in order, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

/// A flag that becomes true at the first SIGINT or SIGTERM.
pub(crate) fn watch() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
        // In this order: the second signal finds the flag set and ends the process. Where
        // the handlers cannot be installed, the signal ends the process at once.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    flag
}
