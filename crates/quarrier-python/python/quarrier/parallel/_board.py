"""State that the workers of a run share with their supervisor, without messages.

A shared region holds the next unclaimed chunk; for each worker, its current chunk and when it
started that; and for each chunk, whether it is done:

     0        next claim
    64 · i    chunk, since  of worker i - 1, in a separate cache line
    …         a byte for each chunk
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from quarrier._native import SharedRegion

_LINE = 64
_WORDS = _LINE // 8
_CLOSED = 1 << 62


class Board:
    """The board of one run over `chunks` chunks, claimed `together` at a time."""

    def __init__(
        self, workers: int, chunks: int, together: int = 1, region: SharedRegion | None = None
    ) -> None:
        self._layout = (workers, chunks, together)
        flags = _LINE * (1 + workers)
        self.chunks = chunks
        self.region = SharedRegion(flags + chunks) if region is None else region
        view = memoryview(self.region)
        self._words = view[:flags].cast("Q")
        self._done = view[flags : flags + chunks]

    def __reduce__(self) -> tuple[type[Board], tuple[int, int, int, SharedRegion]]:
        return Board, (*self._layout, self.region)

    def claims(self) -> Iterator[int]:
        """Claims chunks until none is left or the run is cancelled."""
        together = self._layout[2]
        while True:
            first = self.region.fetch_add(0, together)
            if first >= self.chunks:
                return
            for index in range(first, min(first + together, self.chunks)):
                yield index
                if together > 1 and self.is_closed():
                    return

    def cancel(self) -> None:
        """Closes the board: no worker gets another chunk."""
        self.region.store(0, _CLOSED)

    def is_closed(self) -> bool:
        """Whether the run is over or cancelled."""
        return self.region.load(0) >= _CLOSED

    def begin(self, worker: int, index: int) -> None:
        """Records that the worker starts this chunk."""
        word = _WORDS * (1 + worker)
        self._words[word + 1] = time.monotonic_ns()
        self._words[word] = index + 1

    def end(self, index: int) -> None:
        """Records that this chunk is done."""
        self._done[index] = 1

    def last(self, worker: int) -> int | None:
        """The chunk that the worker started last."""
        word = self._words[_WORDS * (1 + worker)]
        return word - 1 if word else None

    def at(self, worker: int) -> tuple[int, float] | None:
        """The worker's current chunk, and its running time in seconds; None between chunks."""
        index = self.last(worker)
        since = self._words[_WORDS * (1 + worker) + 1]
        if index is None or self._done[index] or self.last(worker) != index:
            return None
        return index, (time.monotonic_ns() - since) / 1e9

    def forget(self, worker: int) -> None:
        """Frees the worker's place for another."""
        self._words[_WORDS * (1 + worker)] = 0

    def count_done(self) -> int:
        """The number of chunks that are done."""
        return int(np.count_nonzero(np.frombuffer(self._done, np.uint8)))

    def missing(self) -> list[int]:
        """The chunks that are not done."""
        done = np.frombuffer(self._done, np.uint8)
        return [int(index) for index in np.flatnonzero(done == 0)]
