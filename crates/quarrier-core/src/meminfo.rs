//! What the kernel says of memory.

use std::fs;

/// Bytes of a line of `/proc/meminfo`, such as `MemAvailable`; None where there is no such line.
pub fn read_bytes(name: &str) -> Option<u64> {
    line_bytes(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// Bytes of the first line `name: 123 kB` of a text of the kernel's, whose kB are of 1024 bytes.
pub fn line_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_whole_name() {
        let text = "MemTotal: 9000 kB\nMemAvailable:    2000 kB\nHugePages_Total: 7\n";
        assert_eq!(line_bytes(text, "MemAvailable"), Some(2000 * 1024));
        for name in ["Mem", "Available", "HugePages_Total", "Swap"] {
            assert_eq!(line_bytes(text, name), None, "{name}");
        }
        assert_eq!(line_bytes("A: 18446744073709551615 kB", "A"), None);
    }
}
