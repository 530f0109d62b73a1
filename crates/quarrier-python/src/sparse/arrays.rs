//! numpy arrays of offsets and lengths.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PySlice, PyTuple};
use quarrier_sparse::Span;

use super::memory::{Memory, NUMBERS_MIN};
use super::number::{Number, out_of_range};
use crate::buffer::Buffer;
use crate::errors::raise;

/// Offsets or lengths: a copy, because other threads may write to the array while the interpreter's
/// lock is released, and the sizes of reads are computed from them.
struct Numbers(Vec<u64>);

impl Numbers {
    /// Converts any object of which numpy makes an array of integers.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let numpy = numpy(py)?;
        let array = numpy.call_method1(intern!(py, "asarray"), (object,))?;
        let dtype = array.getattr(intern!(py, "dtype"))?;
        let kind: char = dtype.getattr(intern!(py, "kind"))?.extract()?;
        let size: usize = array.getattr(intern!(py, "size"))?.extract()?;
        if kind != 'u' && kind != 'i' && size > 0 {
            let message = format!("offsets and lengths are integers, not {dtype}");
            return Err(PyTypeError::new_err(message));
        }
        let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
        if dimensions != 1 {
            let message = format!("offsets and lengths have one dimension, not {dimensions}");
            return Err(raise(py, "BufferLayoutError", (message,)));
        }
        let wanted = if kind == 'i' { "=i8" } else { "=u8" };
        let array = numpy.call_method1(intern!(py, "ascontiguousarray"), (array, wanted))?;
        let numbers = Numbers::copied(&Buffer::of(&array)?);
        let negative = |&&number: &&u64| number > i64::MAX as u64;
        if kind == 'i'
            && let Some(&negative) = py.detach(|| numbers.0.iter().find(negative))
        {
            let number = (negative as i64).into_pyobject(py)?.into_any();
            return Err(out_of_range(py, &number.to_string(), &number));
        }
        Ok(numbers)
    }

    fn copied(buffer: &Buffer<'_>) -> Self {
        let shown = buffer.changing_bytes();
        let mut numbers = vec![0_u64; shown.len() / size_of::<u64>()];
        // SAFETY: any `u64` is eight bytes, any eight bytes are a `u64`, and a byte is aligned
        // anywhere, so that no numbers are left over at either end.
        let (_, bytes, _) = unsafe { numbers.align_to_mut::<u8>() };
        shown.copy_to(0, bytes);
        Numbers(numbers)
    }
}

fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "numpy"))
}

/// Makes a new array of `count` items.
pub(super) fn empty<'py>(
    py: Python<'py>,
    count: usize,
    dtype: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(py);
    options.set_item(intern!(py, "dtype"), dtype)?;
    numpy(py)?.call_method(intern!(py, "empty"), (count,), Some(&options))
}

/// Borrows the items of a new array of 64-bit numbers.
pub(super) fn numbers_mut<'b>(buffer: &'b mut Buffer<'_>) -> &'b mut [u64] {
    // SAFETY: any bits are a `u64` and any `u64` is eight bytes; the buffer is borrowed mutably, as
    // the result is.
    let (before, numbers, after) = unsafe { buffer.bytes_mut().align_to_mut::<u64>() };
    debug_assert!(before.is_empty() && after.is_empty());
    numbers
}

/// Offsets and lengths as ranges.
pub(super) struct Ranges {
    offsets: Numbers,
    lengths: Lengths<Numbers>,
}

/// The lengths of ranges: one for each, or the same for all.
#[derive(Clone, Copy)]
enum Lengths<N> {
    Each(N),
    Same(u64),
}

