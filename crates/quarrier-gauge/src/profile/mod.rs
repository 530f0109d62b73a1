//! The machine profile: the few ceilings that the engine uses for planning, as plain numbers.
//!
//! ```text
//!  Report ─→ update ─→ MachineProfile ─→ save ─→ a file of JSON
//!                                     ←─ load ←─
//! ```
//!
//! The caller chooses the folder of that file; [`MachineKey::file_name`] is its name. A profile holds
//! one machine and the measured mount points. Beside it are the [`Repeats`], the results of recent
//! runs, which reveal readings that do not repeat. [`MachineProfile::stale`] and [`Disk::is_stale`]
//! detect measurements that are old, or of something else.

mod file;
mod place;
mod repeats;
mod take;

use serde::{Deserialize, Serialize};

use crate::conditions::Machine;

pub use place::{MountPoint, mount_point};
pub use repeats::{REPEATS_WITHIN_SECONDS, Repeats};

/// The format of the file; other formats are not read.
pub const FORMAT: u32 = 1;

/// A machine is measured again after this many seconds: 30 days.
pub const STALE_AFTER_SECONDS: u64 = 30 * 24 * 3600;

/// The figures that the engine uses for planning. Any list may be empty, any number missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    /// The format: [`FORMAT`].
    pub format: u32,
    /// The version of quarrier that measured.
    pub quarrier: String,
    /// The machine.
    pub machine: MachineKey,
    /// Arithmetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Caches, main memory, and files in the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The measured disks, one for each mount point.
    #[serde(default)]
    pub disks: Vec<Disk>,
    /// The loopback network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The devices that run kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
}

/// Identifies a machine, and detects that it has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineKey {
    /// The name of the host.
    pub name: String,
    /// The model name that the processor reports.
    pub cpu_model: String,
    /// The number of CPUs that the process could use.
    pub cpus: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The kernel and its version.
    pub kernel: String,
}

/// Arithmetic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// The time of the measurement, in seconds since 1970.
    pub when: u64,
    /// Whether others disturbed any of the numbers.
    pub disturbed: bool,
    /// The clock in Hz, if it was measured.
    pub clock_hertz: Option<f64>,
    /// The highest rate of floating-point operations (f64) per second, by threads.
    pub flops: Vec<ByThreads>,
}

/// Memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// The time of the measurement, in seconds since 1970.
    pub when: u64,
    /// Whether others disturbed any of the numbers.
    pub disturbed: bool,
    /// Sequential read bandwidth of main memory in bytes per second, by threads.
    pub read: Vec<ByThreads>,
    /// Bytes copied per second, by threads; each byte counts twice, as read and as written.
    pub copy: Vec<ByThreads>,
    /// Bytes per second that `pread` returns from the page cache, by block size and threads.
    pub cached_file_read: Vec<ByBlock>,
    /// Latency of a dependent load from main memory, in seconds.
    pub latency_seconds: Option<f64>,
}

/// A mount point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// The mount point, its device, and its file system.
    pub mount: MountPoint,
    /// The time of the measurement, in seconds since 1970.
    pub when: u64,
    /// Whether others disturbed any of the numbers.
    pub disturbed: bool,
    /// Sequential read rate without the page cache in bytes per second, by block size and depth.
    pub sequential_read: Vec<ByBlock>,
    /// Random reads of 4 KiB per second without the page cache, by depth.
    pub random_read: Vec<ByDepth>,
    /// The median time of one random read at depth 1, in seconds.
    pub latency_seconds: Option<f64>,
}

/// The loopback network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The time of the measurement, in seconds since 1970.
    pub when: u64,
    /// Whether others disturbed any of the numbers.
    pub disturbed: bool,
    /// The highest rate of TCP in bytes per second.
    pub tcp_bytes_per_second: Option<f64>,
    /// The median time of a request and its answer, in seconds.
    pub round_trip_seconds: Option<f64>,
}

