//! Checks whether enough memory is available: the system allocates a shared region only on first
//! touch, and kills a process that touches more than is available.

use std::fs;

use rustix::process::Resource;

use crate::error::{Error, Result};
use crate::meminfo::{cgroup_bytes, line_bytes};

/// Smaller regions are not checked.
const UNASKED_BYTES: usize = 1 << 20;

/// Available memory, and the limit that determines it.
#[derive(Debug, PartialEq, Eq)]
struct Room {
    bytes: u64,
    limited_by: &'static str,
}

/// Checks whether `bytes` are available.
///
/// # Errors
/// [`Error::NoRoom`]
pub(super) fn check(bytes: usize) -> Result<()> {
    // The system kills a process if a file of it grows past this limit, even by a byte.
    let file = rustix::process::getrlimit(Resource::Fsize).current;
    let file = file.map(|bytes| Room { bytes, limited_by: "the process's limit of file sizes" });
    let mut rooms: Vec<Room> = file.into_iter().collect();
    if bytes >= UNASKED_BYTES {
        rooms.extend(fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text)));
        let strict = fs::read_to_string("/proc/sys/vm/overcommit_memory");
        if strict.is_ok_and(|text| text.trim() == "2") {
            let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
            rooms.extend(commit(&text));
        }
        let limited_by = "the memory limit of the process's cgroup";
        rooms.extend(cgroup_bytes().map(|bytes| Room { bytes, limited_by }));
    }
    match rooms.into_iter().min_by_key(|room| room.bytes) {
        Some(room) if room.bytes < bytes as u64 => Err(Error::NoRoom {
            asked_bytes: bytes as u64,
            left_bytes: room.bytes,
            limited_by: room.limited_by,
        }),
        _ => Ok(()),
    }
}

/// Returns the machine's available memory, including swap.
fn machine(meminfo: &str) -> Option<Room> {
    let free = line_bytes(meminfo, "MemAvailable")? + line_bytes(meminfo, "SwapFree").unwrap_or(0);
    Some(Room { bytes: free, limited_by: "the machine's memory" })
}

/// Returns the memory that a system without overcommit can still grant.
fn commit(meminfo: &str) -> Option<Room> {
    let limit = line_bytes(meminfo, "CommitLimit")?;
    let promised = line_bytes(meminfo, "Committed_AS")?;
    let bytes = limit.saturating_sub(promised);
    Some(Room { bytes, limited_by: "the system's rule against overcommitment" })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use super::*;

    #[test]
    fn the_machine_leaves_available_memory_and_swap() {
        let text = "MemTotal: 9000 kB\nMemAvailable:    2000 kB\nSwapFree: 500 kB\n";
        assert_eq!(machine(text).unwrap().bytes, 2_500 * 1_024);
        assert_eq!(machine("MemTotal: 9000 kB\n"), None);
        let text = "CommitLimit: 3000 kB\nCommitted_AS: 1000 kB\n";
        assert_eq!(commit(text).unwrap().bytes, 2_000 * 1_024);
    }
}
