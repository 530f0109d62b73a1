"""The jobs of workers: a kernel over the chunks of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from quarrier._errors import Where
from quarrier.parallel._edges import Edges
from quarrier.parallel._outs import Outs
from quarrier.parallel._tiles import Region, Tiles

Array = npt.NDArray[Any]


class Job(Protocol):
    """Work in numbered chunks."""

    chunks: int
    # Whether the supervisor needs the values that `run` returns.
    has_values: bool

    def bounds(self, index: int) -> Where:
        """The first index (or byte) of a chunk and the end after it; for a tile, of each axis."""

    def run(self, index: int, *which: Any) -> Any:
        """Runs the kernel over a chunk."""


def nothing(value: object, out: object) -> None:
    """Refuses a value returned by a kernel that fills `out`, except `out` itself."""
    if value is not None and value is not out:
        kind = type(value).__name__
        raise TypeError(
            f"the kernel returned a value ({kind}); it has to write into out: out[:] = …"
        )


class _Pieces:
    """`length` indices in chunks of `rows`."""

    has_values = False

    def __init__(self, length: int, rows: int) -> None:
        self.length = length
        self.rows = rows
        self.chunks = -(-length // rows)

    def bounds(self, index: int) -> tuple[int, int]:
        first = index * self.rows
        return first, min(first + self.rows, self.length)


class Filling(_Pieces):
    """`init`: the kernel fills slices of arrays."""

    def __init__(self, kernel: Callable[[Any, int], object], outs: Outs, rows: int) -> None:
        super().__init__(len(outs), rows)
        self._kernel = kernel
        self._outs = outs

    def run(self, index: int) -> None:
        first, last = self.bounds(index)
        out = self._outs.at(slice(first, last))
        nothing(self._kernel(out, first), out)


class Mapping(_Pieces):
    """`map`: the kernel fills slices of arrays from slices of others."""

    def __init__(
        self,
        kernel: Callable[..., object],
        outs: Outs,
        inputs: list[Array],
        halo: int,
        rows: int,
    ) -> None:
        super().__init__(len(outs), rows)
        self._kernel = kernel
        self._outs = outs
        self._inputs = [np.asarray(array) for array in inputs]
        self._halo = halo

    def run(self, index: int) -> None:
        first, last = self.bounds(index)
        out = self._outs.at(slice(first, last))
        if self._halo == 0:
            nothing(self._kernel(out, *[array[first:last] for array in self._inputs]), out)
            return
        begin = max(0, first - self._halo)
        end = last + self._halo
        slices = [array[begin:end] for array in self._inputs]
        nothing(self._kernel(out, first - begin, *slices), out)


class Reducing(_Pieces):
    """`reduce`: the kernel computes a value from slices of arrays."""

    has_values = True

    def __init__(
        self, kernel: Callable[..., Any], inputs: list[Array], halo: int, rows: int
    ) -> None:
        super().__init__(len(inputs[0]), rows)
        self._kernel = kernel
        self._inputs = [np.asarray(array) for array in inputs]
        self._halo = halo

    def run(self, index: int) -> Any:
        first, last = self.bounds(index)
        begin = max(0, first - self._halo)
        lead = [first - begin] if self._halo else []
        return self._kernel(*lead, *[array[begin : last + self._halo] for array in self._inputs])


class Tiling:
    """`stencil`: the kernel fills tiles of arrays from blocks of another."""

    has_values = False

    def __init__(
        self,
        kernel: Callable[[Any, Any], object],
        outs: Outs,
        array: Array,
        edges: Edges,
        tiles: Tiles,
    ) -> None:
        self.chunks = len(tiles)
        self._kernel = kernel
        self._outs = outs
        self._array = np.asarray(array)
        self._edges = edges
        self._tiles = tiles

    def bounds(self, index: int) -> Region:
        return self._tiles.region(index)

    def run(self, index: int) -> None:
        region = self._tiles.region(index)
        out = self._outs.at(tuple(slice(first, last) for first, last in region))
        nothing(self._kernel(out, self._edges.block(self._array, region)), out)


class Scanning(_Pieces):
    """`scan` of bytes in memory: the kernel computes a value from each chunk."""

    def __init__(
        self,
        kernel: Callable[[Any, int], Any],
        data: npt.NDArray[np.uint8],
        chunk: int,
        overlap: int,
        out: Array | None,
    ) -> None:
        super().__init__(len(data), chunk)
        self._kernel = kernel
        self._data = data
        self._overlap = overlap
        self._out = out
        self.has_values = out is None

    def run(self, index: int) -> Any:
        first, last = self.bounds(index)
        value = self._kernel(self._data[first : last + self._overlap], first)
        if self._out is None:
            return value
        self._out[index] = value
        return None


class Feeding:
    """`scan` of a source: readers have put the chunk into a slot of the shared memory."""

    def __init__(
        self,
        kernel: Callable[[Any, int], Any],
        pool: npt.NDArray[np.uint8],
        stride: int,
        pieces: tuple[int, int],
        out: Array | None,
    ) -> None:
        self._kernel = kernel
        self._pool = pool
        self._stride = stride
        self._pieces = _Pieces(*pieces)
        self._out = out
        self.chunks = self._pieces.chunks
        self.has_values = out is None

    def bounds(self, index: int) -> tuple[int, int]:
        return self._pieces.bounds(index)

    def run(self, index: int, slot: int, offset: int, visible: int) -> Any:
        begin = slot * self._stride
        chunk = self._pool[begin : begin + visible]
        chunk.flags.writeable = False
        value = self._kernel(chunk, offset)
        if self._out is None:
            return value
        self._out[index] = value
        return None
