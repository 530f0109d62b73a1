"""A row of what was carved."""

from __future__ import annotations

from typing import Literal, NamedTuple


class CarvedFile(NamedTuple):
    """A carved file: the place of its bytes, its status, and where it was written."""

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
    """The path through the archives, if it was inside one."""
