//! Counts and sizes, or `"auto"`, where quarrier chooses.

use pyo3::prelude::*;
use pyo3::types::PyString;
use quarrier_core::size::parse_size;

use crate::errors::raise;

/// A count, written as on the command line; 0 for `"auto"`.
#[derive(Clone, Copy)]
pub(crate) struct Count(usize);

impl Count {
    /// Returns the count; 0 if none is given.
    pub(crate) fn or_auto(count: Option<Count>) -> usize {
        count.map_or(0, |count| count.0)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Count {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(text) = object.cast::<PyString>() else { return object.extract().map(Count) };
        match text.to_cow()?.as_ref() {
            "auto" => Ok(Count(0)),
            other => {
                let message = format!("'{other}' is not a count; write a number or 'auto'");
                Err(raise(object.py(), "PlanError", (message,)))
            }
        }
    }
}

/// A size in bytes: a number, or a string as on the command line (`"64M"`).
#[derive(Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Size {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<PyString>() {
            Ok(text) => parsed(object.py(), &text.to_cow()?).map(Size),
            Err(_) => object.extract().map(Size),
        }
    }
}

/// A size; 0 for `"auto"`.
#[derive(Clone, Copy)]
pub(crate) struct AutoSize(pub(crate) usize);

impl<'a, 'py> FromPyObject<'a, 'py> for AutoSize {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let text = object.cast::<PyString>();
        if text.is_ok_and(|text| text.to_cow().is_ok_and(|text| text == "auto")) {
            return Ok(AutoSize(0));
        }
        let Size(bytes) = object.extract()?;
        Ok(AutoSize(usize::try_from(bytes)?))
    }
}

fn parsed(py: Python<'_>, text: &str) -> PyResult<u64> {
    parse_size(text).map_err(|error| raise(py, "PlanError", (error.to_string(),)))
}
