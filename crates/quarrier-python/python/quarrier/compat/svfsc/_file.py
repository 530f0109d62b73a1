"""svfsc.cSVF over quarrier.SparseFile."""

from __future__ import annotations

import bisect
import datetime
import threading
from typing import Any

from quarrier._errors import ConflictError, NotHeldError
from quarrier._native import SparseFile
from quarrier.compat.svfsc._needs import Ranges, checked, merged

_READ = "private_SparseVirtualFile_svf_read_as_py_bytes()#462: Can not read from a SVF. ERROR: "
_WRITE = (
    "cp_SparseVirtualFile_write: Can not write to a SVF as the given data is different "
    "from what is there. ERROR: "
)
_ERASE = "cp_SparseVirtualFile_erase(): Can not erase from a SVF. ERROR: "
_PICKLE_VERSION = 1

# Touches are recorded by place. Once there are this many more places than blocks, they are merged
# by block, and the older ones dropped.
_TOUCHES_SPARE = 4096


class cSVF:  # noqa: N801 (svfsc's name)
    """A Sparse Virtual File: fragments of a real file, by offset.

    `id` names it, `mod_time` is the time of its last modification. `overwrite_on_exit` wipes memory
    before it is freed; `compare_for_diff` refuses writes that differ from the held bytes.
    """

    def __init__(
        self,
        id: str,
        mod_time: float = 0.0,
        overwrite_on_exit: bool = False,
        compare_for_diff: bool = True,
    ) -> None:
        if not isinstance(id, str):
            raise TypeError(f"argument 1 must be str, not {type(id).__name__}")
        self._file = SparseFile(
            id,
            mod_time,
            on_conflict="raise" if compare_for_diff else "replace",
            wipe=bool(overwrite_on_exit),
        )
        self._mod_time = float(mod_time)
        self._config = {
            "compare_for_diff": bool(compare_for_diff),
            "overwrite_on_exit": bool(overwrite_on_exit),
        }
        self._lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._count_read = self._count_write = 0
        self._bytes_read = self._bytes_write = 0
        self._time_read: datetime.datetime | None = None
        self._time_write: datetime.datetime | None = None
        self._blocks_erased = self._bytes_erased = 0
        self._blocks_punted = self._bytes_punted = 0
        self._touch = 0
        self._touches: dict[int, int] = {}

    # svfsc's promises about blocks, computed from the bytes held.

    def _held_from(self, offset: int) -> int:
        """The number of bytes held from here on without a gap."""
        if not self._file.has(offset, 1):
            return 0
        known, step = 1, 1
        while offset + known + step < 2**64 and self._file.has(offset, known + step):
            known += step
            step *= 2
        while step:
            if offset + known + step < 2**64 and self._file.has(offset, known + step):
                known += step
            step //= 2
        return known

    def _is_in_block(self, offset: int) -> bool:
        """Whether a block contains or ends at this place."""
        return self._file.has(offset, 1) or (offset > 0 and self._file.has(offset - 1, 1))

    def _block_at(self, offset: int) -> int:
        """The length of the block that begins here, or 0."""
        if offset > 0 and self._file.has(offset - 1, 1):
            return 0
        return self._held_from(offset)

    def _touch_at(self, offset: int) -> None:
        self._touches[offset] = self._touch
        self._touch += 1
        if len(self._touches) > _TOUCHES_SPARE:
            spare = len(self._touches) - 4 * self._file.num_blocks()
            if spare > _TOUCHES_SPARE:
                self._touches = {start: touch for touch, start in self._by_touch().items()}

    def _by_touch(self) -> dict[int, int]:
        """The latest touch of each block and where the block begins, oldest first."""
        blocks = self._file.blocks()
        starts = [offset for offset, _ in blocks]
        latest: dict[int, int] = {}
        for offset, touch in self._touches.items():
            index = bisect.bisect_right(starts, offset) - 1
            if index >= 0 and offset <= sum(blocks[index]):
                start = starts[index]
                latest[start] = max(touch, latest.get(start, -1))
        return dict(sorted((touch, start) for start, touch in latest.items()))

    # Reading and writing.

    def has_data(self, file_position: int, length: int) -> bool:
        """Whether the file holds all of this range."""
        if length == 0:
            return self._is_in_block(file_position)
        return self._file.has(file_position, length)

    def write(self, file_position: int, data: bytes) -> None:
        """Writes bytes; OSError if they differ from held ones and `compare_for_diff` is set."""
        if not isinstance(data, bytes):
            raise TypeError(f"argument 2 must be bytes, not {type(data).__name__}")
        with self._lock:
            start = 0
            if not self._config["compare_for_diff"]:
                # svfsc keeps the old bytes of the block in which a write begins.
                start = min(self._held_from(file_position), len(data))
            try:
                self._file.write(file_position + start, data[start:] if start else data)
            except ConflictError as error:
                raise OSError(_WRITE + _difference(error)) from None
            if not data:
                return
            self._touch_at(file_position)
            self._count_write += 1
            self._bytes_write += len(data)
            self._time_write = _now()

    def read(self, file_position: int, length: int) -> bytes:
        """The bytes of the range; OSError if any is missing."""
        with self._lock:
            try:
                data = self._file.read(file_position, length)
            except NotHeldError:
                data = None
            if data is None or (length == 0 and not self._is_in_block(file_position)):
                raise OSError(_READ + self._why_not(file_position, length))
            self._touch_at(file_position)
            self._count_read += 1
            self._bytes_read += length
            self._time_read = _now()
            return data

    def _why_not(self, offset: int, length: int) -> str:
        blocks = self._file.blocks()
        if not blocks:
            return "SparseVirtualFile::read(): Sparse virtual file is empty."
        index = bisect.bisect_right([start for start, _ in blocks], offset) - 1
        if index < 0:
            return (
                f"SparseVirtualFile::read(): Requested file position {offset} "
                f"precedes first block at {blocks[0][0]}"
            )
        start, size = blocks[index]
        return (
            f"SparseVirtualFile::read(): Requested position {offset} length {length}"
            f" (end {offset + length}) overruns block that starts at {start} has size {size}"
            f" (end {start + size}). Offset into block is {offset - start}"
            f" overrun is {offset - start + length - size} bytes"
        )

    def erase(self, file_position: int) -> None:
        """Erases the block that begins here; OSError if none does."""
        with self._lock:
            self._erase(file_position)

    def _erase(self, offset: int) -> int:
        length = self._block_at(offset)
        if not length:
            raise OSError(
                f"{_ERASE}SparseVirtualFile::erase(): Non-existent file position {offset} "
                "at start of block."
            )
        self._file.erase(offset, length)
        self._blocks_erased += 1
        self._bytes_erased += length
        return length

    def clear(self) -> None:
        """Resets everything but the ID and the constructor's arguments."""
        with self._lock:
            self._file.clear()
            self._reset()

    def need(self, file_position: int, length: int, greedy_length: int = 0) -> Ranges:
        """The missing ranges of the range, as [(file_position, length), ...]."""
        with self._lock:
            # This refuses an offset or length out of range before anything is computed.
            self._file.has(file_position, greedy_length)
            if not self._file.num_bytes():
                return [(file_position, max(length, greedy_length))]
            ranges = self._need(file_position, length)
            if greedy_length > length and ranges:
                return merged(ranges, greedy_length)
            return ranges

    def _need(self, offset: int, length: int) -> Ranges:
        if length:
            return self._file.need(offset, length)
        first = self._file.blocks()[0][0]
        return [(offset, 0)] if offset < first else []

    def need_many(self, seek_reads: Ranges, greedy_length: int = 0) -> Ranges:
        """The missing ranges of many ranges, as [(file_position, length), ...]."""
        wanted = sorted(checked(seek_reads))
        with self._lock:
            if self._file.num_bytes():
                wanted = [need for seek_read in wanted for need in self._need(*seek_read)]
            return merged(wanted, greedy_length)

    # Contents.

    def id(self) -> str:
        """The ID."""
        return self._file.id

    def blocks(self) -> tuple[tuple[int, int], ...]:
        """The blocks, as ((file_position, length), ...)."""
        return tuple(self._file.blocks())

    def num_blocks(self) -> int:
        """The number of blocks."""
        return self._file.num_blocks()

    def num_bytes(self) -> int:
        """The number of held bytes."""
        return self._file.num_bytes()

    def size_of(self) -> int:
        """The memory used, in bytes."""
        return self._file.memory_bytes()

    def last_file_position(self) -> int:
        """The position after the last byte."""
        blocks = self._file.blocks()
        return sum(blocks[-1]) if blocks else 0

    def block_touch(self) -> int:
        """The value of the next touch."""
        return self._touch

    def block_touches(self) -> dict[int, int]:
        """The latest touch of each block and where the block begins, oldest first."""
        with self._lock:
            return self._by_touch()

    def lru_punt(self, cache_size_upper_bound: int) -> int:
        """Erases the least recently used blocks, except the last, until fewer bytes are held."""
        with self._lock:
            removed = 0
            for start in self._by_touch().values():
                if self._file.num_blocks() <= 1 or self._file.num_bytes() < cache_size_upper_bound:
                    break
                removed += self._erase(start)
                self._blocks_punted += 1
            self._bytes_punted += removed
            return removed

    # Statistics.

    def file_mod_time(self) -> float:
        """The modification time given to the constructor."""
        return self._mod_time

    def file_mod_time_matches(self, file_mod_time: float) -> bool:
        """Whether this is the modification time given to the constructor."""
        return self._mod_time == file_mod_time

    def config(self) -> dict[str, bool]:
        """The constructor's arguments."""
        return dict(self._config)

    def count_read(self) -> int:
        """The number of reads."""
        return self._count_read

    def count_write(self) -> int:
        """The number of writes."""
        return self._count_write

    def bytes_read(self) -> int:
        """The number of bytes read."""
        return self._bytes_read

    def bytes_write(self) -> int:
        """The number of bytes written."""
        return self._bytes_write

    def blocks_erased(self) -> int:
        """The number of erased blocks, including punted ones."""
        return self._blocks_erased

    def bytes_erased(self) -> int:
        """The number of erased bytes, including punted ones."""
        return self._bytes_erased

    def blocks_punted(self) -> int:
        """The number of punted blocks."""
        return self._blocks_punted

    def bytes_punted(self) -> int:
        """The number of punted bytes."""
        return self._bytes_punted

    def time_read(self) -> datetime.datetime | None:
        """The time of the last read, in UTC, or None."""
        return self._time_read

    def time_write(self) -> datetime.datetime | None:
        """The time of the last write, in UTC, or None."""
        return self._time_write

    # Pickling, in svfsc's form.

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            blocks = self._file.blocks()
            data = tuple((offset, self._file.read(offset, length)) for offset, length in blocks)
        return {
            "id": self.id(),
            "file_mod_time": self._mod_time,
            "blocks": data,
            "pickle_version": _PICKLE_VERSION,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        if type(state) is not dict:
            raise ValueError("__setstate__: Pickled object is not a dict.")
        if state["pickle_version"] != _PICKLE_VERSION:
            raise ValueError(
                f"__setstate__: Pickle version mismatch. Got version {state['pickle_version']} "
                f"but expected version {_PICKLE_VERSION}."
            )
        if not isinstance(state["file_mod_time"], float):
            raise TypeError('__setstate__: "file_mod_time" is not a double.')
        if not isinstance(state["blocks"], tuple):
            raise TypeError('__setstate__: "blocks" is not a tuple.')
        cSVF.__init__(self, state["id"], state["file_mod_time"])
        for offset, data in state["blocks"]:
            self.write(offset, data)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def _difference(error: ConflictError) -> str:
    given, held = (_as_char(value) for value in (error.given, error.held))
    message = (
        f"SparseVirtualFile::write(): Difference at position {error.offset}"
        f" '{_shown(error.given)}' != '{_shown(error.held)}' Ordinal {given} != {held}"
    )
    # A zero byte ends a C++ message.
    return message.partition("\0")[0]


def _shown(value: int) -> str:
    """A byte of a message, which Python decodes as UTF-8."""
    return bytes([value]).decode("utf-8", "replace")


def _as_char(value: int) -> int:
    """The value of a byte in C++, where char is signed."""
    return value - 256 if value > 127 else value
