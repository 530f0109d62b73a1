"""Units: parts of sources that other processes and machines can search."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from quarrier._native import Findings, cut, search


class Unit(NamedTuple):
    """A range of offsets of a source at a version. It can be pickled."""

    name: str
    """The name by which the source is opened. A URL may hold a secret."""
    source: str
    """The name of the source in rows."""
    length: int
    """The length of the source in bytes."""
    mark: str
    """The version of the source: sizes and times of its files, or ETags of its objects."""
    start: int
    """The first offset of the unit, which owns the findings that start in it."""
    end: int
    """The offset after its last one."""


def units(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    size: int | str | None = "1G",
) -> list[Unit]:
    """Cuts sources into units, which other processes can search with `run`.

    A source is a path, a folder, a glob or a URL. Units end at multiples of `size` bytes; with
    None, each source is one unit.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    return [Unit(*fields) for fields in cut(list(sources), size)]


def run(unit: Unit, patterns: Any, **options: Any) -> Findings:
    """Searches one unit and returns its rows. The rows of all units are those of the whole
    source.

    Options are those of `search` except for `range` and `max_count`; by default one worker
    searches. A regex cannot search a part of a source, because its matches depend on earlier ones.
    If a source changed since it was cut, a `QuarrierError` is raised.
    """
    if not isinstance(unit, Unit):
        raise TypeError(f"run takes a unit of quarrier.units, not {type(unit).__name__!r}")
    for name in ("range", "max_count"):
        if name in options:
            raise TypeError(f"run does not take {name}; it returns all rows of the unit's range")
    options.setdefault("workers", 1)
    found: Findings = search(cast(Any, unit), patterns, **options)
    return found
