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
    """One value of whole arrays: workers compute a value of each slice, and these are combined.

    Parameters
    ----------
    kernel : callable
        `kernel(*slices)` returns the value of `chunk` indices of the arrays; with `halo`, it is
        `kernel(lead, *slices)`, as in `map`. Values are pickled, and should be small.
    combine : callable
        `combine(value of all before, value of the next)`, called in the order of the indices, in
        the caller's process. It must be associative, as a sum or a minimum is.
    *arrays : array_like
        Arrays of the same length, as for `map`.
    halo : int
        How many neighbours on both sides a kernel sees; fewer only at the ends of the arrays.
    workers : int or "auto", optional
        The number of workers; by default one for each CPU that this process may use.
    chunk : int, optional
        The indices of the first axis that a kernel gets at once. The sum of floats depends on it in
        the last digits, but not on the number of workers if it is given.
    mode : {"process", "thread"}
        Whether workers are processes or threads (for kernels that release the interpreter's lock).
    on_error : {"raise", "retry"}
        With `"retry"`, a chunk that failed is run once more, by another worker.
    timeout : float, optional
        The seconds that one chunk may take.
    progress : callable or "tqdm", optional
        Called with the indices done and all indices.

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
