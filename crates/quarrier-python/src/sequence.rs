//! Rows as a Python sequence: indexes, slices, and ranges of bytes as tuples.

use std::ops::Range;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice};

/// Returns the position of an index, which counts from the end if it is negative. `noun` is the word for a
/// row in errors.
///
/// # Errors
/// `IndexError` if there is no such row.
pub(crate) fn place(index: isize, count: usize, noun: &str) -> PyResult<usize> {
    let at = if index < 0 { index + count as isize } else { index };
    usize::try_from(at)
        .ok()
        .filter(|&at| at < count)
        .ok_or_else(|| PyIndexError::new_err(format!("{noun} {index} of {count} does not exist")))
}

/// Returns a row by its index, or a list of rows by a slice.
///
/// # Errors
/// That of [`place`], `TypeError` for any other key, and the errors of `row`.
pub(crate) fn item<'py>(
    key: &Bound<'py, PyAny>,
    (count, noun): (usize, &str),
    row: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Ok(slice) = key.cast::<PySlice>() else {
        return row(place(key.extract()?, count, noun)?);
    };
    let slice = slice.indices(count as isize)?;
    let list = PyList::empty(key.py());
    for step in 0..slice.slicelength as isize {
        list.append(row((slice.start + step * slice.step) as usize)?)?;
    }
    Ok(list.into_any())
}

/// Converts ranges to tuples of offset and length.
pub(crate) fn tuples(ranges: &[Range<u64>]) -> Vec<(u64, u64)> {
    ranges.iter().map(|range| (range.start, range.end - range.start)).collect()
}
