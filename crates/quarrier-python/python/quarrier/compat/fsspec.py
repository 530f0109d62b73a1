"""Sparse files as a cache of fsspec: `fsspec.open(url, cache_type="quarrier")`.

Works with every file system of fsspec that reads ranges (http, s3fs, gcsfs, adlfs …). `import
quarrier` registers it. Unlike the caches that come with fsspec, it keeps everything it has fetched,
fetches bytes again only if that is cheaper than another request, and chooses its lookahead by the
cost of requests. That cost is learned, or set by `cache_options={"cost":
quarrier.CostModel(latency=0.05)}`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fsspec.caching import BaseCache, register_cache
from fsspec.registry import register_implementation

from quarrier._native import CostModel, ReadAhead, SparseFile

# The time of a smaller request is all latency.
_LATENCY_BYTES_MAX = 64 << 10


class SparseCache(BaseCache):  # type: ignore[misc]
    """A cache of one open file. `blocksize`, the unit of other caches, is ignored."""

    name = "quarrier"

    def __init__(
        self,
        blocksize: int,
        fetcher: Callable[[int, int], bytes],
        size: int,
        *,
        cost: CostModel | None = None,
        bytes_max: int | None = None,
    ) -> None:
        super().__init__(blocksize, fetcher, size)
        self._file = SparseFile(length=size)
        self._ahead = ReadAhead(cost)
        self._bytes_max = bytes_max
        self._latency_seconds = 0.0

    def _fetch(self, start: int | None, end: int | None) -> bytes:
        start = 0 if start is None else start
        end = self.size if end is None else min(end, self.size)
        if start >= end:
            return b""
        requests = self._ahead.plan(self._file, start, end - start)
        if not requests:
            self.hit_count += 1
        for offset, length in requests:
            self._file.write(offset, self._request(offset, length))
        data: bytes = self._file.read(start, end - start)
        if self._bytes_max is not None:
            self._file.evict(self._bytes_max)
        return data

    def _request(self, offset: int, length: int) -> bytes:
        self.miss_count += 1
        self.total_requested_bytes += length
        begin = time.perf_counter()
        data: bytes = self.fetcher(offset, offset + length)
        seconds = time.perf_counter() - begin
        if len(data) != length:
            raise OSError(f"got {len(data)} of {length} bytes at offset {offset}")
        if length <= _LATENCY_BYTES_MAX:
            self._latency_seconds = seconds
        self._ahead.observe(length, min(self._latency_seconds, seconds), seconds)
        return data

    def _log_stats(self) -> str:
        return f" , cache: {self._file.counters()}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Held bytes are not pickled: the process that unpickles the file fetches the bytes it
        # needs.
        return type(self), (self.blocksize, self.fetcher, self.size)


register_cache(SparseCache, clobber=True)
# Imported at first use.
register_implementation("quarrier", "quarrier.compat.filesystem.SourceFileSystem", clobber=True)
