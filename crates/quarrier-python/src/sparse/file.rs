//! `quarrier.SparseFile`.

use std::mem::MaybeUninit;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use quarrier_core::region::AsData;
use quarrier_sparse::{Merge, OnConflict, Span};

use super::bulk;
use super::cost::{CostModel, merge};
use super::held::{Held, Place, Work};
use super::list;
use super::number::Number;
use crate::buffer::Buffer;
use crate::errors::of_sparse;

/// The blocks of a file that have been fetched so far.
#[pyclass(frozen, weakref, module = "quarrier")]
pub(crate) struct SparseFile {
    pub(super) held: Held,
}

impl SparseFile {
    pub(super) fn of(place: Place) -> Self {
        SparseFile { held: Held::new(place) }
    }

    /// Reads enough bytes to release the interpreter's lock.
    fn read_long<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // Allocate nothing for bytes that are not held.
        let check = |file: &quarrier_sparse::SparseFile| match file.has(offset, length) {
            true => Ok(()),
            false => file.slices(offset, length).map(drop),
        };
        let checked = self.held.look(py, Work::Short, check);
        checked.map_err(|error| of_sparse(py, &error))?;
        let (bytes, mut room) = new_bytes(py, length as usize)?;
        let read = self.held.look(py, Work::Long, |file| {
            for slice in file.slices(offset, length)? {
                let (here, rest) = room.split_at_mut(slice.len());
                here.write_copy_of_slice(slice);
                room = rest;
            }
            Ok(())
        });
        // The slices have `length` bytes together, so every byte is written.
        read.map(|()| bytes).map_err(|error| of_sparse(py, &error))
    }

    fn to_vec(&self, py: Python<'_>) -> Vec<u8> {
        self.held.look(py, Work::Long, quarrier_sparse::SparseFile::to_bytes)
    }
}

