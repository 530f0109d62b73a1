//! Ranges as a list of tuples.
//!
//! Making a tuple and an integer for each range takes most of the time. With PyO3's safe wrappers
//! it takes twice as long, and with the garbage collector, which rescans objects that cannot be
//! garbage yet, four times.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use quarrier_sparse::Span;

use super::number::Number;

/// The number of tuples from which the garbage collector would run at least once.
const COLLECTED_FROM: usize = 700;

/// Disables the garbage collector until it is dropped.
///
/// The switch belongs to the whole interpreter. Its lock, which the caller holds, keeps other threads from
/// using it meanwhile.
struct NoCollection<'py> {
    was_enabled: bool,
    _py: Python<'py>,
}

impl<'py> NoCollection<'py> {
    fn new(py: Python<'py>) -> Self {
        // SAFETY: this thread is attached to the interpreter, as `py` shows.
        NoCollection { was_enabled: unsafe { ffi::PyGC_Disable() } != 0, _py: py }
    }
}

impl Drop for NoCollection<'_> {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: this thread is attached to the interpreter, as `_py` shows.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// Whether one thread at a time runs Python. A free-threaded interpreter has no such lock; its collector has
/// no generations, and rarely scans new objects.
fn has_lock(py: Python<'_>) -> bool {
    static HAS_LOCK: PyOnceLock<bool> = PyOnceLock::new();
    let ask = || -> PyResult<bool> { py.import("sys")?.call_method0("_is_gil_enabled")?.extract() };
    // Older versions do not have the function, but always the lock.
    *HAS_LOCK.get_or_init(py, || ask().unwrap_or(true))
}

/// `[(offset, length), …]`.
pub(super) fn of_spans<'py>(py: Python<'py>, spans: &[Span]) -> PyResult<Bound<'py, PyList>> {
    let is_long = spans.len() >= COLLECTED_FROM;
    let _no_collection = (is_long && has_lock(py)).then(|| NoCollection::new(py));
    // SAFETY: this thread is attached to the interpreter, as `py` shows. PyList_New returns a new
    // list, or null with an exception set, which `from_owned_ptr_or_err` handles. Its places are
    // null until the loop below fills them; a list with null places may be dropped.
    let list = unsafe {
        let list = ffi::PyList_New(spans.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, list)?.cast_into_unchecked::<PyList>()
    };
    for (at, span) in spans.iter().enumerate() {
        let tuple = of_span(py, *span)?;
        // SAFETY: `at` is less than the length of the list, which nobody else has yet.
        // PyList_SetItem takes over the reference that `into_ptr` gives.
        unsafe { ffi::PyList_SetItem(list.as_ptr(), at as ffi::Py_ssize_t, tuple.into_ptr()) };
    }
    Ok(list)
}

/// `(offset, length)`.
#[inline]
fn of_span<'py>(py: Python<'py>, span: Span) -> PyResult<Bound<'py, PyTuple>> {
    // SAFETY: this thread is attached to the interpreter, as `py` shows. PyTuple_New returns a new
    // tuple, or null with an exception set. Nobody else has it while its places are filled; 0 and 1
    // are within it, and PyTuple_SetItem takes over a new reference to a number that is not null.
    // If a number cannot be made, the tuple is dropped with null places, which is allowed.
    // PyObject_GC_UnTrack is called once, on a tuple that PyTuple_New has tracked.
    unsafe {
        let tuple = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_New(2))?;
        for (at, number) in [(0, span.offset), (1, span.length)] {
            let number = ffi::PyLong_FromUnsignedLongLong(number);
            if number.is_null() {
                return Err(PyErr::fetch(py));
            }
            ffi::PyTuple_SetItem(tuple.as_ptr(), at, number);
        }
        // The collector itself untracks tuples that refer only to objects without references.
        ffi::PyObject_GC_UnTrack(tuple.as_ptr().cast());
        Ok(tuple.cast_into_unchecked())
    }
}

/// Converts an iterable of pairs to ranges.
pub(super) fn to_spans(ranges: &Bound<'_, PyAny>) -> PyResult<Vec<Span>> {
    let span = |range: Bound<'_, PyAny>| {
        let (offset, length): (Number, Number) = range.extract()?;
        Ok(Span::new(offset.0, length.0))
    };
    ranges.try_iter()?.map(|range| span(range?)).collect()
}
