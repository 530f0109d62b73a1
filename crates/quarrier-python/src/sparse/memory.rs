//! Reuses the memory of large arrays of numbers.
//!
//! In a call that returns half a million offsets, two thirds of the time went into new memory, which
//! the system had to clear page by page (2.3 of 3.4 ms on two cores of a virtual machine). So the last
//! few large arrays that were freed are kept for the next.

use std::os::raw::c_int;
use std::sync::Mutex;

use pyo3::ffi;
use pyo3::prelude::*;
use quarrier_core::sync::lock;

/// Smaller arrays are numpy's.
pub(super) const NUMBERS_MIN: usize = (1 << 20) / 8;
/// The most that is kept: 32 MiB.
const NUMBERS_KEPT_MAX: usize = (32 << 20) / 8;

/// Freed arrays, the latest first. They hold offsets and lengths, never bytes of a file.
static KEPT: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());
/// As many threads as may give arrays up and take them again.
const KEPT_ARRAYS_MAX: usize = 4;

/// The memory of an array, shown by the buffer protocol.
#[pyclass(frozen, module = "quarrier._native", name = "_Memory")]
pub(crate) struct Memory {
    numbers: Vec<u64>,
    start: Start,
}

/// Where the numbers begin. They are reached by it alone as long as views may write to them.
struct Start(*mut u64);

// SAFETY: an address, which may be known to any thread. Who reads or writes there does so as
// with any memory that Python shares between threads.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

impl Memory {
    /// Room for at least `count` numbers, whatever they are now.
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
        // Those given up last stay, as far as there is room for them.
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
    /// Called by the interpreter, with a view to fill in.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let memory = slf.get();
        let start = memory.start.0.cast();
        let bytes = (memory.numbers.len() * size_of::<u64>()) as ffi::Py_ssize_t;
        // SAFETY: the view is the interpreter's. It keeps this object alive, whose numbers
        // are neither moved nor looked at until it is dropped, so that views may write there.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, bytes, 0, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
