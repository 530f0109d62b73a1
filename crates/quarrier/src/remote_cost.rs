//! The cost of fetching.

use quarrier_remote::Counters;
use quarrier_report::number;

/// The cost of fetching, for all remote sources and listings of buckets together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoteCost {
    /// Number of requests, including repeated ones.
    pub requests: u64,
    /// Number of repeated requests.
    pub retries: u64,
    /// Bytes fetched over the network.
    pub bytes_fetched: u64,
    /// Bytes read from the cache folder.
    pub bytes_from_cache: u64,
}

impl RemoteCost {
    /// Adds the cost of one source.
    pub fn add(&mut self, counters: &Counters) {
        self.requests += counters.requests;
        self.retries += counters.retries;
        self.bytes_fetched += counters.bytes_fetched;
        self.bytes_from_cache += counters.bytes_from_disk;
    }

    /// The cost of one source, or of all.
    pub(crate) fn of(counters: &Counters) -> Self {
        let mut cost = RemoteCost::default();
        cost.add(counters);
        cost
    }

    /// The cost since `earlier`, when it was a part of this one; `None` if nothing was added.
    pub(crate) fn since(self, earlier: Option<RemoteCost>) -> Option<Self> {
        let Some(earlier) = earlier else { return Some(self) };
        let added = RemoteCost {
            requests: self.requests - earlier.requests,
            retries: self.retries - earlier.retries,
            bytes_fetched: self.bytes_fetched - earlier.bytes_fetched,
            bytes_from_cache: self.bytes_from_cache - earlier.bytes_from_cache,
        };
        Some(added).filter(|added| *added != RemoteCost::default())
    }

    /// Formats the cost: `1.2 MiB by 5 requests`.
    pub fn describe(&self) -> String {
        let fetched = number::bytes(self.bytes_fetched);
        format!("{fetched} by {}", number::counted(self.requests, "request"))
    }
}
