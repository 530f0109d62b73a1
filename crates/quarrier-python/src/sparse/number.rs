//! Offsets and lengths as Python passes them.

use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::errors::raise;

/// An integer from 0 to 2^64 - 1.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(crate) u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Number {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        // SAFETY: `object` is alive, and its type shows that this thread is attached to the
        // interpreter. PyLong_AsUnsignedLongLong takes any object and raises an exception if it is
        // not such a number.
        let number = unsafe { ffi::PyLong_AsUnsignedLongLong(object.as_ptr()) };
        if number == u64::MAX { slowly(&object) } else { Ok(Number(number)) }
    }
}

/// Converts the greatest number, and objects that are not an `int`, such as numpy's integers, or
/// raises.
#[cold]
fn slowly(object: &Bound<'_, PyAny>) -> PyResult<Number> {
    let py = object.py();
    // PyNumber_Index raises again below.
    drop(PyErr::take(py));
    // SAFETY: `object` is alive, and this thread is attached to the interpreter, as `py` shows. The
    // result is a new reference, or null with an exception set.
    let index = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Index(object.as_ptr()))? };
    match index.cast::<PyInt>()?.extract::<u64>() {
        Ok(number) => Ok(Number(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            Err(out_of_range(py, &index.to_string(), &index))
        }
        Err(error) => Err(error),
    }
}

/// The exception for a number that is not an offset.
pub(super) fn out_of_range<'py>(py: Python<'py>, shown: &str, number: &Bound<'py, PyAny>) -> PyErr {
    let message = format!("{shown} is not an offset or length; they go from 0 to 2**64 - 1");
    raise(py, "OffsetOverflowError", (message, number, py.None()))
}
