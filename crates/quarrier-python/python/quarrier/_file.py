"""Sources as file objects."""

from __future__ import annotations

import io
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from quarrier._errors import RemoteChangedError
from quarrier._native import Source, open_source

# The first request for an object: an offset and a length, or None and the length of the end.
First: TypeAlias = tuple[int | None, int]


class SourceFile(io.RawIOBase):
    """A source opened by `quarrier.open`, read like a file.

    Reads are exact: they return as many bytes as requested, unless the source ends. Reading cached
    bytes costs a few microseconds, so no further buffering is needed. Threads may share the file if
    each seeks and reads under a lock, or use `read_at`, which needs none. Pickled files, and files
    in a forked child, open their source again.
    """

    def __init__(self, source: str, settings: dict[str, Any], first: First | None = None) -> None:
        super().__init__()
        self._open_arguments = (source, settings)
        self._source = open_source(source, **settings, first=first)
        self._process = os.getpid()
        self._position = 0
        self._size = self._source.length

    @property
    def name(self) -> str:
        """The path or URL, without secrets."""
        return self._source.name

    @property
    def size(self) -> int:
        """The length in bytes when the source was opened."""
        return self._size

    @property
    def mode(self) -> str:
        """Always "rb"."""
        return "rb"

    def counters(self) -> dict[str, int] | None:
        """The cost of a remote source so far: requests, bytes; None for a local one."""
        return self._source.counters()

    def readable(self) -> bool:
        """True."""
        self._check_open()
        return True

    def seekable(self) -> bool:
        """True."""
        self._check_open()
        return True

    def tell(self) -> int:
        """The offset where the next read begins."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to `offset` from the start, the position or the end; beyond the end is allowed."""
        self._check_open()
        if whence == os.SEEK_SET:
            position = offset
        elif whence == os.SEEK_CUR:
            position = self._position + offset
        elif whence == os.SEEK_END:
            position = self._size + offset
        else:
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        if position < 0:
            raise ValueError(f"negative seek position {position}")
        self._position = position
        return position

    def readinto(self, buffer: Any, /) -> int:
        """Fills the buffer, unless the source ends; returns the number of bytes."""
        self._check_open()
        count = self._source.read_into(self._position, buffer)
        self._position += count
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads `size` bytes, or all remaining ones."""
        self._check_open()
        data = self.read_at(self._position, self._size if size is None or size < 0 else size)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """Reads all remaining bytes."""
        return self.read()

    def read_at(self, offset: int, size: int) -> bytes:
        """Reads `size` bytes at `offset`, fewer at the end; the position stays."""
        self._check_open()
        data = bytearray(max(0, min(size, self._size - offset)))
        count = self._source.read_into(offset, data)
        return bytes(memoryview(data)[:count])

    def read_ranges(self, ranges: Iterable[tuple[int, int]], /) -> list[bytes]:
        """Reads each (offset, length), in the order of `ranges`; fewer bytes at the end.

        Ranges of a remote source are fetched concurrently, and nearby ones by one request. The
        position stays.
        """
        wanted = [(operator.index(offset), operator.index(length)) for offset, length in ranges]
        for offset, length in wanted:
            if offset < 0 or length < 0:
                raise ValueError(f"the range ({offset}, {length}) has a negative number")
        self._check_open()
        # In order, because a long list is read in groups.
        order = sorted(range(len(wanted)), key=wanted.__getitem__)
        found = self._source.read_ranges([wanted[index] for index in order])
        placed = dict(zip(order, found, strict=True))
        return [placed[index] for index in range(len(wanted))]

    async def read_at_async(self, offset: int, size: int) -> bytes:
        """As `read_at`, on another thread while other coroutines run."""
        from quarrier._later import in_thread

        return await in_thread(lambda: self.read_at(offset, size))

    async def read_ranges_async(self, ranges: Iterable[tuple[int, int]], /) -> list[bytes]:
        """As `read_ranges`, on another thread while other coroutines run."""
        from quarrier._later import in_thread

        wanted = list(ranges)
        return await in_thread(lambda: self.read_ranges(wanted))

    def _native(self) -> Source:
        """The native source, for the rest of the package."""
        self._check_open()
        return self._source

    def close(self) -> None:
        """Closes the file and frees its held bytes."""
        if not self.closed:
            super().close()
            # A file whose source could not be opened has none.
            self.__dict__.pop("_source", None)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling opens the source again at the same position.
        return _reopen, (*self._open_arguments, self._size, self._position)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if self._process != os.getpid():
            # A forked child has none of the threads that fetch.
            again = _reopen(*self._open_arguments, self._size, 0)
            self._source, self._process = again._source, again._process

    def __repr__(self) -> str:
        state = "closed" if self.closed else repr(self.name)
        return f"<quarrier.SourceFile {state}>"


def _reopen(source: str, settings: dict[str, Any], size: int, position: int) -> SourceFile:
    file = SourceFile(source, settings)
    if file.size != size:
        raise RemoteChangedError(f"{file.name}: has {file.size} bytes, had {size}", file.name)
    file.seek(position)
    return file


def open(
    source: str | os.PathLike[str],
    mode: str = "rb",
    *,
    cache: str | os.PathLike[str] | None = None,
    memory: int | str | None = None,
    requests: int | Literal["auto"] | None = None,
    raw: bool = False,
    headers: Mapping[str, str] | None = None,
) -> SourceFile:
    """Opens a source for reading: a file, device, image (split, or `.E01`), URL.

    Only the requested ranges of a remote source are fetched, with neighbouring bytes if they are
    cheap. Fetched bytes are held in memory, up to `memory` bytes (256 MiB by default; also a
    string, `"1G"`), a limit shared by all sources opened with the same settings. `cache` is a
    folder that keeps them across processes. At most `requests` (8) requests are in flight at once.
    Credentials for `s3://` and proxies come from the usual environment variables (`AWS_…`,
    `https_proxy` …), and credentials also from profiles in `~/.aws` and from `~/.netrc`. `headers`
    are sent with requests for `http://` and `https://` URLs, but not after a redirect to another
    server; a pickled file holds them.

    With `raw`, a file or object is opened as its own bytes: an image or compressed file is not
    unwrapped, other parts of a split image are not joined to it, and `*` and `#` in its name have
    no meaning.

    `mode` is always `"rb"`; it exists for code that calls `open(path, "rb")`, such as openers of
    other libraries. Raises FileNotFoundError, PermissionError and other kinds of OSError.
    """
    if mode not in ("rb", "br"):
        raise ValueError(f"mode is {mode!r}; a source is only read, as bytes: give 'rb'")
    return SourceFile(os.fspath(source), settings_of(cache, memory, requests, raw, headers))


def settings_of(
    cache: str | os.PathLike[str] | None = None,
    memory: int | str | None = None,
    requests: int | Literal["auto"] | None = None,
    raw: bool = False,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The options of `open`, for a `SourceFile`."""
    return {
        "cache": None if cache is None else os.fspath(cache),
        "memory": memory,
        "requests": requests,
        "raw": raw,
        "headers": None if headers is None else dict(headers),
    }
