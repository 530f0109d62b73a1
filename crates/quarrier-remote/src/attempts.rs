//! The retry policy: the number of attempts, and the delay between them.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::options::Retry;

/// Attempts to connect to a server that has never responded: a mistyped name should be reported
/// soon.
pub(crate) const CONNECT_ATTEMPTS_MAX: u32 = 3;

/// The attempts to fetch one range.
#[derive(Debug)]
pub(crate) struct Attempts {
    retry: Retry,
    attempts_max: u32,
    /// Consecutive attempts without new bytes, and when the first of them failed.
    in_vain: u32,
    since: Instant,
    pub(crate) made: u32,
}

impl Attempts {
    /// Allows at most `attempts_max` consecutive attempts without new bytes.
    pub(crate) fn new(retry: &Retry, attempts_max: u32) -> Self {
        let (retry, since) = (retry.clone(), Instant::now());
        Attempts { retry, attempts_max: attempts_max.max(1), in_vain: 0, since, made: 0 }
    }

    /// Records a failed attempt; `is_further` if it delivered some bytes nevertheless. Returns the
    /// delay before the next attempt, or `None` to give up.
    pub(crate) fn failed(&mut self, is_further: bool, asked: Option<Duration>) -> Option<Duration> {
        self.made += 1;
        if is_further {
            (self.in_vain, self.since) = (0, Instant::now());
        }
        self.in_vain += 1;
        let is_late = self.since.elapsed() >= self.retry.fruitless_time_max;
        if self.in_vain >= self.attempts_max || is_late {
            return None;
        }
        let doubled = self.retry.delay.saturating_mul(1 << (self.in_vain - 1).min(20));
        // Jitter, so that clients that failed together do not retry together.
        let random = RandomState::new().hash_one(self.made) as f64 / u64::MAX as f64;
        let delay = doubled.min(self.retry.delay_max).mul_f64(0.5 + 0.5 * random);
        Some(delay.max(asked.unwrap_or_default()).min(self.retry.delay_max))
    }
}

/// Logs why an attempt to fetch from `offset` failed, and when the next one follows. `name` must
/// not contain secrets.
pub(crate) fn log_retry(name: &str, offset: u64, made: u32, (wait, reason): (Duration, &str)) {
    let wait_seconds = wait.as_secs_f64();
    tracing::warn!(source = name, offset, attempt = made, wait_seconds, reason, "trying again");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_attempts_end() {
        let retry = Retry {
            attempts_max: 8,
            fruitless_time_max: Duration::MAX,
            delay: Duration::from_millis(100),
            delay_max: Duration::from_millis(1000),
            failed_ranges_max: 8,
        };
        let mut attempts = Attempts::new(&retry, retry.attempts_max);
        let waits: Vec<_> = std::iter::from_fn(|| attempts.failed(false, None)).collect();
        assert_eq!((waits.len(), attempts.made), (7, 8));
        for (n, wait) in waits.iter().enumerate() {
            let most = (100 << n).min(1000);
            assert!((most / 2..=most).contains(&(wait.as_millis() as u64)), "{n}: {wait:?}");
        }
    }

    #[test]
    fn a_server_that_brings_nothing_is_given_up_after_a_time() {
        let retry = Retry { fruitless_time_max: Duration::from_millis(20), ..Retry::default() };
        let mut attempts = Attempts::new(&retry, 1_000);
        std::thread::sleep(Duration::from_millis(30));
        assert!(attempts.failed(true, None).is_some(), "bytes came");
        std::thread::sleep(Duration::from_millis(30));
        assert!(attempts.failed(false, None).is_none());
    }

    #[test]
    fn attempts_that_bring_bytes_do_not_count_and_servers_may_ask_for_longer_waits() {
        let retry = Retry { delay_max: Duration::from_secs(5), ..Retry::default() };
        let mut attempts = Attempts::new(&retry, 2);
        for _ in 0..100 {
            assert!(attempts.failed(true, None).is_some());
        }
        assert!(attempts.failed(false, None).is_none());
        let mut attempts = Attempts::new(&retry, 2);
        let wait = attempts.failed(false, Some(Duration::from_secs(60)));
        assert_eq!(wait, Some(Duration::from_secs(5)));
    }
}
