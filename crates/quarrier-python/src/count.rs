//! Counts that quarrier may choose itself.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::raise;

/// A count of at least 1, or `"auto"`, as on the command line.
#[derive(Clone, Copy)]
pub(crate) struct Count(Option<usize>);

impl Count {
    /// The count; none where it is not given, or `"auto"`.
    pub(crate) fn chosen(count: Option<Count>) -> Option<usize> {
        count.and_then(|count| count.0)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Count {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let refused = |shown: &str| {
            let message = format!("{shown} is no count; it must be at least 1, or 'auto'");
            raise(object.py(), "PlanError", (message,))
        };
        if let Ok(text) = object.cast::<PyString>() {
            return match text.to_cow()?.as_ref() {
                "auto" => Ok(Count(None)),
                other => Err(refused(&format!("'{other}'"))),
            };
        }
        match object.extract()? {
            0 => Err(refused("0")),
            count => Ok(Count(Some(count))),
        }
    }
}
