//! The conditions of a measurement: the machine, and its other users.
//!
//! All of it is read from `/proc` and `/sys`; missing parts are left out, and no reading fails for
//! them.

mod groups;
mod limits;
mod machine;
mod pressure;
mod usage;

use serde::{Deserialize, Serialize};

pub use limits::Limits;
pub(crate) use machine::allowed_cpus;
pub use machine::{Cache, Machine, free_memory_bytes};
pub use pressure::Pressure;
pub use usage::Snapshot;

/// The conditions during one reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct During {
    /// Threads that wanted a CPU, on average over a minute, before the reading.
    pub load: f64,
    /// The share of the time of the CPUs that this process may use that the host took away.
    pub steal: f64,
    /// CPUs, of those that this process may use, that other processes kept busy on average: 0.5 is half of
    /// one.
    pub others: f64,
    /// The least share of its CPU that a thread of a kept run got; 1 if it was not measured.
    pub cpu_share: f64,
    /// The clock measured between the runs, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hertz: Option<f64>,
    /// Periods in which control groups held this process back because its CPU quota was used up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttled_periods: u64,
    /// Seconds that its threads waited for the next period, all together.
    #[serde(default, skip_serializing_if = "is_none")]
    pub throttled_seconds: f64,
    /// How long threads waited for CPUs, memory, and input and output, if the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The same as the reading's: others used the machine, or the runs disagree.
    pub disturbed: bool,
}

/// The conditions while a report was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conditions {
    /// Threads that wanted a CPU, on average over a minute, at the start.
    pub load_before: f64,
    /// The same at the end.
    pub load_after: f64,
    /// The share of the time of the CPUs that this process may use that the host took away meanwhile.
    pub steal: f64,
    /// CPUs, of those that this process may use, that other processes kept busy meanwhile on average.
    pub others: f64,
    /// The clock measured at the start, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_before_hertz: Option<f64>,
    /// The clock measured at the end, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_after_hertz: Option<f64>,
    /// Periods in which control groups held this process back because its CPU quota was used up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttled_periods: u64,
    /// Seconds that its threads waited for the next period, all together.
    #[serde(default, skip_serializing_if = "is_none")]
    pub throttled_seconds: f64,
    /// How long threads waited for CPUs, memory, and input and output meanwhile, if the kernel counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// Readings that are marked as disturbed.
    pub disturbed: u32,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}
