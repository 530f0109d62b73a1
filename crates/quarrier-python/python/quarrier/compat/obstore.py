"""A store in the shape of obstore's, over quarrier's sources.

It has the reading methods of obspec's protocols. Libraries that accept these protocols, such as
async-tiff, then read through quarrier's planner and cache. obstore itself is not needed.
"""

from __future__ import annotations

import builtins
import datetime
import email.utils
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

from quarrier._file import First, SourceFile
from quarrier._held import Span, range_of
from quarrier._later import in_thread
from quarrier._objects import Objects, first_of

_STREAM_BYTES = 10 << 20
# The modification time of an object whose server does not send one.
_UNKNOWN = datetime.datetime.fromtimestamp(0, datetime.UTC)


class ObjectMeta(TypedDict):
    """The properties of an object."""

    path: str
    last_modified: datetime.datetime
    """1970 if the server does not send it."""
    size: int
    e_tag: str | None
    version: str | None


class GetResult:
    """The result of `Store.get`, which reads the bytes when they are requested."""

    def __init__(self, file: SourceFile, meta: ObjectMeta, range: tuple[int, int]) -> None:
        self._file = file
        self.meta = meta
        self.range = range
        self.attributes: dict[str, str] = {}

    def bytes(self) -> builtins.bytes:
        """All bytes of the range."""
        start, stop = self.range
        return self._file.read_at(start, stop - start)

    async def bytes_async(self) -> builtins.bytes:
        """As `bytes`."""
        return await in_thread(self.bytes)

    buffer = bytes
    buffer_async = bytes_async

    def stream(self, min_chunk_size: int = _STREAM_BYTES) -> Iterator[builtins.bytes]:
        """The bytes in parts of `min_chunk_size`."""
        for offset, size in self._parts(min_chunk_size):
            yield self._file.read_at(offset, size)

    async def stream_async(
        self, min_chunk_size: int = _STREAM_BYTES
    ) -> AsyncIterator[builtins.bytes]:
        """As `stream`."""
        for offset, size in self._parts(min_chunk_size):
            yield await self._file.read_at_async(offset, size)

    def _parts(self, size: int) -> Iterator[tuple[int, int]]:
        start, stop = self.range
        for offset in range(start, stop, max(1, size)):
            yield offset, min(max(1, size), stop - offset)

    def __iter__(self) -> Iterator[builtins.bytes]:
        return self.stream()

    def __aiter__(self) -> AsyncIterator[builtins.bytes]:
        return self.stream_async()


class Store:
    """A read-only store of the objects below a URL or a folder.

    The options are those of `quarrier.open`. A range must not be empty, and must begin before the
    end of its object; it may extend beyond the end.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        memory: int | str | None = None,
        requests: int | Literal["auto"] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._objects = Objects(
            root, cache=cache, memory=memory, requests=requests, headers=headers
        )

    def get_range(
        self, path: str, *, start: int, end: int | None = None, length: int | None = None
    ) -> bytes:
        """A range of an object, given by its start and its `end` or `length`."""
        ends = None if end is None else [end]
        lengths = None if length is None else [length]
        return self.get_ranges(path, starts=[start], ends=ends, lengths=lengths)[0]

    async def get_range_async(
        self, path: str, *, start: int, end: int | None = None, length: int | None = None
    ) -> bytes:
        """As `get_range`."""
        return await in_thread(lambda: self.get_range(path, start=start, end=end, length=length))

    def get_ranges(
        self,
        path: str,
        *,
        starts: Sequence[int],
        ends: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
        coalesce: int | None = None,
    ) -> list[bytes]:
        """Ranges of an object, by few concurrent requests; `coalesce` is ignored."""
        spans = _spans(starts, ends, lengths)
        found = self._objects.read(path, spans)
        for (start, _), data in zip(spans, found, strict=True):
            if not data:
                raise ValueError(f"the range of {path!r} from {start} begins at or after its end")
        return found

    async def get_ranges_async(
        self,
        path: str,
        *,
        starts: Sequence[int],
        ends: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
        coalesce: int | None = None,
    ) -> list[bytes]:
        """As `get_ranges`."""
        return await in_thread(
            lambda: self.get_ranges(path, starts=starts, ends=ends, lengths=lengths)
        )

    def get(self, path: str, *, options: Mapping[str, Any] | None = None) -> GetResult:
        """An object, or the `range` in the options: (start, end), `offset` or `suffix`."""
        span, is_head = _options_of(options or {})
        file = self._objects.open(path, None if is_head else first_of(span))
        start, length = range_of(file, *span)
        if length == 0 and span != (None, None):
            raise ValueError(f"the range of {path!r} begins at or after its end, {file.size}")
        return GetResult(file, self._meta(path, file), (start, start + length))

    async def get_async(self, path: str, *, options: Mapping[str, Any] | None = None) -> GetResult:
        """As `get`."""
        return await in_thread(lambda: self.get(path, options=options))

    def head(self, path: str) -> ObjectMeta:
        """The properties of an object."""
        return self._meta(path, self._objects.open(path, _ONE_BYTE))

    async def head_async(self, path: str) -> ObjectMeta:
        """As `head`."""
        return await in_thread(lambda: self.head(path))

    def _meta(self, path: str, file: SourceFile) -> ObjectMeta:
        etag, modified = file._native().validators()
        if not self._objects.is_remote:
            seconds = os.stat(self._objects.name_of(path)).st_mtime
            last_modified = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        else:
            last_modified = _date_of(modified)
        return ObjectMeta(
            path=path, last_modified=last_modified, size=file.size, e_tag=etag, version=None
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self._objects == other._objects

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"quarrier.compat.obstore.Store({self._objects.shown!r})"


_ONE_BYTE: First = (0, 1)


def _date_of(text: str | None) -> datetime.datetime:
    try:
        date = email.utils.parsedate_to_datetime(text or "")
    except ValueError:
        return _UNKNOWN
    return date if date.tzinfo else date.replace(tzinfo=datetime.UTC)


def _spans(
    starts: Sequence[int], ends: Sequence[int] | None, lengths: Sequence[int] | None
) -> list[Span]:
    if (ends is None) == (lengths is None):
        raise ValueError("give either the end of a range or its length")
    others = ends if ends is not None else lengths
    if others is None or len(others) != len(starts):
        raise ValueError("there must be as many ends or lengths as starts")
    if ends is None:
        others = [start + length for start, length in zip(starts, others, strict=True)]
    for start, end in zip(starts, others, strict=True):
        if not 0 <= start < end:
            raise ValueError(f"the range from {start} to {end} is empty or begins before 0")
    return list(zip(starts, others, strict=True))


def _options_of(options: Mapping[str, Any]) -> tuple[Span, bool]:
    unknown = [
        name
        for name, value in options.items()
        if name not in ("range", "head") and value is not None
    ]
    if unknown:
        raise ValueError(f"the option {unknown[0]!r} is not supported; there are range and head")
    return _span_of(options.get("range")), bool(options.get("head"))


def _span_of(wanted: Any) -> Span:
    if wanted is None:
        return None, None
    if not isinstance(wanted, Mapping):
        start, end = wanted
        return _spans([start], [end], None)[0]
    if "offset" in wanted:
        return wanted["offset"], None
    suffix = wanted["suffix"]
    return (-suffix, None) if suffix > 0 else (0, 0)
