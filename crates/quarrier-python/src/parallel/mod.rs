//! What `quarrier.parallel` is built on: memory that processes share.

mod feed;
mod region;

pub(crate) use feed::SharedFeed;
pub(crate) use region::SharedRegion;

use pyo3::prelude::*;

/// How many workers this process has CPUs for, by affinity and cgroup quota.
#[pyfunction]
pub(crate) fn available_workers() -> usize {
    quarrier_core::parallel::available_workers()
}

/// Lets this process keep what is freed for the next to allocate; for workers.
#[pyfunction]
pub(crate) fn keep_freed_memory() {
    quarrier_core::parallel::keep_freed_memory();
}
