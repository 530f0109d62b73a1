//! How much memory there is to use.

use quarrier_core::meminfo;

/// The default limit for tables and queries in bytes: two thirds of the memory that this process can
/// still get from the machine, its cgroup and its limits, at least 64 MiB; `None` if that is unknown.
/// For [`Options::memory_bytes_max`](crate::Options).
pub fn usable_memory() -> Option<u64> {
    const LEAST: u64 = 64 << 20;
    Some((meminfo::usable_bytes()? / 3 * 2).max(LEAST))
}