#[pymethods]
impl SparseFile {
    #[new]
    #[pyo3(
        signature = (
            id="", modified=Some(0.0), *, length=None, on_conflict="raise", wipe=false, etag=None
        ),
        text_signature = "(id='', modified=0.0, *, length=None, on_conflict='raise', wipe=False, \
                          etag=None)"
    )]
    fn new(
        id: &str,
        modified: Option<f64>,
        length: Option<Number>,
        on_conflict: &str,
        wipe: bool,
        etag: Option<&str>,
    ) -> PyResult<Self> {
        let on_conflict = match on_conflict {
            "raise" => OnConflict::Raise,
            "replace" => OnConflict::Replace,
            other => {
                let message = format!("on_conflict is 'raise' or 'replace', not '{other}'");
                return Err(PyValueError::new_err(message));
            }
        };
        let mut builder =
            quarrier_sparse::SparseFile::builder(id).on_conflict(on_conflict).wipe(wipe);
        if let Some(modified) = modified {
            builder = builder.modified(modified);
        }
        if let Some(Number(length)) = length {
            builder = builder.length(length);
        }
        if let Some(etag) = etag {
            builder = builder.etag(etag);
        }
        Ok(SparseFile::of(Place::Own(Box::new(builder.build()))))
    }

    /// The file's name: a path, a URL or any other string.
    #[getter]
    fn id(&self, py: Python<'_>) -> String {
        self.held.look(py, Work::Short, |file| file.id().to_string())
    }

    /// When the file was last modified, in seconds since 1970.
    #[getter]
    fn modified(&self, py: Python<'_>) -> Option<f64> {
        self.held.look(py, Work::Short, |file| file.modified())
    }

    /// The server's version tag of the file.
    #[getter]
    fn etag(&self, py: Python<'_>) -> Option<String> {
        self.held.look(py, Work::Short, |file| file.etag().map(str::to_string))
    }

    /// The file's length in bytes, if known.
    #[getter]
    fn length(&self, py: Python<'_>) -> Option<u64> {
        self.held.look(py, Work::Short, |file| file.length())
    }

    /// How a write that differs from the held bytes is handled: 'raise' or 'replace'.
    #[getter]
    fn on_conflict(&self, py: Python<'_>) -> &'static str {
        match self.held.look(py, Work::Short, |file| file.on_conflict()) {
            OnConflict::Raise => "raise",
            OnConflict::Replace => "replace",
        }
    }

    /// Sets the file's length. Raises BeyondLengthError if the file holds a byte beyond it.
    fn set_length(&self, py: Python<'_>, length: Number) -> PyResult<()> {
        let set = self.held.change(py, Work::Short, |file| file.set_length(length.0));
        set.map_err(|error| of_sparse(py, &error))
    }

    /// Whether all bytes of the range are held.
    fn has(&self, py: Python<'_>, offset: Number, length: Number) -> bool {
        self.held.look(py, Work::Short, |file| file.has(offset.0, length.0))
    }

    /// Writes bytes from any object with a buffer and returns how many of them are new.
    ///
    /// They are merged with adjacent blocks. If one differs from the byte held, it raises
    /// ConflictError and writes nothing. Another thread must not change the buffer meanwhile.
    fn write(&self, py: Python<'_>, offset: Number, data: &Bound<'_, PyAny>) -> PyResult<u64> {
        let buffer;
        let bytes = match data.cast_exact::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes(),
            Err(_) => {
                buffer = Buffer::of(data)?;
                // SAFETY: a sparse file compares and copies bytes, in code without `unsafe`, and
                // makes no `str` of them. If another thread changes them meanwhile, the file holds
                // any mixture.
                buffer.changing_bytes().as_data(unsafe { AsData::promised() })
            }
        };
        let work = Work::of_copy(bytes.len());
        let written = self.held.change(py, work, |file| file.write(offset.0, bytes));
        written.map_err(|error| of_sparse(py, &error))
    }

    /// The bytes of the range. Raises NotHeldError with the first missing range.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: Number,
        length: Number,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (Number(offset), Number(length)) = (offset, length);
        if length == 1 {
            // The interpreter caches all bytes objects of length 1.
            let mut byte = [0];
            let read = self.held.look(py, Work::Short, |file| file.read_into(offset, &mut byte));
            return match read {
                Ok(()) => Ok(PyBytes::new(py, &byte)),
                Err(error) => Err(of_sparse(py, &error)),
            };
        }
        if length >= super::COPY_BYTES_MIN as u64 {
            return self.read_long(py, offset, length);
        }
        let (bytes, room) = new_bytes(py, length as usize)?;
        // For so few bytes this costs almost nothing.
        room.fill(MaybeUninit::new(0));
        // SAFETY: `fill` has just initialised all of it.
        let room = unsafe { room.assume_init_mut() };
        match self.held.look(py, Work::Short, |file| file.read_into(offset, room)) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(of_sparse(py, &error)),
        }
    }

    /// Fills a writable buffer and returns the number of bytes.
    fn read_into(
        &self,
        py: Python<'_>,
        offset: Number,
        buffer: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let mut buffer = Buffer::writable(buffer)?;
        let room = buffer.bytes_mut();
        let (work, bytes) = (Work::of_copy(room.len()), room.len());
        let read = self.held.look(py, work, |file| file.read_into(offset.0, room));
        read.map(|()| bytes).map_err(|error| of_sparse(py, &error))
    }

    /// The missing ranges, as a list of (offset, length).
    ///
    /// `greedy`: requests of at least this many bytes. `cost`: the cheapest requests by this model.
    #[pyo3(
        signature = (offset, length, greedy=Number(0), *, cost=None),
        text_signature = "($self, offset, length, greedy=0, *, cost=None)"
    )]
    fn need<'py>(
        &self,
        py: Python<'py>,
        offset: Number,
        length: Number,
        greedy: Number,
        cost: Option<&Bound<'py, CostModel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let span = Span::new(offset.0, length.0);
        let needed = if greedy.0 == 0 && cost.is_none() {
            self.held.look(py, Work::Short, |file| file.need(span.offset, span.length))
        } else {
            let merge = merge(greedy.0, cost.map(Bound::get));
            self.held.look(py, Work::Short, |file| file.need_many(&[span], &merge))
        };
        match needed {
            Ok(spans) if spans.is_empty() => Ok(PyList::empty(py)),
            Ok(spans) => list::of_spans(py, &spans),
            Err(error) => Err(of_sparse(py, &error)),
        }
    }

    /// The missing ranges of many ranges, which may overlap and come in any order.
    #[pyo3(
        signature = (ranges, greedy=Number(0), *, cost=None),
        text_signature = "($self, ranges, greedy=0, *, cost=None)"
    )]
    fn need_many<'py>(
        &self,
        py: Python<'py>,
        ranges: &Bound<'py, PyAny>,
        greedy: Number,
        cost: Option<&Bound<'py, CostModel>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let wanted = list::to_spans(ranges)?;
        let merge = merge(greedy.0, cost.map(Bound::get));
        let needed = self.held.look(py, Work::Long, |file| file.need_many(&wanted, &merge));
        list::of_spans(py, &needed.map_err(|error| of_sparse(py, &error))?)
    }

    /// The bytes of many ranges, as two arrays: the bytes of all ranges concatenated, and the start
    /// of each range in them, followed by the end of the last.
    fn read_many<'py>(
        &self,
        offsets: &Bound<'py, PyAny>,
        lengths: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        bulk::read_many(&self.held, offsets, lengths)
    }

    /// Writes many ranges, whose bytes are concatenated in `data`, and returns how many of them are
    /// new. After a conflict, with held bytes or between the ranges, nothing is written.
    fn write_many<'py>(
        &self,
        offsets: &Bound<'py, PyAny>,
        lengths: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<u64> {
        bulk::write_many(&self.held, offsets, lengths, data)
    }

    /// Like need_many, with arrays of offsets and lengths as arguments and result.
    #[pyo3(
        signature = (offsets, lengths, greedy=Number(0), *, cost=None),
        text_signature = "($self, offsets, lengths, greedy=0, *, cost=None)"
    )]
    fn need_many_arrays<'py>(
        &self,
        offsets: &Bound<'py, PyAny>,
        lengths: &Bound<'py, PyAny>,
        greedy: Number,
        cost: Option<&Bound<'py, CostModel>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let merge: Merge = merge(greedy.0, cost.map(Bound::get));
        bulk::need_many(&self.held, offsets, lengths, &merge)
    }

    /// Erases the held bytes of the range and returns their number.
    fn erase(&self, py: Python<'_>, offset: Number, length: Number) -> PyResult<u64> {
        let erased = self.held.change(py, Work::Short, |file| file.erase(offset.0, length.0));
        erased.map_err(|error| of_sparse(py, &error))
    }

    /// Evicts the least recently used bytes until at most `bytes_max` are held or all others are
    /// pinned, and returns the number of evicted bytes.
    fn evict(&self, py: Python<'_>, bytes_max: Number) -> u64 {
        self.held.change(py, Work::Long, |file| file.evict(bytes_max.0))
    }

    /// Erases everything that is not pinned and returns the number of erased bytes.
    fn clear(&self, py: Python<'_>) -> u64 {
        self.held.change(py, Work::Long, quarrier_sparse::SparseFile::clear)
    }

    /// Pins a range: it is not evicted or erased until it has been unpinned as often.
    fn pin(&self, py: Python<'_>, offset: Number, length: Number) -> PyResult<()> {
        let span = Span::new(offset.0, length.0);
        let pinned = self.held.change(py, Work::Short, |file| file.pin(span));
        pinned.map_err(|error| of_sparse(py, &error))
    }

    /// Removes one pin of exactly this range.
    fn unpin(&self, py: Python<'_>, offset: Number, length: Number) -> PyResult<()> {
        let span = Span::new(offset.0, length.0);
        let unpinned = self.held.change(py, Work::Short, |file| file.unpin(span));
        unpinned.map_err(|error| of_sparse(py, &error))
    }

    /// The blocks that are held, as a list of (offset, length).
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let blocks = self.held.look(py, Work::Short, quarrier_sparse::SparseFile::blocks);
        list::of_spans(py, &blocks)
    }

    /// Bytes held.
    fn num_bytes(&self, py: Python<'_>) -> u64 {
        self.held.look(py, Work::Short, quarrier_sparse::SparseFile::num_bytes)
    }

    /// Blocks held.
    fn num_blocks(&self, py: Python<'_>) -> usize {
        self.held.look(py, Work::Short, quarrier_sparse::SparseFile::num_blocks)
    }

    /// Bytes of memory taken.
    fn memory_bytes(&self, py: Python<'_>) -> usize {
        self.held.look(py, Work::Short, quarrier_sparse::SparseFile::memory_bytes)
    }

    /// The counters since the start: hits, misses, bytes read, written, wasted, erased, evicted.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.held.look(py, Work::Short, quarrier_sparse::SparseFile::counters);
        let dict = PyDict::new(py);
        for (name, count) in [
            ("hits", counters.hits),
            ("misses", counters.misses),
            ("read_bytes", counters.read_bytes),
            ("writes", counters.writes),
            ("written_bytes", counters.written_bytes),
            ("wasted_bytes", counters.wasted_bytes),
            ("erased_bytes", counters.erased_bytes),
            ("evicted_bytes", counters.evicted_bytes),
        ] {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }

    /// The file without its pins, as bytes; see from_bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.to_vec(py))
    }

    /// Restores the file from the result of to_bytes. Raises CorruptError for other bytes.
    #[staticmethod]
    fn from_bytes(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = data.py();
        let buffer = Buffer::of(data)?;
        let bytes = buffer.steady();
        let file = py.detach(|| quarrier_sparse::SparseFile::from_bytes(&bytes));
        match file {
            Ok(file) => Ok(SparseFile::of(Place::Own(Box::new(file)))),
            Err(error) => Err(of_sparse(py, &error)),
        }
    }

    fn __contains__(&self, py: Python<'_>, offset: Number) -> bool {
        self.held.look(py, Work::Short, |file| file.has(offset.0, 1))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        Ok((from_bytes, (slf.get().to_bytes(slf.py()),)))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        let bytes = self.to_vec(py);
        let file = py.detach(|| quarrier_sparse::SparseFile::from_bytes(&bytes));
        file.map(|file| SparseFile::of(Place::Own(Box::new(file))))
            .map_err(|error| of_sparse(py, &error))
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        let _ = memo;
        self.__copy__(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.held.look(py, Work::Short, |file| {
            let (bytes, blocks) = (file.num_bytes(), file.num_blocks());
            format!("<quarrier.SparseFile {:?}: {bytes} bytes in {blocks} blocks>", file.id())
        })
    }
}

/// Makes a bytes object. The caller must write all its bytes before any other code sees it.
#[inline]
fn new_bytes(
    py: Python<'_>,
    length: usize,
) -> PyResult<(Bound<'_, PyBytes>, &mut [MaybeUninit<u8>])> {
    let size = ffi::Py_ssize_t::try_from(length).unwrap_or(ffi::Py_ssize_t::MAX);
    // SAFETY: this thread is attached to the interpreter, as `py` shows. With a null pointer,
    // PyBytes_FromStringAndSize returns a new object of `size` uninitialised bytes, for a size of 0
    // a shared one, or null with an exception set, which `from_owned_ptr_or_err` handles. Nobody
    // else has the new object, so that the slice is the only access to its bytes; they do not move
    // while it lives, and callers use the slice only while they hold `object`. `MaybeUninit<u8>`
    // needs no initialisation.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), size);
        let object = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>();
        let start = ffi::PyBytes_AsString(object.as_ptr()).cast::<MaybeUninit<u8>>();
        Ok((object, std::slice::from_raw_parts_mut(start, length)))
    }
}
