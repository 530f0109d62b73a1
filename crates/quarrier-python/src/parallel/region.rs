//! Shared memory as an object with the buffer protocol.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use quarrier_core::region;

use crate::errors::of_core;

/// Zeroed memory that this process shares with others. No code here makes a slice of it, because
/// other processes may write to it.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct SharedRegion {
    region: Arc<region::SharedRegion>,
}

#[pymethods]
impl SharedRegion {
    #[new]
    fn new(py: Python<'_>, nbytes: usize) -> PyResult<Self> {
        let made = py.detach(|| region::SharedRegion::new(nbytes));
        made.map(SharedRegion::from).map_err(|error| of_core(py, &error))
    }

    /// Maps the memory of a descriptor that another process sent; the descriptor is duplicated.
    #[staticmethod]
    fn from_fd(py: Python<'_>, fd: RawFd, nbytes: usize) -> PyResult<Self> {
        if fd < 0 {
            return Err(PyValueError::new_err("a file descriptor is not negative"));
        }
        // SAFETY: `fd` is not negative, and the borrow ends with the duplication in the next line.
        // The system refuses a descriptor that is not open.
        let given = unsafe { BorrowedFd::borrow_raw(fd) };
        let file = given.try_clone_to_owned()?;
        // SAFETY: this crate makes no slice of the region, so that no writer can change bytes under
        // one. Nothing here prevents a holder from shortening the file: the documentation asks that
        // of Python code.
        let made = unsafe { region::SharedRegion::try_from_fd(file, nbytes) };
        made.map(SharedRegion::from).map_err(|error| of_core(py, &error))
    }

    /// The descriptor, which the region still owns.
    fn fileno(&self) -> RawFd {
        self.region.as_fd().as_raw_fd()
    }

    #[getter]
    fn nbytes(&self) -> usize {
        self.region.len()
    }

    #[getter]
    fn page_bytes(&self) -> usize {
        self.region.page_bytes()
    }

    #[getter]
    fn backing(&self) -> &'static str {
        self.region.backing().name()
    }

    /// The reason why this process has no huge pages; `None` if it has some, or has not requested
    /// any yet.
    #[staticmethod]
    fn huge_pages_refused() -> Option<&'static str> {
        region::SharedRegion::huge_pages_refused()
    }

    /// Adds to the eight bytes at `offset` and returns their old value.
    fn fetch_add(&self, py: Python<'_>, offset: usize, value: u64) -> PyResult<u64> {
        Ok(self.counter(py, offset)?.fetch_add(value, Ordering::SeqCst))
    }

    fn load(&self, py: Python<'_>, offset: usize) -> PyResult<u64> {
        Ok(self.counter(py, offset)?.load(Ordering::SeqCst))
    }

    fn store(&self, py: Python<'_>, offset: usize, value: u64) -> PyResult<()> {
        self.counter(py, offset)?.store(value, Ordering::SeqCst);
        Ok(())
    }

    /// Allocates the pages of a range now, rather than one by one at first touch.
    fn populate(&self, py: Python<'_>, offset: usize, length: usize) {
        py.detach(|| self.region.populate(offset, length));
    }

    fn __len__(&self) -> usize {
        self.region.len()
    }

    fn __repr__(&self) -> String {
        format!("<quarrier shared region, {} bytes, {}>", self.region.len(), self.backing())
    }

    /// # Safety
    /// `view` is a `Py_buffer` that the interpreter wants filled in, and this thread is attached to
    /// it.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let region = &slf.get().region;
        let length = ffi::Py_ssize_t::try_from(region.len())
            .map_err(|_| PyValueError::new_err("too long for a buffer"))?;
        // SAFETY: the caller promises `view`, and `slf` shows that this thread is attached. The
        // view holds a reference to the object, and thus to the region, so that its `length` bytes
        // stay mapped. They are writable, and this crate makes no slice of them.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                region.as_ptr().as_ptr().cast(),
                length,
                0,
                flags,
            )
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

impl From<region::SharedRegion> for SharedRegion {
    fn from(region: region::SharedRegion) -> Self {
        SharedRegion { region: Arc::new(region) }
    }
}

impl SharedRegion {
    /// Wraps the memory of a feed, which stays shared with the feed.
    pub(super) fn of_feed(region: &Arc<region::SharedRegion>) -> Self {
        SharedRegion { region: Arc::clone(region) }
    }

    fn counter(&self, py: Python<'_>, offset: usize) -> PyResult<&AtomicU64> {
        // SAFETY: this crate makes no slice of the region, so that the atomic accesses meet no Rust
        // reference. Python code that accesses the same bytes through a buffer races with them, as
        // with any shared buffer.
        unsafe { self.region.counter(offset) }.map_err(|error| of_core(py, &error))
    }
}