impl Ranges {
    pub(super) fn of(offsets: &Bound<'_, PyAny>, lengths: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = offsets.py();
        let offsets = Numbers::of(offsets)?;
        // SAFETY: `lengths` is a live object, and its type shows that this thread is attached to
        // the interpreter.
        if unsafe { pyo3::ffi::PyIndex_Check(lengths.as_ptr()) } != 0
            && !lengths.hasattr(intern!(py, "__len__"))?
        {
            let Number(length) = lengths.extract()?;
            return Ok(Ranges { offsets, lengths: Lengths::Same(length) });
        }
        let lengths = Numbers::of(lengths)?;
        let (left, right) = (offsets.0.len(), lengths.0.len());
        if left != right {
            let message = format!(
                "{left} offsets but {right} lengths; give one length for each, or one for all"
            );
            return Err(raise(py, "BufferLayoutError", (message,)));
        }
        Ok(Ranges { offsets, lengths: Lengths::Each(lengths) })
    }

    pub(super) fn get(&self) -> Spans<'_> {
        let lengths = match &self.lengths {
            Lengths::Each(numbers) => Lengths::Each(&numbers.0[..]),
            Lengths::Same(length) => Lengths::Same(*length),
        };
        Spans { offsets: &self.offsets.0, lengths }
    }
}

/// Ranges that can be sent to threads without the interpreter's lock.
#[derive(Clone, Copy)]
pub(super) struct Spans<'s> {
    offsets: &'s [u64],
    lengths: Lengths<&'s [u64]>,
}

impl<'s> Spans<'s> {
    pub(super) fn count(self) -> usize {
        self.offsets.len()
    }

    #[inline]
    fn length(self, index: usize) -> u64 {
        match self.lengths {
            Lengths::Each(lengths) => lengths[index],
            Lengths::Same(length) => length,
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Span> + Clone + 's {
        let pairs = self.offsets.iter().enumerate();
        pairs.map(move |(index, &offset)| Span::new(offset, self.length(index)))
    }

    /// The sum of all lengths; `None` if memory cannot hold so many bytes.
    pub(super) fn bytes(self) -> Option<u64> {
        let sum = match self.lengths {
            Lengths::Same(length) => length.checked_mul(self.count() as u64),
            Lengths::Each(lengths) => {
                lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length))
            }
        };
        sum.filter(|&sum| sum <= isize::MAX as u64)
    }
}

/// Makes a new array of at least `count` 64-bit numbers with arbitrary values.
pub(super) fn room<'py>(py: Python<'py>, count: usize, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
    if count < NUMBERS_MIN {
        return empty(py, count, dtype);
    }
    let memory = Bound::new(py, Memory::new(count))?;
    numpy(py)?.call_method1(intern!(py, "frombuffer"), (memory, dtype))
}

/// Returns `count` items of an array from `start` on.
pub(super) fn part<'py>(
    array: &Bound<'py, PyAny>,
    start: usize,
    count: usize,
) -> PyResult<Bound<'py, PyAny>> {
    array.get_item(PySlice::new(array.py(), start as isize, (start + count) as isize, 1))
}

/// A new array of offsets and one of lengths, to be filled. They are two halves of one array,
/// because touching one large piece of new memory costs less than touching two of half the size.
pub(super) struct Pair<'py> {
    array: Bound<'py, PyAny>,
    buffer: Buffer<'py>,
    count: usize,
}

impl<'py> Pair<'py> {
    pub(super) fn new(py: Python<'py>, count: usize) -> PyResult<Self> {
        let array = room(py, count.saturating_mul(2), "=u8")?;
        let buffer = Buffer::writable(&array)?;
        Ok(Pair { array, buffer, count })
    }

    /// Iterates over the places of ranges, in order.
    pub(super) fn places(&mut self) -> impl Iterator<Item = (&mut u64, &mut u64)> + Send {
        let (offsets, lengths) = self.halves();
        offsets.iter_mut().zip(lengths)
    }

    /// Borrows the places of offsets, and those of lengths.
    pub(super) fn halves(&mut self) -> (&mut [u64], &mut [u64]) {
        let (offsets, rest) = numbers_mut(&mut self.buffer).split_at_mut(self.count);
        (offsets, &mut rest[..self.count])
    }

    /// Returns the first `count` items of both.
    pub(super) fn shortened(self, count: usize) -> PyResult<Bound<'py, PyTuple>> {
        let offsets = part(&self.array, 0, count)?;
        let lengths = part(&self.array, self.count, count)?;
        PyTuple::new(self.array.py(), [offsets, lengths])
    }
}
