"""A row of what was carved."""

from __future__ import annotations

from typing import Literal, NamedTuple


class CarvedFile(NamedTuple):
    """A file that was carved: where its bytes lay, how whole it is, where it was written."""

    source: str
    type: str
    offset: int
    length: int
    extents: list[tuple[int, int]]
    status: Literal["valid", "partial", "header"]
    reason: str
    sha256: str
    path: str
    container: str | None = None
    """The way to it from the outermost archive, where it lay in one."""
