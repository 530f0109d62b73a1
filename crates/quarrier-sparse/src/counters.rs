//! What was asked of a file.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How often a file was asked, and for how many bytes, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Reads that found all their bytes.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that were accepted.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes written that were held already: fetched in vain.
    pub wasted_bytes: u64,
    /// Bytes erased on demand.
    pub erased_bytes: u64,
    /// Bytes evicted to keep within a budget.
    pub evicted_bytes: u64,
}

/// Counts reads from many threads at once.
///
/// Threads count in different cache lines, so that they do not wait for each other.
#[derive(Debug, Default)]
pub(crate) struct ReadCounter {
    stripes: [Stripe; STRIPES],
}

const STRIPES: usize = 4;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
    read_bytes: AtomicU64,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: usize = THREADS.fetch_add(1, Relaxed) % STRIPES;
}

impl ReadCounter {
    #[inline]
    fn stripe(&self) -> &Stripe {
        &self.stripes[STRIPE.try_with(|stripe| *stripe).unwrap_or(0) % STRIPES]
    }

    #[inline]
    pub(crate) fn hit(&self, count: u64, bytes: u64) {
        let stripe = self.stripe();
        stripe.hits.fetch_add(count, Relaxed);
        stripe.read_bytes.fetch_add(bytes, Relaxed);
    }

    #[cold]
    pub(crate) fn miss(&self) {
        self.stripe().misses.fetch_add(1, Relaxed);
    }

    /// Begins anew from these sums.
    pub(crate) fn set(&mut self, hits: u64, misses: u64, read_bytes: u64) {
        *self = ReadCounter::default();
        let [first, ..] = &mut self.stripes;
        *first = Stripe { hits: hits.into(), misses: misses.into(), read_bytes: read_bytes.into() };
    }

    /// Hits, misses and bytes read.
    pub(crate) fn sums(&self) -> (u64, u64, u64) {
        let sum = |of: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|stripe| of(stripe).load(Relaxed)).sum()
        };
        (sum(|s| &s.hits), sum(|s| &s.misses), sum(|s| &s.read_bytes))
    }
}
