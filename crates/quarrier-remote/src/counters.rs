//! Counters of requested bytes and their cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since a source was opened, or of all sources of a [`Remote`](crate::Remote).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// HTTP requests sent, including those for opening and retries. Redirects are not counted
    /// separately.
    pub requests: u64,
    /// Bytes of the object received over the network.
    pub bytes_fetched: u64,
    /// Bytes returned by reads.
    pub bytes_asked: u64,
    /// Bytes read from the cache on disk, after verification.
    pub bytes_from_disk: u64,
    /// Requests repeated after a failure.
    pub retries: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counting {
    requests: AtomicU64,
    bytes_fetched: AtomicU64,
    bytes_asked: AtomicU64,
    bytes_from_disk: AtomicU64,
    retries: AtomicU64,
    /// The counts of all sources, of which these are a part.
    total: Option<Arc<Counting>>,
}

impl Counting {
    /// Counts for one source, which are also added to the `total`.
    pub(crate) fn of_source(total: &Arc<Counting>) -> Self {
        Counting { total: Some(Arc::clone(total)), ..Counting::default() }
    }

    fn add(&self, counter: fn(&Counting) -> &AtomicU64, count: u64) {
        for counting in [Some(self), self.total.as_deref()].into_iter().flatten() {
            counter(counting).fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn request(&self, is_retry: bool) {
        self.add(|counting| &counting.requests, 1);
        self.add(|counting| &counting.retries, u64::from(is_retry));
    }

    pub(crate) fn fetched(&self, bytes: usize) {
        self.add(|counting| &counting.bytes_fetched, bytes as u64);
    }

    pub(crate) fn asked(&self, bytes: usize) {
        // Only here: all threads that read would write to the total.
        self.bytes_asked.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn loaded(&self, bytes: usize) {
        self.add(|counting| &counting.bytes_from_disk, bytes as u64);
    }

    pub(crate) fn read(&self) -> Counters {
        Counters {
            requests: self.requests.load(Ordering::Relaxed),
            bytes_fetched: self.bytes_fetched.load(Ordering::Relaxed),
            bytes_asked: self.bytes_asked.load(Ordering::Relaxed),
            bytes_from_disk: self.bytes_from_disk.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
        }
    }
}
