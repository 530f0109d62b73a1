//! Many ranges in one call, as numpy arrays.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quarrier_core::region::AsData;
use quarrier_sparse::{Merge, Span};

use super::arrays::{Pair, Ranges, empty, numbers_mut, part, room};
use super::held::{Held, Work};
use crate::buffer::Buffer;
use crate::errors::{of_sparse, raise};

/// Larger reads are checked before memory is allocated for them.
const UNCHECKED_BYTES_MAX: u64 = 64 << 20;

/// Reads many ranges: their bytes concatenated, and the start of each.
pub(super) fn read_many<'py>(
    held: &Held,
    offsets: &Bound<'py, PyAny>,
    lengths: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = offsets.py();
    let ranges = Ranges::of(offsets, lengths)?;
    let spans = ranges.get();
    let total = py.detach(|| spans.bytes());
    if total.is_none_or(|bytes| bytes > UNCHECKED_BYTES_MAX) {
        let check = |file: &quarrier_sparse::SparseFile| match spans
            .iter()
            .find(|span| !file.has(span.offset, span.length))
        {
            Some(span) => file.slices(span.offset, span.length).map(drop),
            None => Ok(()),
        };
        held.look(py, Work::Long, check).map_err(|error| of_sparse(py, &error))?;
    }
    let too_many = || raise(py, "BufferLayoutError", ("more bytes than memory can hold",));
    let total = total.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(too_many)?;
    let data = empty(py, total, "u1")?;
    let count = spans.count() + 1;
    let starts = room(py, count, "=i8")?;
    let mut data_buffer = Buffer::writable(&data)?;
    let mut starts_buffer = Buffer::writable(&starts)?;
    let bytes = data_buffer.bytes_mut();
    let places = numbers_mut(&mut starts_buffer);
    let read = held.look(py, Work::Long, |file| {
        let mut at = 0;
        for (place, length) in places.iter_mut().zip(spans.iter().map(|s| s.length).chain([0])) {
            *place = at;
            at += length;
        }
        file.read_many_into(spans.iter(), bytes)
    });
    read.map_err(|error| of_sparse(py, &error))?;
    PyTuple::new(py, [data, part(&starts, 0, count)?])
}

/// Writes many ranges, whose bytes are concatenated in `data`.
pub(super) fn write_many<'py>(
    held: &Held,
    offsets: &Bound<'py, PyAny>,
    lengths: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<u64> {
    let py = offsets.py();
    let ranges = Ranges::of(offsets, lengths)?;
    let spans = ranges.get();
    let buffer = Buffer::of(data)?;
    // SAFETY: a sparse file compares and copies bytes, in code without `unsafe`, and makes no `str`
    // of them. If another thread changes them meanwhile, the file holds any mixture.
    let bytes = buffer.changing_bytes().as_data(unsafe { AsData::promised() });
    let total = py.detach(|| spans.bytes());
    if total != Some(bytes.len() as u64) {
        let wanted = total.map_or_else(|| "too many".to_string(), |total| total.to_string());
        let message = format!("the lengths add up to {wanted} bytes, the data has {}", bytes.len());
        return Err(raise(py, "BufferLayoutError", (message,)));
    }
    let written = held.change(py, Work::Long, |file| file.write_many(spans.iter(), bytes));
    written.map_err(|error| of_sparse(py, &error))
}

/// Finds the missing ranges of many ranges, as arrays of offsets and lengths.
pub(super) fn need_many<'py>(
    held: &Held,
    offsets: &Bound<'py, PyAny>,
    lengths: &Bound<'py, PyAny>,
    merge: &Merge,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = offsets.py();
    let ranges = Ranges::of(offsets, lengths)?;
    let spans = ranges.get();
    if let (Merge::Exact, 1, Some(span)) = (merge, spans.count(), spans.iter().next()) {
        return need_of_one(py, held, span);
    }
    let needed =
        held.look(py, Work::Long, |file| file.need_many(&spans.iter().collect::<Vec<_>>(), merge));
    let needed = needed.map_err(|error| of_sparse(py, &error))?;
    let count = needed.len();
    let mut pair = Pair::new(py, count)?;
    let places = pair.places();
    py.detach(|| {
        for ((offset, length), span) in places.zip(needed) {
            (*offset, *length) = (span.offset, span.length);
        }
    });
    pair.shortened(count)
}

/// Finds the missing ranges of one range and writes them to their final place, because the first
/// touch of new memory takes most of the time.
fn need_of_one<'py>(py: Python<'py>, held: &Held, span: Span) -> PyResult<Bound<'py, PyTuple>> {
    loop {
        let most = held.look(py, Work::Short, quarrier_sparse::SparseFile::need_count_max);
        // Any two missing ranges have a held byte between them.
        let most = usize::try_from(span.length.div_ceil(2)).unwrap_or(most).min(most);
        let mut pair = Pair::new(py, most)?;
        let (offsets, lengths) = pair.halves();
        let needed = held.look(py, Work::Long, |file| file.need_into(span, offsets, lengths));
        let count = needed.map_err(|error| of_sparse(py, &error))?;
        // There was not enough room: another thread wrote in between.
        if count <= most {
            return pair.shortened(count);
        }
    }
}
