//! The Python package `quarrier-sql`: the native half of `quarrier` with an engine for all of SQL.
//!
//! ```text
//!  quarrier_sql._native ─┬─ all that quarrier._light has   quarrier-python
//!                        └─ full: statements answered ───→ quarrier-sql
//!                             ├─ packed   rows of answers, as tables hold them
//!                             └─ refused  why there is no answer
//! ```
//!
//! The engine scans a table of Python without a copy: for that, this module holds the classes once
//! more, and `quarrier` uses them instead of the light ones.

mod full;

mod packed;

mod refused;

use pyo3::prelude::*;

/// The native half of the package `quarrier` with all of SQL.
#[pymodule(gil_used = false, name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    quarrier_native::sql::provide(&full::Full);
    quarrier_native::fill(module)
}
