//! Counters of requested bytes and their cost.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since a source was opened.
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
}

impl Counting {
    pub(crate) fn request(&self, is_retry: bool) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.retries.fetch_add(u64::from(is_retry), Ordering::Relaxed);
    }

    pub(crate) fn fetched(&self, bytes: usize) {
        self.bytes_fetched.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self, bytes: usize) {
        self.bytes_asked.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn loaded(&self, bytes: usize) {
        self.bytes_from_disk.fetch_add(bytes as u64, Ordering::Relaxed);
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
