//! Python objects that show their memory: bytes, bytearray, memoryview, mmap, numpy arrays …

use std::mem::MaybeUninit;
use std::os::raw::c_int;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use quarrier_core::region::ChangingBytes;

use crate::errors::raise;

/// A view of contiguous bytes that another object owns. While it lives, the object neither
/// moves nor resizes them.
pub(crate) struct Buffer<'py> {
    view: Box<ffi::Py_buffer>,
    py: Python<'py>,
}

impl<'py> Buffer<'py> {
    /// The bytes of `object`, to be read.
    ///
    /// # Errors
    /// `TypeError` where it shows no bytes, `BufferLayoutError` if they are not contiguous.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::with_flags(object, ffi::PyBUF_SIMPLE)
    }

    /// The bytes of `object`, to be written to.
    ///
    /// # Errors
    /// As [`Buffer::of`], and `BufferLayoutError` where they may not be written to.
    pub(crate) fn writable(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::with_flags(object, ffi::PyBUF_WRITABLE)
    }

    fn with_flags(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Self> {
        let py = object.py();
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        // SAFETY: the object is alive, and `view` has room for what is filled in. It is boxed
        // because exporters may point into it.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } != 0 {
            return Err(refused(object, flags));
        }
        // SAFETY: 0 means that the view was filled in.
        Ok(Buffer { view: unsafe { Box::from_raw(Box::into_raw(view).cast()) }, py })
    }

    /// The bytes.
    ///
    /// Python code that writes to the same memory at the same time, from another thread,
    /// makes what is read undefined, as it does for `hashlib` and numpy.
    pub(crate) fn bytes(&self) -> &[u8] {
        let length = self.length();
        if length == 0 {
            return &[];
        }
        // SAFETY: a simple view is `len` contiguous bytes from `buf`, which stay where they
        // are until the view is released.
        unsafe { std::slice::from_raw_parts(self.view.buf.cast::<u8>(), length) }
    }

    /// The bytes, to be written to.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.length();
        if length == 0 || self.view.readonly != 0 {
            return &mut [];
        }
        // SAFETY: as in `bytes`; that they may be written to is asked for and checked.
        unsafe { std::slice::from_raw_parts_mut(self.view.buf.cast::<u8>(), length) }
    }

    /// The bytes, which other threads of the interpreter, or processes where memory is shared, may
    /// change while ours look at them without its lock.
    pub(crate) fn shown(&self) -> ChangingBytes<'_> {
        // SAFETY: a simple view is `len` contiguous bytes from `buf`, which stay where they are
        // until the view is released, as `self` is dropped.
        unsafe { ChangingBytes::new(self.view.buf.cast::<u8>(), self.length()) }
    }

    /// The thread's attachment to the interpreter.
    pub(crate) fn py(&self) -> Python<'py> {
        self.py
    }

    fn length(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: filled in by PyObject_GetBuffer, released once, by a thread that is attached
        // to the interpreter, as `py` shows.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
    }
}

/// Takes the exporter's error and says what to do about it.
fn refused(object: &Bound<'_, PyAny>, flags: c_int) -> PyErr {
    let py = object.py();
    let cause = PyErr::fetch(py);
    let class = object.get_type();
    let class = class.name().map_or_else(|_| "object".to_string(), |name| name.to_string());
    // SAFETY: the object is alive.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return PyTypeError::new_err(format!("a bytes-like object is needed, not '{class}'"));
    }
    let message = if flags == ffi::PyBUF_WRITABLE && Buffer::of(object).is_ok() {
        format!("this {class} may not be written to; give a bytearray or a writable array")
    } else {
        format!(
            "this {class} is not contiguous; copy it first: bytes(…), numpy.ascontiguousarray(…)"
        )
    };
    let error = raise(py, "BufferLayoutError", (message,));
    error.set_cause(py, Some(cause));
    error
}
