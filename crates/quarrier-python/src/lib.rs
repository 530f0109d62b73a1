//! The Python package `quarrier`: the other crates for Python, without their bytes being copied.
//!
//! ```text
//!  quarrier/__init__.py ─→ quarrier._native ─┬─ search    requests to the facade (quarrier)
//!  what users import        this crate       ├─ findings  rows, and as an Arrow stream
//!                                            ├─ carve     files recovered, likewise
//!                                            ├─ sparse    sparse files (quarrier-sparse)
//!                                            ├─ parallel memory that processes share
//!                                            ├─ table     messages as columns (quarrier-messages)
//!                                            ├─ gauge    the machine's ceilings (quarrier-gauge)
//!                                            ├─ buffer    whatever shows bytes: bytes, mmap, numpy
//!                                            └─ errors    a Python class for each Rust error
//! ```
//!
//! The interpreter's lock is released around work; a signal ends a search (`interrupt`).
//! Nothing here runs Python code while it holds a lock of its own.

mod host;

mod errors;

mod buffer;

mod count;

mod interrupt;

mod pattern;

mod search;

mod findings;

mod carve;

mod carved;

mod stream;

mod source;

mod sparse;

mod parallel;

mod table;

mod gauge;

use pyo3::prelude::*;

/// The native half of the package; see `quarrier`.
#[pymodule(gil_used = false, name = "_native")]
mod native {
    #[pymodule_export]
    use super::carve::carve;
    #[pymodule_export]
    use super::carved::CarvedFiles;
    #[pymodule_export]
    use super::findings::Findings;
    #[pymodule_export]
    use super::gauge::gauge_json;
    #[pymodule_export]
    use super::parallel::{SharedFeed, SharedRegion, available_workers, keep_freed_memory};
    #[pymodule_export]
    use super::pattern::{Pattern, hex, regex};
    #[pymodule_export]
    use super::search::search;
    #[pymodule_export]
    use super::source::{Source, open_source};
    #[pymodule_export]
    use super::sparse::{CostModel, ReadAhead, SparseFile, SparseStore};
    #[pymodule_export]
    use super::table::{Table, statement_files, statement_for_datafusion, statement_table};

    /// Panics that a library is known for, and that become errors, are not printed; what only the
    /// loader reads takes no memory.
    #[pymodule_init]
    fn begin(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        quarrier_core::region::give_back_relocations();
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !quarrier_messages::is_panic_caught() {
                told(panic);
            }
        }));
        Ok(())
    }
}
