//! Remote sources, tested with a server that fails on demand in many ways.
#![allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

#[path = "../kit/bucket.rs"]
#[allow(dead_code, reason = "shared by the tests of several crates")]
mod bucket;
mod server;

mod cache;
mod changes;
mod credentials;
mod ending;
mod faults;
mod fetching;
mod folder;
mod journal;
mod killed;
mod opening;

use std::time::Duration;

use quarrier_remote::{Options, Remote, Retry, Timeouts};

/// Reproducible pseudo-random bytes (xorshift).
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..length).map(|_| (random.next() >> 32) as u8).collect()
}

/// Pseudo-random numbers from a seed.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
}

/// Options that waste no time on failures. A busy machine alone does not cause failures, since
/// attempts are counted.
fn hasty() -> Options {
    let mut options = Options::default();
    options.timeouts = Timeouts {
        connect: Duration::from_secs(60),
        progress: Duration::from_secs(60),
        bytes_per_second_min: 1,
        slow_for: Duration::from_secs(60),
    };
    options.retry = Retry {
        attempts_max: 12,
        fruitless_time_max: Duration::from_secs(600),
        delay: Duration::from_millis(1),
        delay_max: Duration::from_millis(4),
        failed_ranges_max: 4,
    };
    options
}

/// As [`hasty`], without fetching more than requested, and with a single byte at opening.
fn exact() -> Options {
    let mut options = hasty();
    options.read_ahead = false;
    options
}

/// Short timeouts, for servers that send nothing or very slowly.
fn impatient() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(60),
        progress: Duration::from_secs(2),
        bytes_per_second_min: 50_000,
        slow_for: Duration::from_secs(1),
    }
}

fn remote(options: Options) -> Remote {
    Remote::new(options).unwrap()
}
