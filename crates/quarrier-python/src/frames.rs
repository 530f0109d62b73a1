//! Rows as objects of other packages: data frames, HTML, pickles. `quarrier._frames` makes them.

use pyo3::prelude::*;

/// Converts rows by the function of `quarrier._frames` with this name.
///
/// # Errors
/// `ImportError` if a package is missing, and any exception that the package raises.
pub(crate) fn convert<'py>(
    rows: &Bound<'py, PyAny>,
    name: &str,
    exact: bool,
) -> PyResult<Bound<'py, PyAny>> {
    rows.py().import("quarrier._frames")?.getattr(name)?.call1((rows, exact))
}
