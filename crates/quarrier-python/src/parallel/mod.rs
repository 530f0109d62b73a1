//! The foundation of `quarrier.parallel`: memory that processes share.

mod feed;
mod region;

pub(crate) use feed::SharedFeed;
pub(crate) use region::SharedRegion;

use pyo3::prelude::*;

/// Returns the number of workers that this process has CPUs for, by affinity and cgroup quota.
#[pyfunction]
pub(crate) fn available_workers() -> usize {
    quarrier_core::parallel::available_workers()
}

/// Makes this process keep freed memory for later allocations. Workers call it.
#[pyfunction]
pub(crate) fn keep_freed_memory() {
    quarrier_core::parallel::keep_freed_memory();
}
