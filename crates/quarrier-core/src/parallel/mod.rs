//! Workers that fill one array, each a part of it, in place.

/// How many workers this process has CPUs for, by affinity and cgroup quota.
pub fn available_workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
