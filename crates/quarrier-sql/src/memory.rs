//! How much memory there is to use.

/// Bytes that tables and queries may take where nobody says how many: two thirds of what is free, at
/// least 256 MiB; none where that is not known. For [`Options::memory_bytes_max`](crate::Options).
pub fn usable_memory() -> Option<u64> {
    const LEAST: u64 = 256 << 20;
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kibibytes * 1024 / 3 * 2).max(LEAST))
}
