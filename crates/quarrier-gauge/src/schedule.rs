//! The schedule of requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long it takes at most until `stop` is seen.
const LOOK: Duration = Duration::from_millis(50);

/// Requests of one thread during one run: in a closed loop, or at a rate of their own.
pub(crate) struct Schedule<'a> {
    until: Instant,
    stop: &'a AtomicBool,
    /// When the next is due, and the interval to the one after; `None` in a closed loop.
    due: Option<(Instant, Duration)>,
}

/// The next action.
pub(crate) enum Turn {
    /// A request; its time runs from then.
    Go(Instant),
    /// Nothing until then; it is to be asked again.
    Wait(Instant),
    /// No more requests.
    Over,
}

impl<'a> Schedule<'a> {
    /// From now for `time`, or until `stop` is set; `offered_per_second` by this thread alone.
    pub(crate) fn new(
        time: Duration,
        offered_per_second: Option<f64>,
        stop: &'a AtomicBool,
    ) -> Schedule<'a> {
        let now = Instant::now();
        let due = offered_per_second.map(|rate| (now, Duration::from_secs_f64(1.0 / rate)));
        Schedule { until: now + time, stop, due }
    }

    /// Whether there is a request to make at `now`. Requests that were due and could not be made
    /// are made later, and their time runs from when they were due.
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
