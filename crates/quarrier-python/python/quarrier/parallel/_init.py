"""`init`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy.typing as npt

from quarrier.parallel._array import SharedArray, empty
from quarrier.parallel._chunks import rows_of, together_of
from quarrier.parallel._job import Filling
from quarrier.parallel._options import Options
from quarrier.parallel._perform import perform
from quarrier.parallel._progress import Wanted


def init(
    shape: int | tuple[int, ...],
    dtype: npt.DTypeLike,
    kernel: Callable[[Any, int], object],
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    *,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> SharedArray:
    """A new array in shared memory, filled by workers.

    `kernel(out, start)` fills `out`, the writable slice of `chunk` indices that begins at index
    `start` of the first axis, and returns nothing. The other options are those of the package.
    Nothing is copied; the array is returned only when all of it is filled.

    >>> import quarrier.parallel as parallel
    >>> def squares(out, start):
    ...     for index in range(len(out)):
    ...         out[index] = (start + index) ** 2
    >>> parallel.init(6, "i8", squares, workers=2).tolist()
    [0, 1, 4, 9, 16, 25]
    """
    options = Options(workers, mode, on_error, timeout, progress)
    options.check()
    array = empty(shape, dtype)
    if array.ndim == 0:
        raise ValueError("the array needs an axis to be cut along; its shape is ()")
    if array.size == 0:
        return array
    rows = rows_of(array, kernel, chunk, workers)
    job = Filling(kernel, array, rows)
    perform(
        job,
        options,
        lambda index, value: None,
        total=len(array),
        rows=rows,
        together=together_of(array, rows, job.chunks, workers),
    )
    return array
