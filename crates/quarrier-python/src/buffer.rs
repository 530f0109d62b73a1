//! Python objects that export their memory: bytes, bytearray, memoryview, mmap, numpy arrays …

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::os::raw::c_int;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use quarrier_core::region::{AsData, ChangingBytes};

use crate::errors::raise;

/// A view of contiguous bytes that another object owns. While it lives, the object neither
/// moves nor resizes them.
pub(crate) struct Buffer<'py> {
    view: Box<ffi::Py_buffer>,
    /// /// The token of the attached thread.
    _py: Python<'py>,
}

impl<'py> Buffer<'py> {
    /// Borrows the bytes of `object` for reading.
    ///
    /// # Errors
    /// `TypeError` if it exports no bytes, `BufferLayoutError` if they are not contiguous.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::with_flags(object, ffi::PyBUF_SIMPLE)
    }

    /// Borrows the bytes of `object` for writing.
    ///
    /// # Errors
    /// As [`Buffer::of`], and `BufferLayoutError` if they are read-only.
    pub(crate) fn writable(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::with_flags(object, ffi::PyBUF_WRITABLE)
    }

    fn with_flags(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Self> {
        let py = object.py();
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        // SAFETY: `object` is alive, this thread is attached to the interpreter, as `py` shows, and `view`
        // has space for a Py_buffer. It is boxed because exporters may point into it.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } != 0 {
            return Err(refused(object, flags));
        }
        // SAFETY: the result 0 means that PyObject_GetBuffer has initialised the view; the cast from
        // `MaybeUninit` keeps size and alignment, and the box is freed as the type that it now has.
        Ok(Buffer { view: unsafe { Box::from_raw(Box::into_raw(view).cast()) }, _py: py })
    }

    /// Returns the current bytes: those of a `bytes` object in place, because they never change,
    /// and a copy of any other object's.
    pub(crate) fn steady(&self) -> Cow<'_, [u8]> {
        let (shown, owner) = (self.changing_bytes(), self.view.obj);
        // SAFETY: `owner` is NULL, which is checked first, or the exporter, to which the view holds a
        // reference, and this thread is attached to the interpreter, as `_py` shows.
        if !owner.is_null() && unsafe { ffi::PyBytes_CheckExact(owner) } != 0 {
            // SAFETY: nothing writes to a `bytes` object that others have, so that each load of a byte gives
            // the same value.
            return Cow::Borrowed(shown.as_data(unsafe { AsData::promised() }));
        }
        let mut copy = vec![0; shown.len()];
        shown.copy_to(0, &mut copy);
        Cow::Owned(copy)
    }

    /// Returns the bytes for writing; an empty slice if they are read-only.
    ///
    /// Pass the slice only to code that fills it and does not read back what it wrote: Python code
    /// on another thread may use the same memory at the same time, and then either side may see any
    /// mixture, as with `readinto` of a file. Strictly, Rust does not define that; see
    /// [`ChangingBytes`].
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.length();
        if length == 0 || self.view.readonly != 0 {
            return &mut [];
        }
        // SAFETY: `length` is not 0, and a simple view is `len` contiguous bytes from `buf`, which neither
        // move nor disappear until the view is released, when `self` is dropped. `readonly` is 0, so they may
        // be written, and `&mut self` excludes other slices of this view. Other threads of Python may access
        // them, with the reservation above.
        unsafe { std::slice::from_raw_parts_mut(self.view.buf.cast::<u8>(), length) }
    }

    /// Returns the bytes, which other threads of the interpreter, or other processes that share the memory,
    /// may change while our threads read them without the interpreter's lock.
    pub(crate) fn changing_bytes(&self) -> ChangingBytes<'_> {
        // SAFETY: a simple view is `len` contiguous bytes from `buf`, within one allocation or mapping, and
        // they can be read until the view is released, when `self` is dropped. They need not stay the same.
        unsafe { ChangingBytes::new(self.view.buf.cast::<u8>(), self.length()) }
    }

    fn length(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: PyObject_GetBuffer filled in the view, only `drop` releases it, and this thread is attached
        // to the interpreter, as `_py` shows.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
    }
}

/// Replaces the exporter's error by one that names the remedy.
fn refused(object: &Bound<'_, PyAny>, flags: c_int) -> PyErr {
    let py = object.py();
    let cause = PyErr::fetch(py);
    let class = object.get_type();
    let class = class.name().map_or_else(|_| "object".to_string(), |name| name.to_string());
    // SAFETY: `object` is alive, and this thread is attached to the interpreter, as `py` shows.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return PyTypeError::new_err(format!("a bytes-like object is needed, not '{class}'"));
    }
    let message = if flags == ffi::PyBUF_WRITABLE && Buffer::of(object).is_ok() {
        format!("this {class} is read-only; pass a bytearray or a writable array")
    } else {
        format!(
            "this {class} is not contiguous; copy it first: bytes(…), numpy.ascontiguousarray(…)"
        )
    };
    let error = raise(py, "BufferLayoutError", (message,));
    error.set_cause(py, Some(cause));
    error
}
