//! How much memory there is to use, where nothing is said.

/// Two thirds of what is free, at least 256 MiB; none where that is not known.
pub(super) fn usable() -> Option<u64> {
    const LEAST: u64 = 256 << 20;
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kibibytes * 1024 / 3 * 2).max(LEAST))
}
