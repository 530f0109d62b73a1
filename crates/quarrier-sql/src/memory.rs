//! How much memory there is to use.

use quarrier_core::meminfo;

/// Bytes that tables and queries may take where nobody says how many: two thirds of what this process
/// can still have of the machine, of its cgroup and within its limits, at least 64 MiB; none where
/// that is not known. For [`Options::memory_bytes_max`](crate::Options).
pub fn usable_memory() -> Option<u64> {
    const LEAST: u64 = 64 << 20;
    Some((meminfo::usable_bytes()? / 3 * 2).max(LEAST))
}
