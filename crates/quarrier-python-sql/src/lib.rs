//! The Python package `quarrier-sql`: the native module of `quarrier`, with an engine for all of
//! SQL.
//!
//! ```text
//!  quarrier_sql._native ─┬─ everything in quarrier._light   quarrier-python
//!                        └─ full: runs statements ────────→ quarrier-sql
//!                             ├─ packed   packs the rows of answers into tables
//!                             └─ refused  converts errors
//! ```
//!
//! The engine scans Python's tables without a copy. For that, this module contains the classes of
//! `quarrier` itself, and `quarrier` uses them instead of those in the light module.

mod full;

mod packed;

mod refused;

use pyo3::prelude::*;

/// The native module of the package `quarrier`, with all of SQL.
#[pymodule(gil_used = false, name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    quarrier_native::sql::provide(&full::Full);
    quarrier_native::fill(module)
}
