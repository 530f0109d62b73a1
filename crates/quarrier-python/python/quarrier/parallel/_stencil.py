"""`stencil`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from quarrier.parallel._array import SharedArray, empty
from quarrier.parallel._chunks import tiles_of
from quarrier.parallel._edges import Axis, EdgeMode, Edges, constant_of, modes_of
from quarrier.parallel._inputs import as_array
from quarrier.parallel._job import Tiling
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import Options
from quarrier.parallel._outs import Filled, Results, disturbs, is_compiled, outs_of
from quarrier.parallel._perform import perform
from quarrier.parallel._progress import Wanted
from quarrier.parallel._tiles import per_axis


@overload
def stencil(
    kernel: Callable[[Any, Any], object],
    array: Any,
    halo: int | Sequence[int],
    mode: EdgeMode | Sequence[EdgeMode] = "reflect",
    cval: Any = 0,
    out: None = None,
    workers: int | Literal["auto"] | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    tile: int | Sequence[int] | None = None,
    worker_mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> SharedArray: ...
@overload
def stencil(
    kernel: Callable[[Any, Any], object],
    array: Any,
    halo: int | Sequence[int],
    mode: EdgeMode | Sequence[EdgeMode] = "reflect",
    cval: Any = 0,
    *,
    out: Filled,
    workers: int | Literal["auto"] | None = None,
    dtype: npt.DTypeLike | None = None,
    tile: int | Sequence[int] | None = None,
    worker_mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Filled: ...
@overload
def stencil(
    kernel: Callable[[Any, Any], object],
    array: Any,
    halo: int | Sequence[int],
    mode: EdgeMode | Sequence[EdgeMode],
    cval: Any,
    out: Filled,
    workers: int | Literal["auto"] | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    tile: int | Sequence[int] | None = None,
    worker_mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Filled: ...
def stencil(
    kernel: Callable[[Any, Any], object],
    array: Any,
    halo: int | Sequence[int],
    mode: EdgeMode | Sequence[EdgeMode] = "reflect",
    cval: Any = 0,
    out: npt.NDArray[Any] | Sequence[npt.NDArray[Any]] | None = None,
    workers: int | Literal["auto"] | None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    tile: int | Sequence[int] | None = None,
    worker_mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Any:
    """Computes an array from the neighbourhoods of another's elements, tile by tile.

    `kernel(out, block)` fills `out`, a writable tile of the result. `block` is the same region of
    the array with `halo` elements more on every side, read-only; `mode` gives the values beyond the
    edges of the array. So a kernel needs no special cases for edges.

    Parameters
    ----------
    kernel : callable
        Fills `out` and returns nothing. The element `out[i, j]` is in the middle of
        `block[i : i + 2 * halo + 1, j : j + 2 * halo + 1]`.
    array : array_like
        A numpy array of any number of axes, or an object that exports its memory. It reaches
        workers like those of `map`. Masked values and NULLs are a `ValueError`.
    halo : int or sequence of int
        The neighbours that the kernel needs on each side, one number or one for each axis. It may
        be larger than the array.
    mode : str or sequence of str
        The elements beyond the edges, as in `scipy.ndimage`, one for all axes or one for each:
        `"reflect"` (d c b a | a b c d | d c b a), `"mirror"` (d c b | a b c d | c b a),
        `"nearest"` (a a a | a b c d | d d d), `"wrap"` (b c d | a b c d | a b c) or
        `"constant"` (`cval`).
    cval : scalar
        The value beyond the edges with `mode="constant"`. A `ValueError` if the array's dtype
        cannot represent it.
    out : array or sequence of arrays, optional
        The result, filled in place as in `map`: shared, or in a mapped file larger than memory. Its
        first axes are those of the array. With several, `out=[first, second]`, the kernel gets a
        list of tiles. If it overlaps the array, the kernel still sees the original values.
    workers : int or "auto", optional
        The number of workers; by default one for each CPU that this process may use.
    dtype : dtype, optional
        The dtype of a new result; by default the array's.
    tile : int or sequence of int, optional
        The size of a tile along each axis. By default a tile of the result has at most 512 KiB (1
        MiB with a kernel that numba compiled) where halos allow, in long rows, so that a kernel's
        temporaries stay in the cache.
    worker_mode : {"process", "thread"}
        Whether workers are processes or threads (for kernels that release the interpreter's lock).
    on_error : {"raise", "retry"}
        With `"retry"`, a failed tile runs once more, in another worker.
    timeout : float, optional
        The maximum time for one tile, in seconds.
    progress : callable or "tqdm", optional
        Called with the number of elements done and the total.

    Returns
    -------
    array
        A new array in shared memory with the shape of the array, or `out`.

    Examples
    --------
    >>> import numpy as np, quarrier.parallel as parallel
    >>> def blur(out, block):
    ...     out[:] = (block[:-2] + block[1:-1] + block[2:]) // 3
    >>> parallel.stencil(blur, np.array([0, 3, 6, 0]), halo=1, mode="nearest", workers=2).tolist()
    [1, 3, 3, 2]
    """
    options = Options(workers, worker_mode, on_error, timeout, progress)
    options.check()
    values = as_array(array)
    if values.ndim == 0:
        raise ValueError("an array without an axis cannot be cut into tiles")
    halos = per_axis("halo", halo, values.ndim, 0)
    modes = modes_of(mode, values.ndim)
    constant = constant_of(cval if "constant" in modes else 0, values.dtype)
    if out is None:
        results = Results.new(empty(values.shape, values.dtype if dtype is None else dtype))
    else:
        _check_out(out, values.shape, dtype)
        sees_more = max(halos) > 0 or on_error == "retry"
        in_place = worker_mode == "thread" or in_worker()
        results = Results.into(out, in_place, lambda target: disturbs(target, values, sees_more))
    if not results.is_empty():
        outs = results.outs(kernel)
        sizes = None if tile is None else per_axis("tile", tile, values.ndim, 1)
        tiles = tiles_of(outs, values.shape, halos, kernel, sizes, workers)
        edges = Edges(
            [Axis(*axis) for axis in zip(halos, modes, strict=True)],
            constant,
            contiguous=is_compiled(kernel),
        )
        job = Tiling(kernel, outs, values, edges, tiles)
        perform(
            job,
            options,
            None,
            total=values.size,
            rows=int(np.prod(tiles.sizes)),
        )
    return results.finish()


def _check_out(out: Any, shape: tuple[int, ...], dtype: npt.DTypeLike | None) -> None:
    for array in outs_of(out):
        if dtype is not None and np.dtype(dtype) != array.dtype:
            raise ValueError(f"out is of dtype {array.dtype}, not {np.dtype(dtype)}")
        if array.shape[: len(shape)] != shape:
            raise ValueError(f"out has the shape {array.shape}, the array {shape}")
