//! The conditions of a measurement: the machine, and its other users.
//!
//! All of it is read from `/proc` and `/sys`; missing parts are left out, and no reading fails for
//! them.

mod machine;
mod usage;

use serde::{Deserialize, Serialize};

pub(crate) use machine::allowed_cpus;
pub use machine::{Cache, Machine, free_memory_bytes};
pub use usage::Snapshot;

/// The conditions during one reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct During {
    /// Threads that wanted a CPU, on average over a minute, before the reading.
    pub load: f64,
    /// The share of all CPUs' time that the host took away.
    pub steal: f64,
    /// CPUs that other processes kept busy, on average: 0.5 is half of one.
    pub others: f64,
    /// The least share of its CPU that a thread of a kept run got; 1 if it was not measured.
    pub cpu_share: f64,
    /// The clock measured between the runs, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hertz: Option<f64>,
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
    /// The share of all CPUs' time that the host took away meanwhile.
    pub steal: f64,
    /// CPUs that other processes kept busy meanwhile, on average.
    pub others: f64,
    /// The clock measured at the start, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_before_hertz: Option<f64>,
    /// The clock measured at the end, in Hz, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_after_hertz: Option<f64>,
    /// Readings that are marked as disturbed.
    pub disturbed: u32,
}
