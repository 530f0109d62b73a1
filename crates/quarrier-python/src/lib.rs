//! The Python package `quarrier`: exposes the other crates to Python without copying their bytes.
//!
//! ```text
//!  quarrier/__init__.py ─→ quarrier._native ─┬─ search    requests to the facade (quarrier)
//!  what users import        this crate       ├─ findings  rows, and as an Arrow stream
//!                                            ├─ rules     matches of YARA rules
//!                                            ├─ units     parts of sources for other processes
//!                                            ├─ frames    rows as pandas, polars, HTML
//!                                            ├─ carve     recovered files, likewise
//!                                            ├─ files     files of file systems, as dicts
//!                                            ├─ sparse    sparse files (quarrier-sparse)
//!                                            ├─ parallel  memory that processes share
//!                                            ├─ table     messages as columns (quarrier-messages)
//!                                            ├─ store     tables kept in a data folder
//!                                            ├─ sql       full SQL, if a module includes it
//!                                            ├─ gauge     the machine's ceilings (quarrier-gauge)
//!                                            ├─ buffer    exporters of bytes: bytes, mmap, numpy
//!                                            └─ errors    a Python class for each Rust error
//! ```
//!
//! The crate is linked twice: alone as `quarrier._light` (`quarrier-python-light`), and with an engine for all
//! of SQL as `quarrier_sql._native` (`quarrier-python-sql`). `quarrier._native` imports the installed one, so
//! that there is a single class of tables.
//!
//! The interpreter's lock is released during long calls; a signal ends a search (`interrupt`). No
//! code here runs Python while it holds one of its own locks.

mod host;

mod errors;

mod buffer;

mod count;

mod interrupt;

mod pattern;

mod rules;

mod search;

mod findings;

mod sequence;

mod frames;

mod carve;

mod carved;

mod files;

mod stream;

mod source;

mod sparse;

mod parallel;

pub mod sql;

mod store;

mod table;

mod units;

mod gauge;

use pyo3::prelude::*;

/// Adds all classes and functions to a module.
///
/// Afterwards panics are not printed, because they become exceptions, and memory that only the
/// loader needed is given back to the system.
///
/// # Errors
/// Any exception that Python raises.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    quarrier_core::region::give_back_relocations();
    quarrier_core::panics::watch(quarrier_messages::is_panic_caught);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    add_classes(module)?;
    add_functions(module)
}

fn add_classes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<carved::CarvedFiles>()?;
    module.add_class::<findings::Findings>()?;
    module.add_class::<parallel::SharedFeed>()?;
    module.add_class::<parallel::SharedRegion>()?;
    module.add_class::<pattern::Pattern>()?;
    module.add_class::<rules::RuleFindings>()?;
    module.add_class::<source::Source>()?;
    module.add_class::<sparse::CostModel>()?;
    module.add_class::<sparse::ReadAhead>()?;
    module.add_class::<sparse::SparseFile>()?;
    module.add_class::<sparse::SparseStore>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<table::Table>()
}

fn add_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(carve::carve, module)?)?;
    module.add_function(wrap_pyfunction!(files::files, module)?)?;
    module.add_function(wrap_pyfunction!(gauge::gauge_json, module)?)?;
    module.add_function(wrap_pyfunction!(parallel::available_workers, module)?)?;
    module.add_function(wrap_pyfunction!(parallel::keep_freed_memory, module)?)?;
    module.add_function(wrap_pyfunction!(pattern::hex, module)?)?;
    module.add_function(wrap_pyfunction!(pattern::regex, module)?)?;
    module.add_function(wrap_pyfunction!(search::search, module)?)?;
    module.add_function(wrap_pyfunction!(source::open_source, module)?)?;
    module.add_function(wrap_pyfunction!(units::cut, module)?)?;
    module.add_function(wrap_pyfunction!(table::query::query, module)?)
}