/// A device that runs kernels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The name of the device in readings.
    pub device: String,
    /// The driver interface: `opencl`, `cuda`.
    pub driver: String,
    /// The time of the measurement, in seconds since 1970.
    pub when: u64,
    /// Whether others disturbed any of the numbers.
    pub disturbed: bool,
    /// The highest transfer rate from pinned host memory, in bytes per second.
    pub host_to_device: f64,
    /// The rate at which the device reads its own memory, in bytes per second.
    pub memory_read: Option<f64>,
}

/// A rate by threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByThreads {
    /// The number of threads.
    pub threads: u32,
    /// The combined rate per second.
    pub per_second: f64,
}

/// A byte rate by the block size of a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByBlock {
    /// Bytes per request.
    pub block_bytes: u64,
    /// The number of threads.
    pub threads: u32,
    /// Requests in flight per thread; 1 if each waits for the preceding one.
    pub depth: u32,
    /// The combined rate, in bytes per second.
    pub bytes_per_second: f64,
}

/// A request rate by the number in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByDepth {
    /// Requests in flight per thread.
    pub depth: u32,
    /// The number of threads.
    pub threads: u32,
    /// Requests per second.
    pub per_second: f64,
}

/// Why a profile should not be used for planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stale {
    /// It was measured on another machine, or this one has changed since.
    OtherMachine,
    /// It is older than [`STALE_AFTER_SECONDS`], or from the future.
    Old,
    /// It lacks memory rates, which every plan needs.
    Incomplete,
}

impl MachineProfile {
    /// Creates a profile of `machine` without any number.
    pub fn new(machine: &Machine) -> Self {
        MachineProfile {
            format: FORMAT,
            quarrier: env!("CARGO_PKG_VERSION").to_owned(),
            machine: MachineKey::of(machine),
            ..MachineProfile::default()
        }
    }

    /// Why to measure again at `now` (seconds since 1970) on `machine`; `None` if the profile can be
    /// used.
    pub fn stale(&self, machine: &MachineKey, now: u64) -> Option<Stale> {
        if self.machine != *machine {
            return Some(Stale::OtherMachine);
        }
        match &self.memory {
            None => Some(Stale::Incomplete),
            Some(memory) if is_old(memory.when, now) => Some(Stale::Old),
            Some(_) => None,
        }
    }

    /// The measurements of the mount point that holds a file, if any.
    pub fn disk(&self, mount: &MountPoint) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.mount == *mount)
    }
}

impl Gpu {
    /// Whether to measure again at `now`, in seconds since 1970.
    pub fn is_stale(&self, now: u64) -> bool {
        is_old(self.when, now)
    }
}

impl Disk {
    /// Whether to measure again at `now`, in seconds since 1970.
    pub fn is_stale(&self, now: u64) -> bool {
        is_old(self.when, now)
    }
}

impl MachineKey {
    /// The key of `machine`.
    pub fn of(machine: &Machine) -> Self {
        MachineKey {
            name: machine.name.clone(),
            cpu_model: machine.cpu_model.clone(),
            cpus: machine.cpus,
            memory_bytes: machine.memory_bytes,
            kernel: machine.kernel.clone(),
        }
    }

    /// The file name for this machine in a folder that machines may share. It depends on the host's
    /// name and the processor, so a machine with other changes replaces its file.
    pub fn file_name(&self) -> String {
        format!("machine-{:016x}.json", self.hash())
    }

    /// The file name of the machine's [`Repeats`] in the same folder.
    pub fn repeats_file_name(&self) -> String {
        format!("machine-{:016x}.repeats.json", self.hash())
    }

    fn hash(&self) -> u64 {
        // FNV-1a: the name must be the same in every version and run.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in self.name.bytes().chain([0]).chain(self.cpu_model.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash
    }
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stale::OtherMachine => "it was measured on another machine, or this one has changed",
            Stale::Old => "it is older than 30 days",
            Stale::Incomplete => "it has no memory rates",
        })
    }
}

/// Whether the time is old, or in a future that a wrong clock may have shown.
fn is_old(when: u64, now: u64) -> bool {
    when > now.saturating_add(24 * 3600) || now.saturating_sub(when) > STALE_AFTER_SECONDS
}
