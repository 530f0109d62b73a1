//! Reuses the memory of large arrays of numbers.
//!
//! In a call that returns half a million offsets, two thirds of the time went into new memory,
//! which the system had to clear page by page (2.3 of 3.4 ms on two cores of a virtual machine). So
//! the last few large arrays that were freed are kept for reuse.

use std::os::raw::c_int;
use std::sync::Mutex;

use pyo3::ffi;
use pyo3::prelude::*;
use quarrier_core::sync::lock;

/// Numpy allocates smaller arrays.
pub(super) const NUMBERS_MIN: usize = (1 << 20) / 8;
/// The maximum memory kept, in numbers: 32 MiB.
const NUMBERS_KEPT_MAX: usize = (32 << 20) / 8;

/// Freed arrays, most recent first. They hold offsets and lengths, never bytes of a file.
static KEPT: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
/// The number of threads that may free such arrays and request new ones at the same time.
const KEPT_ARRAYS_MAX: usize = 4;

/// The memory of an array, exposed by the buffer protocol.
#[pyclass(frozen, module = "quarrier._native", name = "_Memory")]
pub(crate) struct Memory {
    numbers: Vec<u64>,
    start: Start,
}

/// The address of the numbers. While views may write to them, all accesses go through it.
struct Start(*mut u64);

// SAFETY: this is an address without thread affinity. Python code that reads or writes there
// synchronises as with any memory that Python shares between threads.
unsafe impl Send for Start {}
// SAFETY: a shared reference gives only a copy of the address.
unsafe impl Sync for Start {}

impl Memory {
    /// Allocates at least `count` numbers of any value.
    pub(super) fn new(count: usize) -> Self {
        let mut kept = lock(&KEPT);
        let fits = |numbers: &Vec<u64>| numbers.len() >= count && numbers.len() / 4 <= count;
        let found = kept.iter().position(fits).map(|at| kept.remove(at));
        drop(kept);
        let mut numbers = found.unwrap_or_else(|| vec![0; count]);
        let start = Start(numbers.as_mut_ptr());
        Memory { numbers, start }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut kept = lock(&KEPT);
        kept.insert(0, std::mem::take(&mut self.numbers));
        // Keep the most recently freed arrays that fit.
        let mut room = NUMBERS_KEPT_MAX;
        kept.truncate(KEPT_ARRAYS_MAX);
        kept.retain(|numbers| {
            let fits = numbers.len() <= room;
            room -= if fits { numbers.len() } else { 0 };
            fits
        });
    }
}

#[pymethods]
impl Memory {
    /// # Safety
    /// `view` is a `Py_buffer` that the interpreter wants filled in, and this thread is attached to
    /// it.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = slf.get();
        let start = memory.start.0.cast();
        let bytes = (memory.numbers.len() * size_of::<u64>()) as ffi::Py_ssize_t;
        // SAFETY: the caller promises `view`, and `slf` shows that this thread is attached. The
        // view holds a reference to this object; `numbers` is neither moved nor accessed until the
        // object is dropped, so that its `bytes` bytes stay and views may write to them.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, bytes, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
