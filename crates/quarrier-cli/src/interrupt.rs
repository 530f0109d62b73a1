//! Ctrl-C: the first asks the run to stop cleanly, a later one ends the process.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::threads;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// A second signal within this time counts as an echo of the first: some senders signal both the
/// process and its group.
const ECHO: Duration = Duration::from_millis(500);

/// A flag that becomes true at the first SIGINT or SIGTERM.
pub fn watch() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let impatient = Arc::new(AtomicBool::new(false));
    let (seen, armed) = (Arc::clone(&stop), Arc::clone(&impatient));
    // Without a thread to print a message, the second signal ends the process.
    let impatient = match threads::alone("signals", move || arm(&seen, &armed)) {
        Ok(_) => impatient,
        Err(_) => Arc::clone(&stop),
    };
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143)] {
        // The order matters: a later signal finds `impatient` set and ends the process. If the handlers
        // cannot be installed, the first signal ends the process.
        let armed = Arc::clone(&impatient);
        let _ = signal_hook::flag::register_conditional_shutdown(signal, code, armed);
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// Sets the flag also when the terminal is closed, for commands that must tidy up; but not under `nohup`,
/// which makes the process ignore that signal.
pub(crate) fn watch_hangup(stop: &Arc<AtomicBool>) {
    if !is_ignored(SIGHUP) {
        // If the handler cannot be installed, the default action remains: the signal ends the process.
        let _ = signal_hook::flag::register(SIGHUP, Arc::clone(stop));
    }
}

/// Whether this process ignores a signal; false if unknown.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail with an error instead of ending the
/// process.
pub(crate) fn outlive_long_files() {
    // If the handler cannot be installed, the default action remains: the signal ends the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Lets a second signal end the process some time after the first. Disarms this when the flag is
/// cleared, as the prompt does before the next statement. Runs as long as the process.
fn arm(seen: &AtomicBool, armed: &AtomicBool) {
    let mut patience = Patience::default();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let step = patience.step(seen.load(Ordering::Relaxed), Instant::now());
        armed.store(step.may_end, Ordering::Relaxed);
        if step.is_first {
            acknowledge();
        }
    }
}

/// Acknowledges the signal on a terminal, since the current work may take a while to end.
fn acknowledge() {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        // Padding overwrites a progress bar in the line. The process ends even if this write fails.
        let _ = write!(terminal, "\r{:<79}\n", "stopping; Ctrl-C once more ends at once");
    }
}

/// The signals received so far.
#[derive(Debug, Default)]
struct Patience {
    /// When the first signal was seen; `None` after the flag was cleared.
    first: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    /// Whether the next signal ends the process.
    may_end: bool,
    /// Whether this check saw the first signal.
    is_first: bool,
}

impl Patience {
    fn step(&mut self, is_seen: bool, now: Instant) -> Step {
        let is_first = is_seen && self.first.is_none();
        self.first = match is_seen {
            true => self.first.or(Some(now)),
            false => None,
        };
        let may_end = self.first.is_some_and(|first| now.duration_since(first) >= ECHO);
        Step { may_end, is_first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_signal_ends_the_process_until_the_first_is_taken_back() {
        let start = Instant::now();
        let mut patience = Patience::default();
        let mut check = |is_seen, millis, may_end, is_first| {
            let now = start + Duration::from_millis(millis);
            assert_eq!(patience.step(is_seen, now), Step { may_end, is_first }, "{millis} ms");
        };
        check(false, 0, false, false);
        check(true, 50, false, true);
        // An echo of the first does not end the process.
        check(true, 400, false, false);
        check(true, 600, true, false);
        // The prompt's next statement.
        check(false, 700, false, false);
        check(true, 800, false, true);
        check(true, 1_300, true, false);
    }
}
