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

    /// Has it looked up, or measured, which takes a fraction of a second.
    pub(crate) fn ask(&self, workers: usize) {
        let memory = || Some(self.machine.memory_ceiling(workers)?.bytes_per_second);
        self.bytes_per_second.get_or_init(memory);
    }

    /// Whether somebody wanted to know, of whatever ceiling there is.
    pub(crate) fn is_asked(&self) -> bool {
        self.bytes_per_second.get().is_some()
    }

    /// Bytes per second, if requested and known.
    pub(crate) fn bytes_per_second(&self) -> Option<f64> {
        self.bytes_per_second.get().copied().flatten()
    }
}
