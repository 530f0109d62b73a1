"""Combines the values of chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from quarrier.parallel._array import place_of


class Values:
    """Takes values in any order: into rows of `out`, folded by `reduce`, or as a list."""

    def __init__(
        self, out: npt.NDArray[Any] | None, reduce: Callable[[Any, Any], Any] | None
    ) -> None:
        self._out = out
        self._reduce = reduce
        self._written = False
        self._held: dict[int, Any] = {}
        self._folded: Any = None
        self._next = 0

    def check(self, chunks: int) -> None:
        """Raises `ValueError` unless `out` has one row for each chunk."""
        if self._out is not None and (self._out.ndim == 0 or len(self._out) != chunks):
            raise ValueError(f"out has the shape {self._out.shape}; there are {chunks} chunks")

    def rows(self, anywhere: bool) -> npt.NDArray[Any] | None:
        """The array whose rows workers write; with `anywhere`, workers are in this process."""
        if self._out is not None and (anywhere or place_of(self._out) is not None):
            self._written = True
            return self._out
        return None

    def take(self, index: int, value: Any) -> None:
        """Takes the value of a chunk, unless the worker wrote it to its row."""
        if self._written:
            return
        self._held[index] = value
        if self._reduce is None:
            return
        while self._next in self._held:
            value = self._held.pop(self._next)
            self._folded = value if self._next == 0 else self._reduce(self._folded, value)
            self._next += 1

    def result(self, chunks: int) -> Any:
        """Returns the result of `scan` after the values of this many chunks."""
        if self._reduce is not None:
            return self._folded
        if self._out is None:
            return [self._held[index] for index in range(chunks)]
        if not self._written:
            for index in range(chunks):
                self._out[index] = self._held[index]
        return self._out
