//! The machine, as its system describes it.

use std::fs;
use std::io;
use std::path::Path;

use quarrier_core::meminfo;
use quarrier_core::size::parse_size;
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use super::{Limits, nodes};
use crate::processor::Isa;

/// One type of cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cache {
    /// The level; 1 is the nearest to the core.
    pub level: u32,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The number of CPUs that share one such cache.
    pub shared_by: u32,
}

/// The machine that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Machine {
    /// The name of the host.
    pub name: String,
    /// The model name that the processor reports.
    pub cpu_model: String,
    /// The processor's vendor, family and model, if it has such numbers.
    pub cpu_signature: String,
    /// The architecture that this program was built for.
    pub architecture: String,
    /// The measured instruction sets, for example `AVX2`.
    pub instruction_sets: Vec<String>,
    /// Threads of this process that can have a CPU each, within its [`limits`](Machine::limits).
    pub cpus: u32,
    /// The part of the machine that this process may not use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// The data and unified caches of one CPU, the nearest first.
    pub caches: Vec<Cache>,
    /// The number of NUMA nodes with memory that this process may use; 0 if the system does not report it.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub nodes: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The size of an ordinary page in bytes.
    pub page_bytes: u64,
    /// When the kernel uses transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: String,
    /// The kernel and its version.
    pub kernel: String,
    /// The hypervisor, if this is a virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<String>,
    /// The frequency governor, if the system may change the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
}

impl Machine {
    /// Queries the system.
    pub fn detect() -> Machine {
        let uname = rustix::system::uname();
        let cpus = allowed_cpus().unwrap_or_default();
        let allowed_cpus = cpus.len().max(1);
        let memory_bytes = meminfo::read_bytes("MemTotal").unwrap_or(0);
        let limits = Limits::detect(allowed_cpus, memory_bytes);
        Machine {
            name: uname.nodename().to_string_lossy().into_owned(),
            cpu_model: processor_field("model name").unwrap_or_else(|| "unknown".to_owned()),
            cpu_signature: signature(),
            architecture: std::env::consts::ARCH.to_owned(),
            instruction_sets: Isa::available().map(|isa| isa.name().to_owned()).collect(),
            cpus: limits.threads(allowed_cpus) as u32,
            limits,
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            nodes: nodes(&cpus).len() as u32,
            memory_bytes,
            page_bytes: rustix::param::page_size() as u64,
            huge_pages: huge_pages(),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            virtual_machine: virtual_machine(),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        }
    }

    /// The size of the last data cache in bytes; 32 MiB if the system does not report it.
    pub fn last_cache_bytes(&self) -> u64 {
        self.caches.iter().map(|cache| cache.bytes).max().unwrap_or(32 << 20)
    }
}

/// The CPUs in the calling thread's affinity mask.
///
/// # Errors
/// The system does not report it.
pub(crate) fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The bytes of memory that this process could still use without swapping, within the limits of its
/// control groups.
pub fn free_memory_bytes() -> u64 {
    meminfo::usable_bytes().unwrap_or(0)
}

fn is_unknown(count: &u32) -> bool {
    *count == 0
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn processor_field(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    field(&text, name)
}

fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    })
}

fn signature() -> String {
    ["vendor_id", "cpu family", "model", "stepping"]
        .iter()
        .filter_map(|name| processor_field(name))
        .collect::<Vec<_>>()
        .join(" ")
}

fn caches(folder: &Path) -> Vec<Cache> {
    let mut found: Vec<Cache> =
        (0..16).map_while(|index| cache(&folder.join(format!("index{index}")))).collect();
    found.retain(|cache| cache.kind != "instruction");
    found.sort_by_key(|cache| cache.level);
    found
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    Some(Cache {
        level: read("level")?.trim().parse().ok()?,
        kind: read("type")?.trim().to_ascii_lowercase(),
        bytes: parse_size(&read("size")?).ok()?,
        shared_by: read("shared_cpu_map")
            .map_or(1, |map| map.chars().filter_map(|c| c.to_digit(16)).map(u32::count_ones).sum()),
    })
}

/// Parses the bracketed choice of `always [madvise] never`.
fn huge_pages() -> String {
    let text = line("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or("never", |(word, _)| word).to_owned()
}

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn virtual_machine() -> Option<String> {
    let cpuid = raw_cpuid::CpuId::new();
    if !cpuid.get_feature_info()?.has_hypervisor() {
        return None;
    }
    Some(match cpuid.get_hypervisor_info() {
        Some(info) => format!("{:?}", info.identify()),
        None => "unknown".to_owned(),
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn virtual_machine() -> Option<String> {
    line("/sys/hypervisor/type")
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: A Processor\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A Processor"));
        assert_eq!(field(text, "name"), None);
    }
}
