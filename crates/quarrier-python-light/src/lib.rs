//! The native module of the Python package `quarrier`, without the engine for all of SQL: `quarrier._light`.

use pyo3::prelude::*;

/// The native half of the package without the engine for all of SQL; see `quarrier`.
#[pymodule(gil_used = false, name = "_light")]
fn light(module: &Bound<'_, PyModule>) -> PyResult<()> {
    quarrier_native::fill(module)
}
