//! The schedule of requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum delay until `stop` takes effect.
const LOOK: Duration = Duration::from_millis(50);

/// Requests of one thread during one run: in a closed loop, or at a given rate.
pub(crate) struct Schedule<'a> {
    until: Instant,
    stop: &'a AtomicBool,
    /// The time of the next request, and the interval to the one after; `None` in a closed loop.
    due: Option<(Instant, Duration)>,
}

/// The next step of a thread.
pub(crate) enum Turn {
    /// Make a request, whose time runs from this instant.
    Go(Instant),
    /// Wait until this instant, and ask again.
    Wait(Instant),
    /// Make no more requests.
    Over,
}

impl<'a> Schedule<'a> {
    /// Creates a schedule that runs from now for `time`, or until `stop` is set. `offered_per_second`
    /// is the rate of this thread alone.
    pub(crate) fn new(
        time: Duration,
        offered_per_second: Option<f64>,
        stop: &'a AtomicBool,
    ) -> Schedule<'a> {
        let now = Instant::now();
        let due = offered_per_second.map(|rate| (now, Duration::from_secs_f64(1.0 / rate)));
        Schedule { until: now + time, stop, due }
    }

    /// Returns the next step at `now`. Requests that fell due and could not be made are made later, and
    /// their time runs from when they fell due.
    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        if self.stop.load(Ordering::Relaxed) {
            return Turn::Over;
        }
        match &mut self.due {
            None if now >= self.until => Turn::Over,
            None => Turn::Go(now),
            Some((due, _)) if *due >= self.until => Turn::Over,
            Some((due, _)) if *due > now => Turn::Wait((*due).min(now + LOOK)),
            Some((due, gap)) => {
                let since = *due;
                *due += *gap;
                Turn::Go(since)
            }
        }
    }
}
