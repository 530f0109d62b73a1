"""`map`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from quarrier.parallel._array import SharedArray, empty
from quarrier.parallel._chunks import rows_of, together_of
from quarrier.parallel._inputs import as_arrays
from quarrier.parallel._job import Mapping
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import Options, at_least
from quarrier.parallel._outs import Filled, Results, disturbs, outs_of
from quarrier.parallel._perform import perform
from quarrier.parallel._progress import Wanted


@overload
def map(
    kernel: Callable[..., object],
    *arrays: Any,
    out: None = None,
    halo: int = 0,
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    dtype: npt.DTypeLike | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> SharedArray: ...
@overload
def map(
    kernel: Callable[..., object],
    *arrays: Any,
    out: Filled,
    halo: int = 0,
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    dtype: npt.DTypeLike | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Filled: ...
def map(
    kernel: Callable[..., object],
    *arrays: Any,
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]] | None = None,
    halo: int = 0,
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    dtype: npt.DTypeLike | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Any:
    """Computes an array from others in workers, slice by slice.

    `kernel(out, *slices)` fills `out`, a writable slice of `chunk` indices of the first axis, from
    the slices of the arrays at the same indices. With `halo`, `kernel(out, lead, *slices)` gets
    slices with up to `halo` neighbours on both sides, `lead` of them before; at the ends of the
    arrays it gets fewer.

    The arrays have the same length, and are numpy arrays or objects that export their memory:
    bytes, memoryview, mmap, Arrow. Shared and memory-mapped ones are never copied, and neither are
    arrays that a forked worker inherits; others are copied once into shared memory.

    Without `out` the result is a new shared array, with the shape of the first array and with
    `dtype`, by default numpy's common type of all arrays. A shared `out`, and one in a mapped file
    (`np.memmap`, flushed at the end), is filled in place, and its contents are undefined if the
    call fails. Any other `out` is written at the end if the call succeeds (with `mode="thread"` it
    is filled in place). An `out` that overlaps an array is also written at the end, so that kernels
    see the original values, unless it is that array and each index depends on itself alone. With
    several results, `out=[first, second]`, kernels get a list of slices in the place of `out`
    (compiled by numba, a tuple). Masked values and NULLs are refused.

    >>> import numpy as np, quarrier.parallel as parallel
    >>> def mean(out, first, second):
    ...     out[:] = (first & second) + ((first ^ second) >> 1)
    >>> parallel.map(mean, b"abc", b"ccc", workers=2).tobytes()
    b'bbc'
    """
    options = Options(workers, mode, on_error, timeout, progress)
    options.check()
    halo = at_least("halo", halo, 0)
    inputs = as_arrays("map", arrays)
    if out is None:
        results = Results.new(empty(inputs[0].shape, _kind_of(inputs) if dtype is None else dtype))
    else:
        _check_out(out, inputs, dtype)
        sees_more = halo > 0 or on_error == "retry"
        results = Results.into(
            out,
            mode == "thread" or in_worker(),
            lambda target: any(disturbs(target, array, sees_more) for array in inputs),
        )
    if not results.is_empty():
        outs = results.outs(kernel)
        rows = rows_of(outs, kernel, chunk, workers)
        job = Mapping(kernel, outs, inputs, halo, rows)
        perform(
            job,
            options,
            None,
            total=len(outs),
            rows=rows,
            together=together_of(outs, rows, job.chunks, workers),
        )
    return results.finish()


def _kind_of(inputs: list[npt.NDArray[Any]]) -> np.dtype[Any]:
    """The common type of all arrays."""
    first = inputs[0].dtype
    # numpy would lay out the fields differently.
    if first.names is not None and all(array.dtype == first for array in inputs):
        return first
    return np.result_type(*inputs)


def _check_out(out: Any, inputs: list[npt.NDArray[Any]], dtype: npt.DTypeLike | None) -> None:
    length = len(inputs[0])
    for array in outs_of(out):
        if dtype is not None and np.dtype(dtype) != array.dtype:
            raise ValueError(f"out is of dtype {array.dtype}, not {np.dtype(dtype)}")
        if array.ndim == 0 or len(array) != length:
            raise ValueError(f"out has the shape {array.shape}, the arrays have {length} rows")
