//! The machine profile: the few ceilings by which the engine plans, as plain numbers.
//!
//! ```text
//!  Report ─→ update ─→ MachineProfile ─→ save ─→ a file of JSON
//!                                     ←─ load ←─
//! ```
//!
//! The caller decides where that file is; [`MachineKey::file_name`] gives its name. A profile holds one
//! machine and the mount points that were measured. Beside it are the [`Repeats`], the results of the
//! last runs, by which the next one finds readings that do not repeat. [`MachineProfile::stale`] and
//! [`Disk::is_stale`] say whether a measurement is old, or of something else.

mod file;
mod place;
mod repeats;
mod take;

use serde::{Deserialize, Serialize};

use crate::conditions::Machine;

pub use place::{MountPoint, mount_point};
pub use repeats::{REPEATS_WITHIN_SECONDS, Repeats};

/// The form of the file; another number is another form, which is not read.
pub const FORMAT: u32 = 1;

/// A machine is measured again after this many seconds: 30 days.
pub const STALE_AFTER_SECONDS: u64 = 30 * 24 * 3600;

/// The figures by which the engine plans. Every list may be empty, every number missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    /// [`FORMAT`].
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
    /// One for each mount point that was measured.
    #[serde(default)]
    pub disks: Vec<Disk>,
    /// The loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// One for each device that runs kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
}

/// Identifies a machine, and distinguishes it from its state before a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineKey {
    /// The name of the host.
    pub name: String,
    /// The processor's name of itself.
    pub cpu_model: String,
    /// CPUs that the process might use.
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
    /// When it was measured, in seconds since 1970.
    pub when: u64,
    /// Whether others used the machine meanwhile, for one of the numbers at least.
    pub disturbed: bool,
    /// The clock in Hz, if it was measured.
    pub clock_hertz: Option<f64>,
    /// The most floating-point operations (f64) a second, by threads.
    pub flops: Vec<ByThreads>,
}

/// Memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// When it was measured, in seconds since 1970.
    pub when: u64,
    /// Whether others used the machine meanwhile, for one of the numbers at least.
    pub disturbed: bool,
    /// Bytes read a second from main memory, in order, by threads.
    pub read: Vec<ByThreads>,
    /// Bytes copied a second, by threads; a byte that is read and written counts twice.
    pub copy: Vec<ByThreads>,
    /// Bytes a second that `pread` gives from the page cache, by block and threads.
    pub cached_file_read: Vec<ByBlock>,
    /// Seconds for a load from main memory that must wait for the one before.
    pub latency_seconds: Option<f64>,
}

/// A mount point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// The mount point, its device, and its file system.
    pub mount: MountPoint,
    /// When it was measured, in seconds since 1970.
    pub when: u64,
    /// Whether others used the machine meanwhile, for one of the numbers at least.
    pub disturbed: bool,
    /// Bytes a second, read in order past the page cache, by block and depth.
    pub sequential_read: Vec<ByBlock>,
    /// Reads of 4 KiB a second at random offsets past the page cache, by depth.
    pub random_read: Vec<ByDepth>,
    /// Seconds for one such read, the median at depth 1.
    pub latency_seconds: Option<f64>,
}

/// The loopback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// When it was measured, in seconds since 1970.
    pub when: u64,
    /// Whether others used the machine meanwhile, for one of the numbers at least.
    pub disturbed: bool,
    /// The most bytes a second of TCP.
    pub tcp_bytes_per_second: Option<f64>,
    /// Seconds for a request and its answer, the median.
    pub round_trip_seconds: Option<f64>,
}

/// A device that runs kernels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// As readings name it.
    pub device: String,
    /// How it is reached: `opencl`, `cuda`.
    pub driver: String,
    /// When it was measured, in seconds since 1970.
    pub when: u64,
    /// Whether others used the machine meanwhile, for one of the numbers at least.
    pub disturbed: bool,
    /// The most bytes a second from pinned memory of the host.
    pub host_to_device: f64,
    /// Bytes a second that the device reads from its own memory.
    pub memory_read: Option<f64>,
}

/// A rate by threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByThreads {
    /// Threads at once.
    pub threads: u32,
    /// The rate of all of them per second.
    pub per_second: f64,
}

/// A rate of bytes by the block of one request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByBlock {
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Threads at once.
    pub threads: u32,
    /// Requests of a thread under way at once; 1 where each waits for the one before.
    pub depth: u32,
    /// Bytes a second of all of them together.
    pub bytes_per_second: f64,
}

/// A rate of requests by how many are under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByDepth {
    /// Requests under way at once.
    pub depth: u32,
    /// Threads at once.
    pub threads: u32,
    /// Requests a second.
    pub per_second: f64,
}

/// Why a profile should not be planned by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stale {
    /// It was measured on another machine, or this one was changed since.
    OtherMachine,
    /// It is older than [`STALE_AFTER_SECONDS`], or from the future.
    Old,
    /// It holds nothing about memory, which every plan needs.
    Incomplete,
}

impl MachineProfile {
    /// A profile of `machine` without any number.
    pub fn new(machine: &Machine) -> Self {
        MachineProfile {
            format: FORMAT,
            quarrier: env!("CARGO_PKG_VERSION").to_owned(),
            machine: MachineKey::of(machine),
            ..MachineProfile::default()
        }
    }

    /// Why this should be measured again at `now` (seconds since 1970) on `machine`; `None` where
    /// it may be planned by.
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
    /// Whether it should be measured again at `now`, in seconds since 1970.
    pub fn is_stale(&self, now: u64) -> bool {
        is_old(self.when, now)
    }
}

impl Disk {
    /// Whether it should be measured again at `now`, in seconds since 1970.
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

    /// The name of this machine's file in a folder that machines may share. It depends on the
    /// host's name and the processor, so that a change of the rest replaces the file.
    pub fn file_name(&self) -> String {
        format!("machine-{:016x}.json", self.hash())
    }

    /// The name of the file of its [`Repeats`] in the same folder.
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
            Stale::OtherMachine => "it was measured on another machine, or this one was changed",
            Stale::Old => "it is older than 30 days",
            Stale::Incomplete => "it says nothing about memory",
        })
    }
}

/// Old, or from a future that a wrong clock may have shown.
fn is_old(when: u64, now: u64) -> bool {
    when > now.saturating_add(24 * 3600) || now.saturating_sub(when) > STALE_AFTER_SECONDS
}
