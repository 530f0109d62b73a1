"""Chooses the number of indices in a chunk if the caller does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from quarrier._errors import PlanError
from quarrier.parallel._options import at_least, count_of
from quarrier.parallel._outs import Outs, is_compiled
from quarrier.parallel._tiles import Budget, Tiles, plan

# The temporaries of a kernel over so many bytes fit the cache of a core, and take only a few
# megabytes in all workers together.
_CHUNK_BYTES = 128 << 10
# A call for a tile costs more, and so does starting in other rows.
_TILE_BYTES = 512 << 10
# A kernel compiled by numba has no temporaries, and gains from fewer calls.
_COMPILED_CHUNK_BYTES = 1 << 20
# So many chunks per worker even out differences between chunks.
_CHUNKS_A_WORKER_MIN = 8
_PAGE_BYTES = 4 << 10
_HUGE_PAGE_BYTES = 2 << 20
# Each chunk has a byte on the board.
_CHUNKS_MAX = 1 << 26


def rows_of(
    outs: Outs,
    kernel: Callable[..., Any],
    chunk: int | None,
    workers: int | Literal["auto"] | None,
) -> int:
    """The number of indices in a chunk of the arrays that `kernel` fills."""
    length = len(outs)
    if chunk is not None:
        return max(at_least("chunk", chunk, 1), -(-length // _CHUNKS_MAX))
    row_bytes = max(1, outs.nbytes // length)
    rows = max(1, (_COMPILED_CHUNK_BYTES if is_compiled(kernel) else _CHUNK_BYTES) // row_bytes)
    even = -(-length // (_CHUNKS_A_WORKER_MIN * count_of(workers)))
    rows = max(1, min(rows, even))
    for bytes_of in (_PAGE_BYTES, 64):
        # Two workers then never write to the same page, or cache line.
        step = max(1, bytes_of // row_bytes)
        if rows > step and step * row_bytes == bytes_of:
            return rows - rows % step
    return rows


def tiles_of(
    outs: Outs,
    shape: tuple[int, ...],
    halos: list[int],
    kernel: Callable[..., Any],
    sizes: list[int] | None,
    workers: int | Literal["auto"] | None,
) -> Tiles:
    """The tiles of the arrays that `kernel` fills, all of this shape; of these `sizes` if given."""
    if sizes is None:
        element_bytes = max(1, outs.nbytes // math.prod(shape))
        tiles_min = _CHUNKS_A_WORKER_MIN * count_of(workers)
        tile_bytes = _COMPILED_CHUNK_BYTES if is_compiled(kernel) else _TILE_BYTES
        sizes = list(plan(shape, halos, Budget(tile_bytes, element_bytes, tiles_min)))
    tiles = Tiles(shape, tuple(sizes))
    if len(tiles) > _CHUNKS_MAX:
        raise PlanError(f"tile makes {len(tiles)} tiles; at most {_CHUNKS_MAX} are possible")
    return tiles


def together_of(outs: Outs, rows: int, chunks: int, workers: int | Literal["auto"] | None) -> int:
    """The number of chunks claimed at once: those of a huge page, so that one worker touches it."""
    chunk_bytes = max(1, rows * (outs.nbytes // len(outs)))
    if chunks < 64 * count_of(workers):
        return 1
    return max(1, _HUGE_PAGE_BYTES // chunk_bytes)
