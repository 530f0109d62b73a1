"""`reduce`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from quarrier.parallel._chunks import rows_of
from quarrier.parallel._inputs import as_arrays
from quarrier.parallel._job import Reducing
from quarrier.parallel._options import Options, at_least
from quarrier.parallel._outs import Outs
from quarrier.parallel._perform import perform
from quarrier.parallel._progress import Wanted
from quarrier.parallel._values import Values


def reduce(
    kernel: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    *arrays: Any,
    halo: int = 0,
    workers: int | Literal["auto"] | None = None,
    chunk: int | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Any:
    """Folds whole arrays into one value: workers compute a value of each slice.

    Parameters
    ----------
    kernel : callable
        `kernel(*slices)` returns the value of `chunk` indices of the arrays; with `halo`, it is
        `kernel(lead, *slices)`, as in `map`. Values are pickled, and should be small.
    combine : callable
        `combine(value of all before, value of the next)`, called in the order of the indices, in
        the caller's process. It must be associative, like a sum or a minimum.
    *arrays : array_like
        Arrays of the same length, as for `map`.
    halo : int
        The number of neighbours that a kernel sees on both sides; fewer at the ends of the arrays.
    workers : int or "auto", optional
        The number of workers; by default one for each CPU that this process may use.
    chunk : int, optional
        The number of indices of the first axis in a slice. The last digits of a sum of floats
        depend on it, but if it is given they do not depend on the number of workers.
    mode : {"process", "thread"}
        Whether workers are processes or threads (for kernels that release the interpreter's lock).
    on_error : {"raise", "retry"}
        With `"retry"`, a failed chunk runs once more, in another worker.
    timeout : float, optional
        The maximum time for one chunk, in seconds.
    progress : callable or "tqdm", optional
        Called with the number of indices done and the total.

    Returns
    -------
    object
        The value of all indices; None for arrays of length 0.

    Examples
    --------
    >>> import numpy as np, quarrier.parallel as parallel
    >>> def ends(values):
    ...     return values.min(), values.max()
    >>> def both(before, after):
    ...     return min(before[0], after[0]), max(before[1], after[1])
    >>> low, high = parallel.reduce(ends, both, np.arange(1000), workers=2)
    >>> int(low), int(high)
    (0, 999)
    """
    options = Options(workers, mode, on_error, timeout, progress)
    options.check()
    halo = at_least("halo", halo, 0)
    inputs = as_arrays("reduce", arrays)
    values = Values(None, combine)
    length = len(inputs[0])
    if length == 0:
        return values.result(0)
    rows = rows_of(Outs(inputs, True), kernel, chunk, workers)
    job = Reducing(kernel, inputs, halo, rows)
    perform(job, options, values.take, total=length, rows=rows)
    return values.result(job.chunks)
