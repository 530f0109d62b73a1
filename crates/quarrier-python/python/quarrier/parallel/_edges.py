"""The values beyond the edges of an array, as scipy.ndimage defines them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

EdgeMode: TypeAlias = (
    Literal["reflect"]
    | Literal["mirror"]
    | Literal["nearest"]
    | Literal["wrap"]
    | Literal["constant"]
)
_MODES = ("reflect", "mirror", "nearest", "wrap", "constant")

# Blocks of more pieces (at the edges of an array smaller than its halo) are gathered by index.
_PIECES_MAX = 81


class Axis(NamedTuple):
    """The halo of an axis, and how the array continues beyond its two ends."""

    halo: int
    mode: EdgeMode


class _Piece(NamedTuple):
    """A run of elements of a block that is also a run in the array; None: the constant."""

    target: slice
    source: slice | None


class Edges:
    """Makes the blocks around regions of an array."""

    def __init__(self, axes: list[Axis], cval: Array, contiguous: bool) -> None:
        self._axes = axes
        self._cval = cval
        # Numba compiles a kernel again for each memory layout.
        self._contiguous = contiguous

    def block(self, array: Array, region: tuple[tuple[int, int], ...]) -> Array:
        """The region with the halo around it, read-only; a view of the array if possible."""
        spans = [
            (first - axis.halo, last + axis.halo)
            for (first, last), axis in zip(region, self._axes, strict=True)
        ]
        if all(
            first >= 0 and last <= n for (first, last), n in zip(spans, array.shape, strict=True)
        ):
            block = array[tuple(slice(*span) for span in spans)]
            if self._contiguous:
                block = block.copy()
        else:
            block = self._beyond(array, spans)
        block.flags.writeable = False
        return block

    def _beyond(self, array: Array, spans: list[tuple[int, int]]) -> Array:
        pieces = [
            _known_pieces(size, *span, axis.mode)
            for size, span, axis in zip(array.shape, spans, self._axes, strict=True)
        ]
        if math.prod(map(len, pieces)) > _PIECES_MAX:
            return self._picked(array, spans)
        block = np.empty([last - first for first, last in spans], array.dtype)
        for parts in itertools.product(*pieces):
            sources = [part.source for part in parts]
            target = tuple(part.target for part in parts)
            is_constant = any(source is None for source in sources)
            block[target] = self._cval if is_constant else array[tuple(sources)]
        return block

    def _picked(self, array: Array, spans: list[tuple[int, int]]) -> Array:
        block = array
        # Start with the axes that keep the smallest part of the array.
        order = sorted(
            range(array.ndim), key=lambda a: (spans[a][1] - spans[a][0]) / array.shape[a]
        )
        for number in order:
            (first, last), axis, size = spans[number], self._axes[number], array.shape[number]
            block = block.take(_indices(size, first, last, axis.mode), number)
            if axis.mode == "constant":
                ahead = (slice(None),) * number
                block[(*ahead, slice(0, max(0, -first)))] = self._cval
                block[(*ahead, slice(max(0, size - first), None))] = self._cval
        return block


def _pieces(size: int, first: int, last: int, mode: EdgeMode) -> tuple[_Piece, ...]:
    """The pieces of the elements from `first` to `last` of an axis with `size` elements."""
    inside = max(first, 0), min(last, size)
    found = []
    if first < 0:
        found += _outside(size, first, min(last, 0), first, mode)
    if inside[0] < inside[1]:
        target = slice(inside[0] - first, inside[1] - first)
        found.append(_Piece(target, slice(*inside)))
    if last > size:
        found += _outside(size, max(first, size), last, first, mode)
    return tuple(found)


# Most tiles share the edges of another tile on some axis.
_known_pieces = functools.lru_cache(maxsize=1024)(_pieces)


def _outside(size: int, begin: int, end: int, first: int, mode: EdgeMode) -> list[_Piece]:
    if mode == "constant":
        return [_Piece(slice(begin - first, end - first), None)]
    indices = _indices(size, begin, end, mode)
    # A piece ends where the step to the next index changes.
    steps = np.diff(indices)
    cuts = [0, *(np.flatnonzero(np.diff(steps)) + 2).tolist(), len(indices)]
    found = []
    for start, stop in itertools.pairwise(cuts):
        at, until = int(indices[start]), int(indices[stop - 1])
        step = int(steps[start]) if stop - start > 1 else 1
        # A constant index is one repeated element; a slice down to the first element ends at None.
        beyond = until + (step or 1)
        source = slice(at, beyond if beyond >= 0 else None, step or 1)
        found.append(_Piece(slice(begin + start - first, begin + stop - first), source))
    return found


def _indices(size: int, first: int, last: int, mode: EdgeMode) -> npt.NDArray[np.intp]:
    """The index of the element at each place from `first` to `last`, also outside the axis."""
    wanted = np.arange(first, last)
    if mode == "wrap":
        return wanted % size
    if mode == "reflect":
        within = wanted % (2 * size)
        return np.minimum(within, 2 * size - 1 - within)
    if mode == "mirror":
        period = max(1, 2 * size - 2)
        within = wanted % period
        return np.minimum(within, period - within) if size > 1 else np.zeros_like(wanted)
    return np.clip(wanted, 0, size - 1)


def modes_of(mode: Any, ndim: int) -> list[EdgeMode]:
    """The mode of each axis, from one for all or one for each."""
    modes: list[Any] = [mode] * ndim if isinstance(mode, str) else list(mode)
    for found in modes:
        if found not in _MODES:
            known = ", ".join(_MODES)
            raise ValueError(f"mode {found!r} is unknown; the modes of edges are {known}")
    if len(modes) != ndim:
        raise ValueError(f"{len(modes)} modes for {ndim} axes; give one, or one for each axis")
    return modes


def constant_of(cval: Any, dtype: np.dtype[Any]) -> Array:
    """The value beyond the edges in `mode="constant"`, as an element of the array."""
    found = np.zeros((), dtype)
    if dtype.kind not in "biufc":
        found[()] = cval
        return found
    given = np.asarray(cval)
    if given.ndim > 0:
        raise ValueError("cval is one value, not an array")
    is_real = given.dtype.kind != "c" or given.imag == 0
    if is_real or dtype.kind == "c":
        with np.errstate(all="ignore"):
            found[()] = (given if dtype.kind == "c" else given.real).astype(dtype)
        if _is_kept(given, found):
            return found
    raise ValueError(f"cval {cval!r} is not a value of dtype {dtype}, which the array has")


def _is_kept(given: Array, found: Array) -> bool:
    """Whether a number keeps its value in another dtype, up to the precision of a float."""
    if found.dtype.kind in "biu":
        return bool(given == found)
    return bool(np.isfinite(given) == np.isfinite(found))
