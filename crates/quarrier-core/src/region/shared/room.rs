//! Whether there is room for more memory: what is promised here is not taken before it is
//! touched, and who touches more than there is, is killed.

use std::fs;
use std::path::Path;

use rustix::process::Resource;

use crate::error::{Error, Result};
use crate::meminfo::line_bytes;

/// Regions below this are not worth the question.
const UNASKED_BYTES: usize = 1 << 20;

/// Room for memory, and what leaves no more.
#[derive(Debug, PartialEq, Eq)]
struct Room {
    bytes: u64,
    limited_by: &'static str,
}

/// Whether `bytes` can be had.
///
/// # Errors
/// [`Error::NoRoom`]
pub(super) fn check(bytes: usize) -> Result<()> {
    // A file that grows past this limit kills the process, even by a byte.
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
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        rooms.extend(cgroup(&groups, Path::new("/sys/fs/cgroup")));
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

/// What the machine has left, swap included.
fn machine(meminfo: &str) -> Option<Room> {
    let free = line_bytes(meminfo, "MemAvailable")? + line_bytes(meminfo, "SwapFree").unwrap_or(0);
    Some(Room { bytes: free, limited_by: "the machine's memory" })
}

/// What a system that promises no more than it has will still promise.
fn commit(meminfo: &str) -> Option<Room> {
    let limit = line_bytes(meminfo, "CommitLimit")?;
    let promised = line_bytes(meminfo, "Committed_AS")?;
    let bytes = limit.saturating_sub(promised);
    Some(Room { bytes, limited_by: "the system's rule against overcommitment" })
}

/// The least that the process's cgroups leave, in either version of them.
fn cgroup(groups: &str, root: &Path) -> Option<Room> {
    let rooms = groups.lines().filter_map(|line| {
        // hierarchy:controllers:path
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let names = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max", "memory.current")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            return None;
        };
        least(&names.0, path, names.1, names.2)
    });
    let bytes = rooms.min()?;
    Some(Room { bytes, limited_by: "the memory limit of the process's cgroup" })
}

/// The least room of a group and those above it, up to the root that can be seen.
fn least(root: &Path, path: &str, limit: &str, usage: &str) -> Option<u64> {
    let path = root.join(path.trim_start_matches('/'));
    let groups = path.ancestors().take_while(|group| group.starts_with(root));
    let number = |group: &Path, name: &str| -> Option<u64> {
        fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
    };
    let room = |group: &Path| {
        // "max" is no number, and no limit.
        let (limit, usage) = (number(group, limit)?, number(group, usage)?);
        Some(limit.saturating_sub(usage).saturating_add(cached(group)))
    };
    groups.filter_map(room).min()
}

/// Bytes of files that a group holds in the page cache and can do without.
fn cached(group: &Path) -> u64 {
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        // Version 1 has sums of the groups below beside them: "total_inactive_file".
        ["inactive_file", "active_file"].contains(&name).then(|| value.parse::<u64>().ok())?
    });
    values.sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should fail where it stands")]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in all {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn left(groups: &str, root: &tempfile::TempDir) -> Option<u64> {
        cgroup(groups, root.path()).map(|room| room.bytes)
    }

    #[test]
    fn the_machine_leaves_what_is_available_and_the_swap() {
        let text = "MemTotal: 9000 kB\nMemAvailable:    2000 kB\nSwapFree: 500 kB\n";
        assert_eq!(machine(text).unwrap().bytes, 2_500 * 1_024);
        assert_eq!(machine("MemTotal: 9000 kB\n"), None);
        let text = "CommitLimit: 3000 kB\nCommitted_AS: 1000 kB\n";
        assert_eq!(commit(text).unwrap().bytes, 2_000 * 1_024);
    }

    #[test]
    fn the_tightest_group_counts_and_files_in_the_cache_do_not() {
        let root = files(&[
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "400\n"),
            ("a/memory.stat", "anon 100\ninactive_file 50\nactive_file 30\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "300\n"),
        ]);
        assert_eq!(left("0::/a/b\n", &root), Some(680));
        assert_eq!(left("0::/\n", &root), None);
    }

    #[test]
    fn both_versions_of_groups_are_understood_and_a_group_out_of_sight_is_passed_over() {
        let root = files(&[
            ("memory/memory.limit_in_bytes", "500"),
            ("memory/memory.usage_in_bytes", "600"),
            ("memory/x/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/x/memory.usage_in_bytes", "1"),
        ]);
        assert_eq!(left("4:cpu:/\n3:blkio,memory:/x\n0::/\n", &root), Some(0));
        assert_eq!(left("3:memory:/not/to/be/seen\n", &root), Some(0));
        assert_eq!(left("", &root), None);
    }
}
