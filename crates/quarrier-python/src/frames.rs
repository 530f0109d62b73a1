//! Rows as other packages have them: data frames, HTML, pickles. `quarrier._frames` makes them.

use pyo3::prelude::*;

/// Makes the frames of rows by the function of `quarrier._frames` with this name.
///
/// # Errors
/// `ImportError` where a package is missing, and what that package raises.
pub(crate) fn made<'py>(
    rows: &Bound<'py, PyAny>,
    name: &str,
    exact: bool,
) -> PyResult<Bound<'py, PyAny>> {
    rows.py().import("quarrier._frames")?.getattr(name)?.call1((rows, exact))
}
