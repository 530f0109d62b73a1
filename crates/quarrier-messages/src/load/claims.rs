//! Claims: ranges of a source, handed out to workers in order.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Packing;
use quarrier_core::sync::lock;

const BYTES_MAX: u64 = 64 << 20;
/// A little less than a segment, so that claims rarely end with a few rows of another one.
fn rows_wanted(packing: Packing) -> u64 {
    (packing.segment_rows as u64 * 31 / 32).max(1)
}

/// Consecutive ranges, each long enough to fill a segment.
#[derive(Debug)]
pub(super) struct Claims {
    next: Mutex<(u64, usize)>,
    end: u64,
    workers: u64,
    bytes: AtomicU64,
    rows: AtomicU64,
    packing: Packing,
    /// Maximum length of a range in bytes.
    bytes_max: u64,
}

impl Claims {
    /// Divides `all` into ranges of at most `bytes_max` bytes.
    pub(super) fn new(all: Range<u64>, workers: usize, packing: Packing, bytes_max: u64) -> Self {
        Claims {
            next: Mutex::new((all.start, 0)),
            end: all.end,
            workers: workers as u64,
            bytes: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            packing,
            bytes_max: bytes_max.clamp(1, BYTES_MAX),
        }
    }

    /// Whether everything was handed out.
    pub(super) fn are_over(&self) -> bool {
        lock(&self.next).0 >= self.end
    }

    /// Returns the next range and its number; `None` at the end.
    pub(super) fn next(&self) -> Option<(Range<u64>, usize)> {
        let mut next = lock(&self.next);
        let (start, number) = *next;
        if start >= self.end {
            return None;
        }
        // Near the end, the workers share the rest.
        let share = (self.end - start).div_ceil(self.workers).max(self.packing.claim_bytes);
        let end = start + self.wanted_bytes().min(share).min(self.end - start);
        *next = (end, number + 1);
        Some((start..end, number))
    }

    /// Stops handing out ranges.
    pub(super) fn close(&self) {
        lock(&self.next).0 = self.end;
    }

    /// Records the number of messages in `bytes` bytes.
    pub(super) fn learn(&self, bytes: u64, rows: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    /// Returns the number of bytes that fill a segment.
    pub(super) fn wanted_bytes(&self) -> u64 {
        let (bytes, rows) = (self.bytes.load(Ordering::Relaxed), self.rows.load(Ordering::Relaxed));
        if rows == 0 {
            return self.packing.claim_bytes.clamp(1, self.bytes_max);
        }
        let wanted = u128::from(bytes) * u128::from(rows_wanted(self.packing)) / u128::from(rows);
        u64::try_from(wanted)
            .unwrap_or(BYTES_MAX)
            .clamp((self.packing.claim_bytes / 4).clamp(1, self.bytes_max), self.bytes_max)
    }
}
