//! How much memory there is to use.

/// Bytes that tables and queries may take where nobody says how many: two thirds of what is free, at
/// least 256 MiB; none where that is not known. For [`Options::memory_bytes_max`](crate::Options).
pub fn usable_memory() -> Option<u64> {
    const LEAST: u64 = 256 << 20;
    let free_bytes = quarrier_core::meminfo::read_bytes("MemAvailable")?;
    Some((free_bytes / 3 * 2).max(LEAST))
}
