//! How fast a source gives bytes, by how it is asked: what a plan goes by.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::region::AlignedBuffer;
use crate::source::{Source, read_full_at};
use crate::threads;

/// What was measured of a source, or of the disk on which it lies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// Each way of asking that was tried.
    pub asked: Vec<Asked>,
    /// Where that was measured, as plans name it.
    pub of: String,
}

/// One way to ask a source for its bytes in order, and what it gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// Bytes of a request.
    pub block_bytes: usize,
    /// Requests under way at once.
    pub in_flight: usize,
    /// Bytes a second of all requests together.
    pub bytes_per_second: f64,
}

/// What gives this much of the most is as good: a rate is not known better.
const ALIKE: f64 = 0.97;
/// A source is tried out for so long at most, and on so small a part of what will be read.
const PROBE_TIME: Duration = Duration::from_secs(1);
const PROBE_PART: u64 = 16;
/// One way of asking is tried for so long, if it can be, and with so many rounds of requests.
const TRIAL_TIME: Duration = Duration::from_millis(60);
const TRIAL_ROUNDS: u64 = 2;
/// Less than this is read before its rates are known.
const PROBED_BYTES_MIN: u64 = 256 << 20;
const BLOCK_BYTES: usize = 1 << 20;
/// What a plan may ask for.
const BLOCKS_BYTES: RangeInclusive<usize> = 1 << 20..=16 << 20;
const UNDER_WAY_BYTES_MAX: u64 = 256 << 20;
const IN_FLIGHT_MAX: usize = 32;

impl Rates {
    /// The way that gives nearly the most with the fewest bytes under way. Requests of less than
    /// 1 MiB, or of more than 16 MiB, and more than 256 MiB under way do not come into question:
    /// the first are too much to do for workers, the others too much memory.
    pub fn best(&self) -> Option<Asked> {
        let fits = |asked: &&Asked| {
            BLOCKS_BYTES.contains(&asked.block_bytes)
                && asked.in_flight > 0
                && asked.bytes_under_way() <= UNDER_WAY_BYTES_MAX
        };
        let asked = || self.asked.iter().filter(fits);
        let most = asked().map(|asked| asked.bytes_per_second).fold(0.0, f64::max);
        let alike = asked().filter(|asked| asked.bytes_per_second >= ALIKE * most);
        alike.min_by_key(|asked| (asked.bytes_under_way(), asked.in_flight)).copied()
    }

    /// Tries the source out: reads the first bytes of `range` in several ways, for a second at
    /// most, and at most a 16th of them. `None` where there are too few to be worth that (under
    /// 256 MiB), and where they cannot be read.
    pub fn probe(source: &dyn Source, range: Range<u64>) -> Option<Self> {
        let length = range.end.saturating_sub(range.start);
        if length < PROBED_BYTES_MIN {
            return None;
        }
        // A hole would seem to be fast.
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

impl Asked {
    /// Bytes that are asked for at once.
    pub fn bytes_under_way(&self) -> u64 {
        (self.block_bytes as u64).saturating_mul(self.in_flight as u64)
    }

    /// Requests to have under way when it is asked this way: twice as many as gave nearly the most,
    /// since a rate is known from a moment, and a disk is slower in another.
    pub(super) fn with_room(&self) -> usize {
        let fit = UNDER_WAY_BYTES_MAX as usize / self.block_bytes.max(1);
        (2 * self.in_flight).min(fit.min(IN_FLIGHT_MAX)).max(self.in_flight)
    }
}

/// A source while it is tried out, each byte once.
struct Probe<'a> {
    source: &'a dyn Source,
    at: u64,
    end: u64,
    until: Instant,
    asked: Vec<Asked>,
}

impl Probe<'_> {
    /// Twice as many requests at once, as long as that brings something.
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

    /// Tries one way; `None` where time or bytes do not suffice.
    fn ask(&mut self, block_bytes: usize, in_flight: usize) -> Option<f64> {
        let block = block_bytes as u64;
        let least = TRIAL_ROUNDS * in_flight as u64 * block;
        if self.at + least > self.end || Instant::now() >= self.until {
            return None;
        }
        // Trials that are still to come have their share of the bytes.
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
        self.asked.push(Asked { block_bytes, in_flight, bytes_per_second });
        Some(bytes_per_second)
    }
}
