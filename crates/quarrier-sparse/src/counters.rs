//! Usage counters of a file.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Counts of operations and bytes since a file was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Reads that found all their bytes.
    pub hits: u64,
    /// Reads that missed some bytes.
    pub misses: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that were accepted.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Written bytes that were already held: fetched in vain.
    pub wasted_bytes: u64,
    /// Bytes erased on demand.
    pub erased_bytes: u64,
    /// Bytes evicted to keep within a budget.
    pub evicted_bytes: u64,
}

/// Per-thread state of readers: counts, and the locations of the last reads.
///
/// The first few threads each have a cache line that no other thread writes to, so that reads do
/// not contend; all other threads share the last one.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    stripes: [Stripe; STRIPES],
}

const STRIPES: usize = 4;

/// See [`Readers`].
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
    read_bytes: AtomicU64,
    /// Where the last byte was found: a hint, which may be wrong.
    pub(crate) guess: AtomicU64,
}

/// The stripes that are taken by a thread, one bit for each except the last.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The calling thread's stripe, or [`NO_SEAT`] before its first read.
    static SEAT: Cell<usize> = const { Cell::new(NO_SEAT) };
    /// Returns the stripe when the thread ends. Separate from the seat, which is faster to access
    /// without a destructor.
    static LEAVING: Leaving = const { Leaving };
}

const NO_SEAT: usize = usize::MAX;
/// The stripe of all threads without their own.
const SHARED: usize = STRIPES - 1;

struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        let seat = SEAT.replace(SHARED);
        if seat < SHARED {
            TAKEN.fetch_and(!(1 << seat), Release);
        }
    }
}

/// Takes a stripe at the calling thread's first read.
#[cold]
fn take_seat() -> usize {
    let mut seat = SHARED;
    let is_alive = LEAVING.try_with(|_| ()).is_ok();
    let mut taken = TAKEN.load(Relaxed);
    while is_alive && taken.trailing_ones() < SHARED as u32 {
        let free = taken.trailing_ones() as usize;
        // Acquire makes the counts of the stripe's previous owner visible to this thread.
        match TAKEN.compare_exchange_weak(taken, taken | 1 << free, Acquire, Relaxed) {
            Ok(_) => {
                seat = free;
                break;
            }
            Err(now) => taken = now,
        }
    }
    SEAT.set(seat);
    seat
}

/// The calling thread's access to the counters of a file.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'r> {
    stripe: &'r Stripe,
    /// Whether other threads write to the stripe, too.
    is_shared: bool,
}

impl Reader<'_> {
    /// Where this thread found its last byte.
    #[inline]
    pub(crate) fn guess(&self) -> &AtomicU64 {
        &self.stripe.guess
    }

    #[inline]
    pub(crate) fn hit(&self, count: u64, bytes: u64) {
        for (counter, by) in [(&self.stripe.hits, count), (&self.stripe.read_bytes, bytes)] {
            if self.is_shared {
                counter.fetch_add(by, Relaxed);
            } else {
                // No other thread writes, so no atomic read-modify-write is needed.
                counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
            }
        }
    }

    #[cold]
    pub(crate) fn miss(&self) {
        self.stripe.misses.fetch_add(1, Relaxed);
    }
}

impl Readers {
    /// The counters of the calling thread.
    #[inline]
    pub(crate) fn mine(&self) -> Reader<'_> {
        let mut seat = SEAT.get();
        if seat == NO_SEAT {
            seat = take_seat();
        }
        Reader { stripe: &self.stripes[seat % STRIPES], is_shared: seat == SHARED }
    }

    /// Restarts from these sums.
    pub(crate) fn set(&mut self, hits: u64, misses: u64, read_bytes: u64) {
        *self = Readers::default();
        let [first, ..] = &mut self.stripes;
        first.hits = hits.into();
        first.misses = misses.into();
        first.read_bytes = read_bytes.into();
    }

    /// Hits, misses and bytes read.
    pub(crate) fn sums(&self) -> (u64, u64, u64) {
        let sum = |of: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|stripe| of(stripe).load(Relaxed)).sum()
        };
        (sum(|s| &s.hits), sum(|s| &s.misses), sum(|s| &s.read_bytes))
    }
}
