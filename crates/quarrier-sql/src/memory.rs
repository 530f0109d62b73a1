//! The memory available to tables and queries.

use quarrier_core::meminfo;

/// The default memory limit for tables and queries, in bytes, for
/// [`Options::memory_bytes_max`](crate::Options). It is two thirds of the memory that this process
/// can still get from the machine, its cgroup and its limits, and at least 64 MiB. `None` if that
/// is unknown.
pub fn usable_memory() -> Option<u64> {
    const LEAST: u64 = 64 << 20;
    Some((meminfo::usable_bytes()? / 3 * 2).max(LEAST))
}
