//! The memory bandwidth with which EXPLAIN ANALYZE compares plans.

use std::sync::OnceLock;

use quarrier::Machine;

/// The memory bandwidth, measured on first use.
pub(crate) struct Ceiling {
    machine: Machine,
    bytes_per_second: OnceLock<Option<f64>>,
}

impl Ceiling {
    pub(crate) fn of(machine: &Machine) -> Self {
        Ceiling { machine: machine.clone(), bytes_per_second: OnceLock::new() }
    }

    /// Looks it up or measures it, which takes a fraction of a second.
    pub(crate) fn ask(&self, workers: usize) {
        let memory = || Some(self.machine.memory_ceiling(workers)?.bytes_per_second);
        self.bytes_per_second.get_or_init(memory);
    }

    /// Whether the bandwidth was requested, even if it is unknown.
    pub(crate) fn is_asked(&self) -> bool {
        self.bytes_per_second.get().is_some()
    }

    /// The bandwidth in bytes per second, if requested and known.
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        self.bytes_per_second.get().copied().flatten()
    }
}
