//! The control groups of this process, in either version: their limits, and how often they throttled
//! it.

use std::fs;
use std::path::{Path, PathBuf};

use quarrier_core::cgroups::folders;

/// The folders of this process's group and its parents for each controller, the innermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    cpu: Vec<PathBuf>,
    memory: Vec<PathBuf>,
}

/// How often and for how long the groups throttled their processes since they were created.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Throttled {
    /// Periods whose quota was used up.
    pub(super) periods: u64,
    /// Seconds that CPUs waited, added up.
    pub(super) seconds: f64,
}

impl Groups {
    pub(super) fn of_process() -> Groups {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Groups::of(&groups, Path::new("/sys/fs/cgroup"))
    }

    /// The groups that `groups`, the contents of `/proc/self/cgroup`, names below `root`.
    pub(super) fn of(groups: &str, root: &Path) -> Groups {
        Groups { cpu: folders(groups, root, "cpu"), memory: folders(groups, root, "memory") }
    }

    /// The smallest quota of these groups, in CPUs.
    pub(super) fn quota_cpus(&self) -> Option<f64> {
        self.cpu.iter().filter_map(|folder| quota(folder)).min_by(f64::total_cmp)
    }

    /// The smallest memory limit of these groups, in bytes. `memory.high` counts as a limit too: above it
    /// the kernel slows a process down until it has freed enough memory.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        let names = ["memory.max", "memory.high", "memory.limit_in_bytes"];
        let limits = self.memory.iter().flat_map(|folder| names.map(|name| number(folder, name)));
        limits.flatten().map(|bytes| bytes as u64).min()
    }

    /// The sum over these groups, since any of them may throttle the process.
    pub(super) fn throttled(&self) -> Throttled {
        let contents = self.cpu.iter().filter_map(|f| fs::read_to_string(f.join("cpu.stat")).ok());
        contents.map(|text| throttled(&text)).fold(Throttled::default(), |sum, one| Throttled {
            periods: sum.periods.saturating_add(one.periods),
            seconds: sum.seconds + one.seconds,
        })
    }
}

fn number(folder: &Path, file: &str) -> Option<f64> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

/// The quota of one group, in CPUs.
fn quota(folder: &Path) -> Option<f64> {
    let (quota, period) = match fs::read_to_string(folder.join("cpu.max")) {
        Ok(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            // "max" is not a number, and means no limit.
            (quota.parse().ok()?, period.parse().ok()?)
        }
        Err(_) => (number(folder, "cpu.cfs_quota_us")?, number(folder, "cpu.cfs_period_us")?),
    };
    let cpus: f64 = quota / period;
    (cpus > 0.0 && cpus.is_finite()).then_some(cpus)
}

/// The counters of a `cpu.stat`: version 2 has microseconds, version 1 nanoseconds.
fn throttled(text: &str) -> Throttled {
    let value = |name: &str| -> Option<f64> {
        let of_name = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        text.lines().find_map(of_name)
    };
    let seconds = value("throttled_usec ").map(|micros| micros * 1e-6);
    Throttled {
        periods: value("nr_throttled ").unwrap_or(0.0) as u64,
        seconds: seconds.or_else(|| Some(value("throttled_time ")? * 1e-9)).unwrap_or(0.0),
    }
}

#[cfg(test)]
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

    #[test]
    fn the_tightest_group_of_version_2_counts() {
        let root = files(&[
            ("a/cpu.max", "150000 100000\n"),
            ("a/cpu.stat", "usage_usec 9\nnr_periods 8\nnr_throttled 7\nthrottled_usec 1500000\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/cpu.stat", "usage_usec 9\nnr_throttled 1\nthrottled_usec 500000\n"),
            ("a/b/memory.max", "314572800\n"),
            ("a/memory.max", "max\n"),
        ]);
        let inner = Groups::of("0::/a/b\n", root.path());
        assert_eq!(inner.quota_cpus(), Some(1.5));
        assert_eq!(inner.memory_bytes(), Some(300 << 20));
        assert_eq!(inner.throttled(), Throttled { periods: 8, seconds: 2.0 });
        let top = Groups::of("0::/\n", root.path());
        assert_eq!((top.quota_cpus(), top.memory_bytes()), (None, None));
    }

    #[test]
    fn memory_beyond_which_a_group_is_slowed_down_is_a_limit() {
        let root = files(&[
            ("a/b/memory.max", "314572800\n"),
            ("a/b/memory.high", "209715200\n"),
            ("a/memory.max", "max\n"),
            ("a/memory.high", "max\n"),
            ("c/memory.high", "1048576\n"),
            ("c/d/memory.max", "2097152\n"),
            ("c/d/memory.high", "max\n"),
        ]);
        let bytes = |groups| Groups::of(groups, root.path()).memory_bytes();
        assert_eq!(
            ["0::/a/b\n", "0::/a\n", "0::/c/d\n"].map(bytes),
            [Some(200 << 20), None, Some(1 << 20),]
        );
    }

    #[test]
    fn the_root_that_a_container_sees_is_its_own_group() {
        let root = files(&[("cpu.max", "50000 100000\n"), ("memory.max", "1048576\n")]);
        for groups in ["0::/\n", "0::/../elsewhere\n"] {
            let groups = Groups::of(groups, root.path());
            assert_eq!((groups.quota_cpus(), groups.memory_bytes()), (Some(0.5), Some(1 << 20)));
        }
    }

    #[test]
    fn groups_of_version_1_are_those_of_each_controller() {
        let root = files(&[
            ("cpu/x/cpu.cfs_quota_us", "50000"),
            ("cpu/x/cpu.cfs_period_us", "100000"),
            ("cpu/x/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 250000000\n"),
            ("cpu/cpu.cfs_quota_us", "-1"),
            ("cpu/cpu.cfs_period_us", "100000"),
            ("memory/y/memory.limit_in_bytes", "536870912"),
        ]);
        let groups = Groups::of("4:memory:/y\n1:cpu,cpuacct:/x\n0::/\n", root.path());
        assert_eq!(groups.quota_cpus(), Some(0.5));
        assert_eq!(groups.memory_bytes(), Some(512 << 20));
        assert_eq!(groups.throttled(), Throttled { periods: 2, seconds: 0.25 });
        let unseen = Groups::of("1:cpu:/not/to/be/seen\n", root.path());
        assert_eq!(unseen.quota_cpus(), None);
    }

    #[test]
    fn files_that_hold_anything_limit_nothing() {
        for text in ["", "max", "max max", "0 0", "-1 100000", "NaN 1", "1 0", "a b c"] {
            let names = ["cpu.max", "memory.max", "memory.high", "cpu.stat"];
            let root = files(&names.map(|name| (name, text)));
            let groups = Groups::of("0::/\n", root.path());
            assert_eq!(groups.quota_cpus(), None, "{text}");
            assert_eq!(groups.throttled(), Throttled::default(), "{text}");
            assert!(groups.memory_bytes().is_none(), "{text}");
        }
        let none = Groups::of("\n:\n::\nx\n", Path::new("/nowhere"));
        assert_eq!((none.quota_cpus(), none.memory_bytes()), (None, None));
    }
}
