//! The conditions of a measurement: the machine, and its other users.
//!
//! Everything is read from `/proc` and `/sys`. Missing parts are left out, and never fail a reading.

mod groups;
mod limits;
mod machine;
mod nodes;
mod pressure;
mod usage;

use serde::{Deserialize, Serialize};

pub use limits::Limits;
pub(crate) use machine::allowed_cpus;
pub use machine::{Cache, Machine, free_memory_bytes};
pub use nodes::{Node, nodes};
pub use pressure::Pressure;
pub use usage::Snapshot;

/// The conditions during one reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct During {
    /// The load average over the minute before the reading: threads that wanted a CPU.
    pub load: f64,
    /// Steal: the share of CPU time, on the CPUs of this process, that the host took away.
    pub steal: f64,
    /// CPUs, of those that this process may use, that other processes kept busy on average: 0.5 is half a
    /// CPU.
    pub others: f64,
    /// The smallest share of its CPU that a thread of a kept run got; 1 if not measured.
    pub cpu_share: f64,
    /// The clock measured between the runs, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hertz: Option<f64>,
    /// Periods in which control groups throttled this process because its CPU quota was used up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttled_periods: u64,
    /// Seconds that the threads of this process were throttled, added up.
    #[serde(default, skip_serializing_if = "is_none")]
    pub throttled_seconds: f64,
    /// How long threads waited for CPUs, memory and I/O, if the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// Whether the reading was disturbed: others used the machine, or the runs disagree.
    pub disturbed: bool,
}

/// The conditions while a report was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// The load average over a minute at the start: threads that wanted a CPU.
    pub load_before: f64,
    /// The load average over a minute at the end.
    pub load_after: f64,
    /// Steal: the share of CPU time, on the CPUs of this process, that the host took away during the
    /// run.
    pub steal: f64,
    /// CPUs, of those that this process may use, that other processes kept busy on average during the
    /// run.
    pub others: f64,
    /// The clock measured at the start, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_before_hertz: Option<f64>,
    /// The clock measured at the end, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_after_hertz: Option<f64>,
    /// Periods in which control groups throttled this process because its CPU quota was used up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttled_periods: u64,
    /// Seconds that the threads of this process were throttled, added up.
    #[serde(default, skip_serializing_if = "is_none")]
    pub throttled_seconds: f64,
    /// How long threads waited for CPUs, memory and I/O during the run, if the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The number of readings marked as disturbed.
    pub disturbed: u32,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}
