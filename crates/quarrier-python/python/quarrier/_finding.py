"""A row of a search."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """A pattern at an offset of a source."""

    source: str
    offset: int
    length: int
    pattern: str
    name: str | None
    match: bytes
