"""How many indices make a chunk, where the caller leaves that open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from quarrier.parallel._options import at_least, count_of
from quarrier.parallel._outs import Outs

# The temporaries of a kernel over so many bytes stay in the cache of a core, and are not many
# megabytes in all workers together.
_CHUNK_BYTES = 128 << 10
# A kernel that numba compiled has none, and the fewer calls of it the better.
_COMPILED_CHUNK_BYTES = 1 << 20
# So many chunks a worker even out what chunks differ in.
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
    """The indices of a chunk of the arrays that `kernel` fills."""
    length = len(outs)
    if chunk is not None:
        return max(at_least("chunk", chunk, 1), -(-length // _CHUNKS_MAX))
    row_bytes = max(1, outs.nbytes // length)
    # Numba's mark of what it compiled, by which it says the function it was made of.
    is_compiled = hasattr(kernel, "py_func")
    rows = max(1, (_COMPILED_CHUNK_BYTES if is_compiled else _CHUNK_BYTES) // row_bytes)
    even = -(-length // (_CHUNKS_A_WORKER_MIN * count_of(workers)))
    rows = max(1, min(rows, even))
    for bytes_of in (_PAGE_BYTES, 64):
        # Two workers never write to the same page, or line.
        step = max(1, bytes_of // row_bytes)
        if rows > step and step * row_bytes == bytes_of:
            return rows - rows % step
    return rows


def together_of(outs: Outs, rows: int, chunks: int, workers: int | Literal["auto"] | None) -> int:
    """How many chunks are claimed at once: those of a huge page, so that one worker takes it."""
    chunk_bytes = max(1, rows * (outs.nbytes // len(outs)))
    if chunks < 64 * count_of(workers):
        return 1
    return max(1, _HUGE_PAGE_BYTES // chunk_bytes)
