"""`map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from quarrier._errors import BufferLayoutError
from quarrier.parallel._array import address_of, empty, place_of
from quarrier.parallel._chunks import rows_of, together_of
from quarrier.parallel._inputs import as_array
from quarrier.parallel._job import Mapping
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import Options, at_least
from quarrier.parallel._perform import perform
from quarrier.parallel._progress import Wanted


def map(
    kernel: Callable[..., object],
    *arrays: Any,
    out: npt.NDArray[Any] | None = None,
    halo: int = 0,
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    dtype: npt.DTypeLike | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> npt.NDArray[Any]:
    """An array that workers compute from others, slice by slice.

    `kernel(out, *slices)` fills `out`, a writable slice of `chunk` indices of the first axis,
    from the slices of the arrays at the same indices. With `halo`, `kernel(out, lead, *slices)`
    gets slices with up to `halo` neighbours on both sides, `lead` of them before; there are
    fewer only at the ends of the arrays.

    The arrays have the same length, and are numpy arrays or anything that shows its memory: bytes,
    memoryview, mmap, Arrow. Shared and memory-mapped ones are never copied, nor is any that a
    forked worker sees; others are copied once into shared memory.

    Without `out` the result is a new shared array, with the shape of the first array and with
    `dtype`, by default numpy's common type of all arrays. A shared `out` is filled in place, and
    its contents are undefined if the call fails; any other is written at the end, if nothing
    failed (with `mode="thread"` it is filled in place). An `out` that overlaps an array is written
    at the end too, unless it is that array and each index depends on itself alone: kernels see the
    arrays as they were. Masked values and NULLs are refused.

    >>> import numpy as np, quarrier.parallel as parallel
    >>> def mean(out, first, second):
    ...     out[:] = (first & second) + ((first ^ second) >> 1)
    >>> parallel.map(mean, b"abc", b"ccc", workers=2).tobytes()
    b'bbc'
    """
    options = Options(workers, mode, on_error, timeout, progress)
    options.check()
    halo = at_least("halo", halo, 0)
    inputs = [as_array(array) for array in arrays]
    _check(inputs)
    if out is None:
        kind = np.dtype(dtype) if dtype is not None else np.result_type(*inputs)
        target: npt.NDArray[Any] = empty(inputs[0].shape, kind)
    else:
        _check_out(out, inputs, dtype)
        in_place = mode == "thread" or in_worker() or place_of(out) is not None
        in_place = in_place and not any(
            _disturbs(out, array, halo, on_error == "retry") for array in inputs
        )
        target = out if in_place else empty(out.shape, out.dtype)
    if target.size > 0:
        rows = rows_of(target, kernel, chunk, workers)
        job = Mapping(kernel, target, inputs, halo, rows)
        perform(
            job,
            options,
            lambda index, value: None,
            total=len(target),
            rows=rows,
            together=together_of(target, rows, job.chunks, workers),
        )
    if out is not None and target is not out:
        np.copyto(out, target)
    return target if out is None else out


def _check(inputs: list[npt.NDArray[Any]]) -> None:
    if not inputs:
        raise TypeError("map takes at least one array")
    if any(array.ndim == 0 for array in inputs):
        raise ValueError("an array without an axis cannot be cut into slices")
    lengths = [len(array) for array in inputs]
    if len(set(lengths)) > 1:
        raise ValueError(f"the arrays differ in length: {', '.join(str(n) for n in lengths)}")


def _disturbs(out: npt.NDArray[Any], array: npt.NDArray[Any], halo: int, retries: bool) -> bool:
    """Whether slices of `array` may change when other slices of `out`, or the same once more, are
    filled."""
    # One file may be mapped twice.
    file = _file_of(out)
    is_apart = file is None or file != _file_of(array)
    if is_apart and not np.may_share_memory(out, array):
        return False
    is_same = address_of(out) == address_of(array) and (out.shape, out.strides, out.itemsize) == (
        array.shape,
        array.strides,
        array.itemsize,
    )
    return not is_same or halo > 0 or retries


def _file_of(array: Any) -> Any:
    """The file that an array maps, if it does."""
    while array is not None:
        if isinstance(array, np.memmap):
            return array.filename
        array = getattr(array, "base", None)
    return None


def _check_out(
    out: npt.NDArray[Any], inputs: list[npt.NDArray[Any]], dtype: npt.DTypeLike | None
) -> None:
    if not isinstance(out, np.ndarray) or not out.flags.writeable:
        raise BufferLayoutError("out must be a writable numpy array")
    if isinstance(out, np.ma.MaskedArray):
        raise TypeError("out has a mask, which kernels do not see; give out.data")
    if out.dtype.hasobject:
        raise TypeError(f"dtype {out.dtype} holds Python objects, which processes cannot share")
    if dtype is not None and np.dtype(dtype) != out.dtype:
        raise ValueError(f"out is of dtype {out.dtype}, not {np.dtype(dtype)}")
    if out.ndim == 0 or len(out) != len(inputs[0]):
        raise ValueError(f"out has the shape {out.shape}, the arrays have {len(inputs[0])} rows")
