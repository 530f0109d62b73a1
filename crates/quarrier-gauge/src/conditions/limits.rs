//! Limits other than the hardware: the part of the machine that this process may use.

use std::fs;

use quarrier_report::number::exact_bytes;
use serde::{Deserialize, Serialize};

use super::groups::Groups;

/// The limits of a process, apart from those of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limits {
    /// Online CPUs, if the affinity mask of the process or the cpuset of its control group allows
    /// fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity_of_cpus: Option<u32>,
    /// CPUs in the affinity mask, if fewer than are online.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity_cpus: Option<u32>,
    /// CPU quota of the control groups, in seconds of CPU time per second, if less than the online CPUs
    /// provide: 1.5 means one and a half CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// Memory limit of the control groups in bytes, if below the memory of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Detects the limits of this process, which may run on `allowed_cpus` of a machine with
    /// `memory_bytes`.
    pub(super) fn detect(allowed_cpus: usize, memory_bytes: u64) -> Limits {
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        Limits::of(&Groups::of_process(), (allowed_cpus, cpus_of(&online)), memory_bytes)
    }

    fn of(groups: &Groups, (allowed, online): (usize, u32), memory_bytes: u64) -> Limits {
        let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
        let online = online.max(allowed);
        let is_bound = online > allowed;
        Limits {
            affinity_of_cpus: is_bound.then_some(online),
            affinity_cpus: is_bound.then_some(allowed),
            quota_cpus: groups.quota_cpus().filter(|&cpus| cpus < f64::from(online)),
            memory_bytes: groups.memory_bytes().filter(|&bytes| bytes < memory_bytes),
        }
    }

    /// The number of threads of this process that can have a CPU each, if it may run on `allowed_cpus`.
    pub(crate) fn threads_of_process(allowed_cpus: usize) -> usize {
        Limits::detect(allowed_cpus, 0).threads(allowed_cpus)
    }

    /// Whether the process may use all of the machine.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    /// The number of threads that can have a CPU each, on `allowed_cpus`.
    pub fn threads(&self, allowed_cpus: usize) -> usize {
        let of_quota = self.quota_cpus.map_or(usize::MAX, |cpus| cpus as usize);
        allowed_cpus.min(of_quota).max(1)
    }

    /// The limits in words, such as `quota 1.5 CPUs, affinity 1 of 2 CPUs, memory 512 MiB`; empty if
    /// there are none.
    pub fn describe(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.describe_quota());
        if let (Some(may), Some(of)) = (self.affinity_cpus, self.affinity_of_cpus) {
            words.push(format!("affinity {may} of {of} CPUs"));
        }
        words
            .extend(self.memory_bytes.map(|bytes| format!("memory {}", exact_bytes(bytes as f64))));
        words.join(", ")
    }

    /// `quota 1.5 CPUs`, if there is one.
    pub fn describe_quota(&self) -> Option<String> {
        // The kernel's smallest quota is a millisecond per second.
        let cpus = (self.quota_cpus? * 1000.0).round() / 1000.0;
        Some(format!("quota {cpus} {}", if cpus == 1.0 { "CPU" } else { "CPUs" }))
    }
}

/// The number of CPUs in a list such as `0-3,8`.
fn cpus_of(list: &str) -> u32 {
    let count = |range: &str| -> Option<u32> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.checked_sub(first)?.saturating_add(1))
    };
    list.split(',').filter_map(count).fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_and_threads_follow_them() {
        let limits = Limits {
            affinity_cpus: Some(2),
            affinity_of_cpus: Some(8),
            quota_cpus: Some(1.5),
            memory_bytes: Some(300 << 20),
        };
        assert_eq!(limits.describe(), "quota 1.5 CPUs, affinity 2 of 8 CPUs, memory 300 MiB");
        assert_eq!(limits.threads(2), 1);
        assert!(Limits::default().is_none() && Limits::default().describe().is_empty());
        let of_quota = |cpus| Limits { quota_cpus: Some(cpus), ..Limits::default() };
        assert_eq!(
            [of_quota(0.5), of_quota(2.0), of_quota(3.9)].map(|one| one.threads(4)),
            [1, 2, 3]
        );
        assert_eq!(of_quota(1.0).describe(), "quota 1 CPU");
        assert_eq!(of_quota(1.0 / 3.0).describe(), "quota 0.333 CPUs");
        assert_eq!(["0-3,8", "0", "", "3-1"].map(cpus_of), [5, 1, 0, 0]);
    }

    #[test]
    fn limits_that_the_machine_does_not_exceed_are_none() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cpu.max"), "150000 100000\n").unwrap();
        fs::write(root.path().join("memory.max"), "536870912\n").unwrap();
        let groups = Groups::of("0::/\n", root.path());
        let words = |cpus, memory_bytes| Limits::of(&groups, cpus, memory_bytes).describe();
        // The quota is listed even if the affinity mask is smaller: another mask would reveal it.
        assert_eq!(words((1, 2), 1 << 30), "quota 1.5 CPUs, affinity 1 of 2 CPUs, memory 512 MiB");
        assert_eq!(words((2, 2), 1 << 29), "quota 1.5 CPUs");
        assert_eq!(words((1, 1), 1 << 20), "");
        // If the system does not report the online CPUs, the allowed CPUs count as all.
        assert_eq!(words((2, 0), 0), "quota 1.5 CPUs");
    }
}
