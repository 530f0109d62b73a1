//! Counts the work of a long run window by window, over all threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A run has at least this many windows.
const LEAST: u32 = 20;
/// A run has at most this many.
const MOST: u64 = 600;

/// Windows of equal length, from the start of the first thread on.
pub(crate) struct Windows {
    start: OnceLock<Instant>,
    length: Duration,
    units: Vec<AtomicU64>,
}

impl Windows {
    /// Creates windows for a run of `time`: of whole seconds, 600 at most, or 20 shorter ones if it takes
    /// less than 20 s. The last seconds of a long run that make no window do not count.
    pub(crate) fn of(time: Duration) -> Windows {
        let second = Duration::from_secs(1);
        let length = if time < second * LEAST {
            (time / LEAST).max(Duration::from_millis(1))
        } else {
            Duration::from_secs(time.as_secs().div_ceil(MOST))
        };
        let count = time.as_nanos() / length.as_nanos();
        Windows {
            start: OnceLock::new(),
            length,
            units: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Begins the first window, unless another thread has.
    pub(crate) fn begin(&self) {
        self.start.get_or_init(Instant::now);
    }

    /// Adds units that were done by `now`. Units after the last window do not count.
    pub(crate) fn add(&self, now: Instant, units: u64) {
        let Some(&start) = self.start.get() else { return };
        let place = now.saturating_duration_since(start).as_nanos() / self.length.as_nanos();
        if let Some(window) = usize::try_from(place).ok().and_then(|place| self.units.get(place)) {
            window.fetch_add(units, Ordering::Relaxed);
        }
    }

    /// The length of a window in seconds.
    pub(crate) fn window_seconds(&self) -> f64 {
        self.length.as_secs_f64()
    }

    /// The length of all windows in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.window_seconds() * self.units.len() as f64
    }

    /// The units per second in each window.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let counts = self.units.iter().map(|units| units.load(Ordering::Relaxed));
        counts.map(|units| units as f64 / self.window_seconds()).collect()
    }

    /// The seconds since the start, and the rate in the last complete window; `None` before there is one.
    pub(crate) fn now(&self) -> Option<(f64, f64)> {
        let passed = self.start.get()?.elapsed();
        let complete = passed.as_nanos() / self.length.as_nanos();
        let last = usize::try_from(complete).ok()?.min(self.units.len()).checked_sub(1)?;
        let units = self.units.get(last)?.load(Ordering::Relaxed);
        Some((passed.as_secs_f64(), units as f64 / self.window_seconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_seconds_unless_these_are_too_few_or_too_many() {
        for (millis, window_millis, count) in [
            (0, 1, 0),
            (10, 1, 10),
            (2_000, 100, 20),
            (19_999, 999, 20),
            (20_000, 1_000, 20),
            (60_500, 1_000, 60),
            (600_000, 1_000, 600),
            (601_000, 2_000, 300),
            (86_400_000, 144_000, 600),
        ] {
            let windows = Windows::of(Duration::from_millis(millis));
            assert_eq!(windows.length.as_millis(), window_millis, "{millis}");
            assert_eq!(windows.units.len(), count, "{millis}");
        }
    }

    #[test]
    fn work_counts_in_the_window_in_which_it_was_done() {
        let windows = Windows::of(Duration::from_secs(20));
        windows.add(Instant::now(), 1_000); // before the start
        windows.begin();
        let start = *windows.start.get().unwrap();
        windows.begin();
        assert_eq!(windows.start.get(), Some(&start));
        for (millis, units) in [(0, 1), (999, 2), (1_000, 4), (19_999, 8), (20_000, 16)] {
            windows.add(start + Duration::from_millis(millis), units);
        }
        let rates = windows.rates();
        assert_eq!((rates[0], rates[1], rates[19]), (3.0, 4.0, 8.0));
        assert_eq!(rates.iter().sum::<f64>(), 15.0);
    }
}
