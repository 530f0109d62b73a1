"""A row of a carving."""

from __future__ import annotations

from typing import Literal, NamedTuple


class CarvedFile(NamedTuple):
    """A carved file: the place of its bytes, its status, and its path in the folder."""

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
    """The path through the archives, if the file was inside one."""
