"""A store of zarr over quarrier's sources: `zarr.open_group(Store("https://example.org/a.zarr"))`.

Only this module imports zarr.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal

from zarr.abc import store as zarr_store
from zarr.core.buffer import Buffer, BufferPrototype

from quarrier._held import Span
from quarrier._later import in_thread
from quarrier._objects import Objects

# The errors of keys without a value.
_MISSING = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Store(zarr_store.Store):
    """A read-only store of the objects below a URL or a folder.

    It fetches each value by one request, and many ranges of one value by few concurrent ones. The
    options are those of `quarrier.open`. Values behind a URL cannot be listed: open a group there
    by consolidated metadata, or its arrays by their paths.
    """

    supports_writes: bool = False
    supports_deletes: bool = False

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        memory: int | str | None = None,
        requests: int | Literal["auto"] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(read_only=True)
        self._objects = Objects(
            root, cache=cache, memory=memory, requests=requests, headers=headers
        )

    @property
    def supports_listing(self) -> bool:
        """Whether the root is a folder."""
        return not self._objects.is_remote

    def with_read_only(self, read_only: bool = False) -> Store:
        """Another store of the same values; only `True` is possible."""
        if not read_only:
            raise ValueError(f"{self} cannot be written to: quarrier only reads")
        settings = self._objects.settings
        return Store(
            self._objects.root,
            cache=settings["cache"],
            memory=settings["memory"],
            requests=settings["requests"],
            headers=settings["headers"],
        )

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: zarr_store.ByteRequest | None = None,
    ) -> Buffer | None:
        """The bytes of a value, or a range of them; None if it does not exist."""
        (found,) = await self._read(key, [byte_range], prototype)
        return found

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, zarr_store.ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Many values or ranges; those of one value are fetched together."""
        wanted = list(key_ranges)
        places: dict[str, list[int]] = {}
        for place, (key, _) in enumerate(wanted):
            places.setdefault(key, []).append(place)
        reads = [
            self._read(key, [wanted[place][1] for place in own], prototype)
            for key, own in places.items()
        ]
        found: list[Buffer | None] = [None] * len(wanted)
        for own, values in zip(places.values(), await asyncio.gather(*reads), strict=True):
            for place, value in zip(own, values, strict=True):
                found[place] = value
        return found

    async def _read(
        self,
        key: str,
        ranges: list[zarr_store.ByteRequest | None],
        prototype: BufferPrototype,
    ) -> list[Buffer | None]:
        spans = [_span_of(each) for each in ranges]
        try:
            found = await in_thread(lambda: self._objects.read(key, spans))
        except _MISSING:
            return [None] * len(ranges)
        return [prototype.buffer.from_bytes(data) for data in found]

    async def exists(self, key: str) -> bool:
        """Whether there is a value."""
        try:
            await self.getsize(key)
        except _MISSING:
            return False
        return True

    async def getsize(self, key: str) -> int:
        """The size of a value in bytes."""
        return await in_thread(lambda: self._objects.open(key).size)

    async def set(self, key: str, value: Buffer) -> None:
        """Raises ValueError."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Raises ValueError."""
        self._check_writable()

    def list(self) -> AsyncIterator[str]:
        """All keys, if the root is a folder."""
        return self.list_prefix("")

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """All keys below a prefix, if the root is a folder."""
        for key in await in_thread(lambda: [*self._objects.below(prefix)]):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """The next parts of the keys below a prefix, if the root is a folder."""
        for name in await in_thread(lambda: self._objects.children(prefix)):
            yield name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self._objects == other._objects

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"quarrier.compat.zarr.Store({self._objects.shown!r})"


def _span_of(wanted: zarr_store.ByteRequest | None) -> Span:
    match wanted:
        case None:
            return None, None
        case zarr_store.RangeByteRequest(start, end):
            return start, end
        case zarr_store.OffsetByteRequest(offset):
            return offset, None
        case zarr_store.SuffixByteRequest(suffix):
            # A slice from -0 on would be the whole value.
            return (-suffix, None) if suffix > 0 else (0, 0)
        case _:
            raise ValueError(f"Unexpected byte_range, got {wanted}.")
