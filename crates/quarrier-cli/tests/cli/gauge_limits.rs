//! `quarrier gauge` in a control group with a CPU quota and a memory limit, on one CPU, as in a container.
//! Where this process may not create such groups, the tests are skipped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use quarrier_core::cgroups::folders;
use serde_json::Value;

use crate::harness::{Lab, Ran, run, skip};

const MEMORY_BYTES: u64 = 512 << 20;

/// A control group below that of this process, for each controller; removed at the end.
struct Group {
    folders: Vec<PathBuf>,
}

impl Group {
    /// Creates a group with a quota in thousandths of a CPU.
    fn create(name: &str, quota_millis: u64) -> io::Result<Group> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let mut group = Group { folders: Vec::new() };
        for controller in ["cpu", "memory"] {
            let above = folders(&groups, Path::new("/sys/fs/cgroup"), controller);
            let above = above.first().ok_or_else(|| {
                io::Error::other(format!("there is no control group for {controller}"))
            })?;
            let folder = above.join(format!("quarrier-{name}-{}", std::process::id()));
            // Version 2 has one group for all controllers.
            if !group.folders.contains(&folder) {
                fs::create_dir(&folder)?;
                group.folders.push(folder.clone());
            }
            match controller {
                "cpu" if folder.join("cpu.max").exists() => {
                    fs::write(folder.join("cpu.max"), format!("{} 100000", quota_millis * 100))?;
                }
                "cpu" => {
                    fs::write(folder.join("cpu.cfs_period_us"), "100000")?;
                    fs::write(folder.join("cpu.cfs_quota_us"), (quota_millis * 100).to_string())?;
                }
                _ if folder.join("memory.max").exists() => {
                    fs::write(folder.join("memory.max"), MEMORY_BYTES.to_string())?;
                }
                _ => {
                    let file = folder.join("memory.limit_in_bytes");
                    fs::write(file, MEMORY_BYTES.to_string())?;
                }
            }
        }
        Ok(group)
    }

    /// The command that runs a program in the group, on one CPU.
    fn command(&self, lab: &Lab, args: &[&str]) -> Command {
        let enter = "while [ \"$1\" != -- ]; do echo $$ >\"$1/cgroup.procs\" || exit 9; shift; done; \
                     shift; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", enter, "sh"]).args(&self.folders);
        command.args(["--", "taskset", "-c", &first_cpu()]);
        command.arg(env!("CARGO_BIN_EXE_quarrier")).args(args);
        command.current_dir(lab.path("")).env("XDG_CACHE_HOME", lab.path("cache"));
        command.stdin(std::process::Stdio::null());
        command
    }

    /// The number of processes of the group that the kernel killed for lack of memory.
    fn killed(&self) -> u64 {
        let files = ["memory.events", "memory.oom_control"];
        let paths = self.folders.iter().flat_map(|folder| files.map(|file| folder.join(file)));
        let texts = paths.filter_map(|path| fs::read_to_string(path).ok());
        let count = |text: String| {
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
        };
        texts.filter_map(count).sum()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            // A folder with a process in it stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The first CPU that this process may use.
fn first_cpu() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_string()
}

fn online_cpus() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap();
    text.lines().filter(|line| line.starts_with("processor")).count()
}

/// Measures an area in a group. `None` if there can be no such group here.
fn measure(name: &str, quota_millis: u64, areas: &[&str]) -> Option<(Ran, Value)> {
    let lab = Lab::new();
    let group = match Group::create(name, quota_millis) {
        Ok(group) => group,
        Err(error) => {
            skip(&format!("no control group with limits can be created: {error}"));
            return None;
        }
    };
    let options = ["--quick", "--runs", "1", "--json", "report.json"];
    let ran = run(group.command(&lab, &[&["gauge"], areas, &options].concat()), b"");
    assert_eq!((ran.code, ran.signal, group.killed()), (Some(0), None, 0), "{ran:?}");
    let report = serde_json::from_slice(&fs::read(lab.path("report.json")).unwrap()).unwrap();
    Some((ran, report))
}

#[test]
fn a_quota_one_cpu_and_a_memory_limit_are_named_and_followed() {
    let cpus = online_cpus();
    if cpus < 2 {
        return skip("a quota of 1.5 CPUs limits nothing on one CPU");
    }
    let Some((ran, report)) = measure("limits", 1500, &["cpu", "memory"]) else { return };
    let limits = format!("limited by: quota 1.5 CPUs, affinity 1 of {cpus} CPUs, memory 512 MiB");
    assert!(ran.lines().contains(&limits.as_str()), "{ran:?}");
    let machine = &report["machine"];
    assert_eq!((&machine["cpus"], &machine["limits"]["quota_cpus"]), (&1.into(), &1.5.into()));
    assert_eq!(machine["limits"]["affinity_cpus"], 1);
    assert_eq!(machine["limits"]["memory_bytes"], MEMORY_BYTES);
    for reading in report["readings"].as_array().unwrap() {
        assert!(reading["parameters"]["threads"].as_u64().is_none_or(|threads| threads == 1));
        let block = reading["parameters"]["block_bytes"].as_u64();
        assert!(block.is_none_or(|bytes| bytes < MEMORY_BYTES), "{reading}");
    }
}

#[test]
fn readings_that_a_quota_slows_are_marked() {
    let Some((ran, report)) = measure("quota", 300, &["cpu"]) else { return };
    assert!(ran.text().contains("limited by: quota 0.3 CPUs"), "{ran:?}");
    assert!(ran.text().contains("throttled in "), "{ran:?}");
    for reading in report["readings"].as_array().unwrap() {
        let throttled = reading["conditions"]["throttled_periods"].as_u64().unwrap_or(0);
        assert!(throttled == 0 || reading["disturbed"] == true, "{reading}");
    }
}
