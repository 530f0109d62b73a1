//! Measured throughput of a source by request size and queue depth, from which runs are planned.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::region::AlignedBuffer;
use crate::source::{Source, read_full_at};
use crate::threads;

/// Measured rates of a source, or of the disk it is on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// The rate of each measured combination of request size and queue depth.
    pub asked: Vec<AccessRate>,
    /// The place where the rates were measured, as plans name it.
    pub of: String,
}

/// The rate of sequential reading with one request size and queue depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccessRate {
    /// Bytes per request.
    pub block_bytes: usize,
    /// Requests in flight at once.
    pub in_flight: usize,
    /// Bytes per second of all requests together.
    pub bytes_per_second: f64,
}

/// Rates within this share of the best count as equal, given the precision of measurements.
const ALIKE: f64 = 0.97;
/// A probe takes at most this long and at most this share of the bytes to read.
const PROBE_TIME: Duration = Duration::from_secs(1);
const PROBE_PART: u64 = 16;
/// A trial of one combination aims at this time, with at least this many rounds of requests.
const TRIAL_TIME: Duration = Duration::from_millis(60);
const TRIAL_ROUNDS: u64 = 2;
/// Shorter reads would end before a probe could determine the rates.
const PROBED_BYTES_MIN: u64 = 256 << 20;
const BLOCK_BYTES: usize = 1 << 20;
/// The request sizes that a plan may choose.
const BLOCKS_BYTES: RangeInclusive<usize> = 1 << 20..=16 << 20;
const UNDER_WAY_BYTES_MAX: u64 = 256 << 20;
const IN_FLIGHT_MAX: usize = 32;

impl Rates {
    /// Returns the combination with nearly the highest rate and the fewest bytes in flight. It
    /// excludes requests below 1 MiB, which cost workers too much time, and requests above 16 MiB
    /// or more than 256 MiB in flight, which cost too much memory.
    pub fn best(&self) -> Option<AccessRate> {
        let fits = |asked: &&AccessRate| {
            BLOCKS_BYTES.contains(&asked.block_bytes)
                && asked.in_flight > 0
                && asked.bytes_under_way() <= UNDER_WAY_BYTES_MAX
        };
        let asked = || self.asked.iter().filter(fits);
        let most = asked().map(|asked| asked.bytes_per_second).fold(0.0, f64::max);
        let alike = asked().filter(|asked| asked.bytes_per_second >= ALIKE * most);
        alike.min_by_key(|asked| (asked.bytes_under_way(), asked.in_flight)).copied()
    }

    /// Measures the source: reads the first bytes of `range` in several ways, for a second at most,
    /// and at most a 16th of them. Returns `None` for a range under 256 MiB, which is too short to
    /// be worth it, or if the bytes cannot be read.
    pub fn probe(source: &dyn Source, range: Range<u64>) -> Option<Self> {
        let length = range.end.saturating_sub(range.start);
        if length < PROBED_BYTES_MIN {
            return None;
        }
        // Measuring a hole would report a rate that is too high.
        let data = source.next_data(range.start).ok()??;
        let mut probe = Probe {
            source,
            at: data.start.max(range.start),
            end: range.start + length / PROBE_PART,
            until: Instant::now() + PROBE_TIME,
            asked: Vec::new(),
        };
        probe.more_at_once(BLOCK_BYTES);
        let in_flight = Rates { asked: probe.asked.clone(), of: String::new() }.best()?.in_flight;
        probe.ask(4 * BLOCK_BYTES, in_flight);
        let of = "a trial of the source".to_string();
        Some(Rates { asked: probe.asked, of }).filter(|rates| !rates.asked.is_empty())
    }
}

impl AccessRate {
    /// Returns the bytes in flight at once.
    pub fn bytes_under_way(&self) -> u64 {
        (self.block_bytes as u64).saturating_mul(self.in_flight as u64)
    }

    /// Returns the number of requests to keep in flight: twice as many as gave nearly the highest
    /// rate, since a disk can be slower than when it was measured.
    pub(super) fn with_room(&self) -> usize {
        let fit = UNDER_WAY_BYTES_MAX as usize / self.block_bytes.max(1);
        (2 * self.in_flight).min(fit.min(IN_FLIGHT_MAX)).max(self.in_flight)
    }
}

/// A probe of a source, which reads each byte once.
struct Probe<'a> {
    source: &'a dyn Source,
    at: u64,
    end: u64,
    until: Instant,
    asked: Vec<AccessRate>,
}

impl Probe<'_> {
    /// Doubles the number of requests in flight as long as the rate grows.
    fn more_at_once(&mut self, block_bytes: usize) {
        let mut in_flight = 1;
        let mut in_vain = 0;
        let mut most = 0.0;
        while in_flight <= IN_FLIGHT_MAX && in_vain < 2 {
            let Some(rate) = self.ask(block_bytes, in_flight) else { return };
            in_vain = if rate > most / ALIKE { 0 } else { in_vain + 1 };
            most = rate.max(most);
            in_flight *= 2;
        }
    }

    /// Measures one combination; `None` if time or bytes do not suffice.
    fn ask(&mut self, block_bytes: usize, in_flight: usize) -> Option<f64> {
        let block = block_bytes as u64;
        let least = TRIAL_ROUNDS * in_flight as u64 * block;
        if self.at + least > self.end || Instant::now() >= self.until {
            return None;
        }
        // Later trials need bytes, too: use a quarter of the rest, unless the minimum is more.
        let end = (self.at + least.max((self.end - self.at) / 4)).min(self.end);
        let (next, given) = (AtomicU64::new(self.at), AtomicU64::new(0));
        let started = Instant::now();
        let until = (started + TRIAL_TIME).min(self.until);
        let must = self.at + least;
        let asked = threads::team(0..in_flight, |_| {
            let mut buffer = AlignedBuffer::new(block_bytes);
            loop {
                let at = next.fetch_add(block, Ordering::Relaxed);
                let is_late = at >= must && Instant::now() >= until;
                if is_late || at + block > end || Instant::now() >= self.until {
                    return;
                }
                let Ok(bytes) = read_full_at(self.source, at, &mut buffer[..block_bytes]) else {
                    return;
                };
                given.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
        let seconds = started.elapsed().as_secs_f64();
        self.at = next.into_inner().min(end);
        let bytes = given.into_inner();
        if bytes < least || seconds <= 0.0 || asked.len() < in_flight {
            return None;
        }
        let bytes_per_second = bytes as f64 / seconds;
        self.asked.push(AccessRate { block_bytes, in_flight, bytes_per_second });
        Some(bytes_per_second)
    }
}
