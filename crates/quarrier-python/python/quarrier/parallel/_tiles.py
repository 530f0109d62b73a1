"""Cuts arrays of several axes into tiles."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from quarrier._errors import PlanError

# The number of elements that numpy's loops could process in the time it takes to start a row, and
# the memory in the time it takes to start at another place.
_ROW_ELEMENTS = 32
_RUN_ELEMENTS = 2048
# Halos cost more than cache misses: tiles that are thin compared with them may be so much larger.
_THIN_TIMES = 16
_THICK_HALOS = 4
# A smaller tile is not worth a call.
_TILE_ELEMENTS_MIN = 4096
_LINE_BYTES = 64

Region = tuple[tuple[int, int], ...]


class Tiles:
    """The tiles of an array, numbered in the order of its elements."""

    def __init__(self, shape: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self._shape = shape
        self._counts = [-(-n // size) for n, size in zip(shape, sizes, strict=True)]

    def __len__(self) -> int:
        return math.prod(self._counts)

    def region(self, index: int) -> Region:
        """The first element of a tile and the end after its last, for each axis."""
        found = []
        for n, size, count in zip(
            reversed(self._shape), reversed(self.sizes), reversed(self._counts), strict=True
        ):
            index, at = divmod(index, count)
            found.append((at * size, min(n, (at + 1) * size)))
        return tuple(reversed(found))


class Budget(NamedTuple):
    """Limits of a tile: bytes of results, bytes of an element, the minimum number of tiles."""

    tile_bytes: int
    element_bytes: int
    tiles_min: int


def plan(shape: tuple[int, ...], halos: list[int], budget: Budget) -> tuple[int, ...]:
    """Chooses tiles that fit the cache, with as little halo as possible."""
    elements = budget.tile_bytes // budget.element_bytes
    even = -(-math.prod(shape) // budget.tiles_min)
    elements = max(1, min(elements, max(even, _TILE_ELEMENTS_MIN)))
    sizes = [1] * len(shape)
    while (larger := _grown(sizes, shape, halos, elements)) is not None:
        sizes = larger
    return tuple(
        _evened(size, n, budget.element_bytes if axis == len(shape) - 1 else None)
        for axis, (size, n) in enumerate(zip(sizes, shape, strict=True))
    )


def _grown(
    sizes: list[int], shape: tuple[int, ...], halos: list[int], elements: int
) -> list[int] | None:
    """The tile with one axis doubled: the axis that lowers the cost of an element most."""
    best: list[int] | None = None
    for axis in reversed(range(len(sizes))):
        size = min(2 * sizes[axis], shape[axis])
        is_thin = sizes[axis] < _THICK_HALOS * halos[axis]
        tried = [*sizes[:axis], size, *sizes[axis + 1 :]]
        most = elements * (_THIN_TIMES if is_thin else 1)
        if size == sizes[axis] or math.prod(tried) > most:
            continue
        if best is None or _cost(tried, shape, halos) < _cost(best, shape, halos):
            best = tried
    return best


def _cost(sizes: list[int], shape: tuple[int, ...], halos: list[int]) -> float:
    """The relative cost of an element: elements read for each one written, and starts of reads."""
    read = math.prod(1 + 2 * halo / size for size, halo in zip(sizes, halos, strict=True))
    run = sizes[-1]
    for axis in range(len(sizes) - 1, 0, -1):
        if sizes[axis] < shape[axis]:
            break
        run *= sizes[axis - 1]
    return read * (1 + _ROW_ELEMENTS / sizes[-1]) * (1 + _RUN_ELEMENTS / run)


def _evened(size: int, n: int, element_bytes: int | None) -> int:
    """The size that makes the same number of tiles even; on the last axis, whole cache lines."""
    even = -(-n // -(-n // size))
    if element_bytes is None or even == n or _LINE_BYTES % element_bytes:
        return even
    line = _LINE_BYTES // element_bytes
    return min(n, -(-even // line) * line)


def per_axis(name: str, value: Any, ndim: int, least: int) -> list[int]:
    """An option that is one number for all axes or one for each."""
    numbers = list(value) if isinstance(value, Sequence) or hasattr(value, "__len__") else None
    if numbers is None:
        numbers = list(itertools.repeat(value, ndim))
    if len(numbers) != ndim:
        raise ValueError(
            f"{name} has {len(numbers)} numbers for {ndim} axes; give one, or one each"
        )
    found = [operator.index(number) for number in numbers]
    if min(found) < least:
        raise PlanError(f"{name} is {min(found)}; it must be at least {least}")
    return found
