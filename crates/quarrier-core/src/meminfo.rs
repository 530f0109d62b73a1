//! Memory limits: the kernel's figures for the machine and for this process.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::cgroups;

/// Returns the bytes of an entry of `/proc/meminfo`, such as `MemAvailable`; `None` if there is
/// none.
pub fn read_bytes(name: &str) -> Option<u64> {
    line_bytes(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// Returns the bytes of the first line `name: 123 kB` in a text of the kernel, in which 1 kB is
/// 1024 bytes.
pub fn line_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The limits of a cgroup version 2 beyond which the kernel kills processes.
const HARD: &[&str] = &["memory.max"];
/// In addition, the limit beyond which the kernel throttles processes until they have freed enough.
const ALL: &[&str] = &["memory.max", "memory.high"];

/// Returns the number of bytes that this process can still use at full speed: the minimum of the
/// machine's available memory, the room in its cgroups up to `memory.high`, and its limits on address
/// space and data. `None` if none of these is known.
pub fn usable_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let left_of = |limit: Resource, taken: &str| {
        limit_bytes(limit).map(|limit| remaining(limit, line_bytes(&status, taken)))
    };
    let (addresses, data) = (left_of(Resource::As, "VmSize"), left_of(Resource::Data, "VmData"));
    [read_bytes("MemAvailable"), room(ALL), addresses, data].into_iter().flatten().min()
}

/// Returns the limit on this process's address space or data in bytes; `None` if there is no such
/// limit.
pub fn address_bytes_max() -> Option<u64> {
    [Resource::As, Resource::Data].into_iter().filter_map(limit_bytes).min()
}

fn limit_bytes(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

/// Returns half of a limit if the usage is unknown.
fn remaining(limit_bytes: u64, taken_bytes: Option<u64>) -> u64 {
    limit_bytes.saturating_sub(taken_bytes.unwrap_or(limit_bytes / 2))
}

/// Returns the bytes left in the process's cgroups, version 1 or 2, before the kernel kills a process;
/// `None` if they have no limit.
pub fn cgroup_bytes() -> Option<u64> {
    room(HARD)
}

fn room(limits: &[&str]) -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    cgroup(&groups, Path::new("/sys/fs/cgroup"), limits)
}

/// The minimum room of the groups and their parents; `limits` are the files with the limits in
/// version 2.
fn cgroup(groups: &str, root: &Path, limits: &[&str]) -> Option<u64> {
    let number = |group: &Path, name: &str| -> Option<u64> {
        fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
    };
    let room = |group: &Path| {
        // "max" does not parse as a number, and means no limit.
        let limit = limits.iter().filter_map(|limit| number(group, limit)).min();
        let (limit, usage) = match number(group, "memory.current") {
            Some(usage) => (limit?, usage),
            None => {
                (number(group, "memory.limit_in_bytes")?, number(group, "memory.usage_in_bytes")?)
            }
        };
        Some(limit.saturating_sub(usage).saturating_add(cached(group)))
    };
    cgroups::folders(groups, root, "memory").iter().filter_map(|group| room(group)).min()
}

/// Returns the bytes of a group's page cache that the kernel can reclaim.
fn cached(group: &Path) -> u64 {
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        // Version 1 also lists sums that include subgroups, as "total_inactive_file".
        ["inactive_file", "active_file"].contains(&name).then(|| value.parse::<u64>().ok())?
    });
    values.sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
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

    #[test]
    fn usage_is_subtracted_from_limits() {
        assert_eq!([None, Some(7), Some(200)].map(|taken| remaining(100, taken)), [50, 93, 0]);
        assert!(usable_bytes().is_none_or(|bytes| bytes > 0));
    }

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
        cgroup(groups, root.path(), ALL)
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
    fn memory_beyond_the_throttling_limit_is_not_usable() {
        let root = files(&[
            ("a/memory.max", "1000\n"),
            ("a/memory.high", "700\n"),
            ("a/memory.current", "400\n"),
            ("b/memory.max", "max\n"),
            ("b/memory.high", "500\n"),
            ("b/memory.current", "600\n"),
            ("b/memory.stat", "inactive_file 50\n"),
            ("c/memory.max", "1000\n"),
            ("c/memory.high", "max\n"),
            ("c/memory.current", "400\n"),
        ]);
        let all = ["0::/a\n", "0::/b\n", "0::/c\n"];
        assert_eq!(all.map(|groups| left(groups, &root)), [Some(300), Some(50), Some(600)]);
        let hard = all.map(|groups| cgroup(groups, root.path(), HARD));
        assert_eq!(hard, [Some(600), None, Some(600)]);
    }

    #[test]
    fn both_versions_of_groups_are_understood_and_an_invisible_group_is_skipped() {
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
