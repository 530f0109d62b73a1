"""`init`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from quarrier.parallel._array import SharedArray, empty, sizes_of
from quarrier.parallel._chunks import rows_of, together_of
from quarrier.parallel._job import Filling
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import Options
from quarrier.parallel._outs import Filled, Results, outs_of
from quarrier.parallel._perform import perform
from quarrier.parallel._progress import Wanted


@overload
def init(
    shape: int | tuple[int, ...],
    dtype: npt.DTypeLike,
    kernel: Callable[[Any, int], object],
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    *,
    out: None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> SharedArray: ...
@overload
def init(
    shape: int | tuple[int, ...],
    dtype: npt.DTypeLike | None,
    kernel: Callable[[Any, int], object],
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    *,
    out: Filled,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Filled: ...
def init(
    shape: int | tuple[int, ...],
    dtype: npt.DTypeLike | None,
    kernel: Callable[[Any, int], object],
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    *,
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]] | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Any:
    """A new array in shared memory, filled by workers.

    `kernel(out, start)` fills `out`, the writable slice of `chunk` indices that begins at index
    `start` of the first axis, and returns nothing. Options are the same for all calls. Nothing is
    copied; the array is returned only when all of it is filled.

    With `out`, that array is filled and returned, as in `map`; it must have this shape, and this
    dtype unless `dtype` is None. With several, `out=[first, second]`, kernels get a list of slices;
    each array has the length of `shape` and its own dtype.

    >>> import quarrier.parallel as parallel
    >>> def squares(out, start):
    ...     for index in range(len(out)):
    ...         out[index] = (start + index) ** 2
    >>> parallel.init(6, "i8", squares, workers=2).tolist()
    [0, 1, 4, 9, 16, 25]
    """
    options = Options(workers, mode, on_error, timeout, progress)
    options.check()
    if out is None:
        results = Results.new(empty(shape, np.float64 if dtype is None else dtype))
    else:
        _check_out(out, shape, dtype)
        results = Results.into(out, mode == "thread" or in_worker(), lambda target: False)
    if results.targets[0].ndim == 0:
        raise ValueError("the array needs an axis to be cut along; its shape is ()")
    if not results.is_empty():
        outs = results.outs(kernel)
        rows = rows_of(outs, kernel, chunk, workers)
        job = Filling(kernel, outs, rows)
        perform(
            job,
            options,
            None,
            total=len(outs),
            rows=rows,
            together=together_of(outs, rows, job.chunks, workers),
        )
    return results.finish()


def _check_out(out: Any, shape: int | tuple[int, ...], dtype: npt.DTypeLike | None) -> None:
    sizes = sizes_of(shape)
    arrays = outs_of(out)
    if arrays[0] is out:
        if out.shape != sizes:
            raise ValueError(f"out has the shape {out.shape}, not {sizes}")
        if dtype is not None and np.dtype(dtype) != out.dtype:
            raise ValueError(f"out is of dtype {out.dtype}, not {np.dtype(dtype)}")
        return
    for number, array in enumerate(arrays):
        if array.shape[:1] != sizes[:1]:
            raise ValueError(
                f"out[{number}] has the shape {array.shape}, not the length of {sizes}"
            )
