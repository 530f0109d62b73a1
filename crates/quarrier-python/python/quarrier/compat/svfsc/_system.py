"""svfsc.cSVFS: many cSVF, by ID."""

from __future__ import annotations

import datetime
import threading

from quarrier.compat.svfsc._file import cSVF
from quarrier.compat.svfsc._needs import Ranges


class cSVFS:  # noqa: N801 (svfsc's name)
    """A Sparse Virtual File System: Sparse Virtual Files, by ID.

    An unknown ID is an IndexError. The arguments are passed to every file.
    """

    def __init__(self, overwrite_on_exit: bool = False, compare_for_diff: bool = True) -> None:
        self._overwrite_on_exit = bool(overwrite_on_exit)
        self._compare_for_diff = bool(compare_for_diff)
        self._files: dict[str, cSVF] = {}
        self._lock = threading.Lock()

    def _at(self, id: str, method: str) -> cSVF:
        if not isinstance(id, str):
            raise TypeError(f"argument 1 must be str, not {type(id).__name__}")
        try:
            return self._files[id]
        except KeyError:
            name = f"cp_SparseVirtualFileSystem_{method}"
            raise IndexError(f'{name}: No SVF ID "{id}"') from None

    # The files.

    def insert(self, id: str, mod_time: float) -> None:
        """Makes a file; RuntimeError if the ID is taken."""
        svf = cSVF(id, mod_time, self._overwrite_on_exit, self._compare_for_diff)
        with self._lock:
            if id in self._files:
                raise RuntimeError(
                    "cp_SparseVirtualFileSystem_insert: Can not insert a new Sparse Virtual File "
                    f'ID = "{id}". ERROR: SparseVirtualFileSystem::insert(): '
                    f'can not insert "{id}"'
                )
            self._files[id] = svf

    def remove(self, id: str) -> None:
        """Removes the file."""
        with self._lock:
            if id not in self._files:
                raise IndexError(
                    "cp_SparseVirtualFileSystem_remove: Can not remove a Sparse Virtual File. "
                    f'ERROR: SparseVirtualFileSystem::remove(): id "{id}" not found.'
                )
            del self._files[id]

    def has(self, id: str) -> bool:
        """Whether a file has this ID."""
        if not isinstance(id, str):
            raise TypeError(f"argument 1 must be str, not {type(id).__name__}")
        return id in self._files

    def keys(self) -> list[str]:
        """All IDs."""
        return list(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def config(self) -> dict[str, bool]:
        """The constructor's arguments."""
        return {
            "compare_for_diff": self._compare_for_diff,
            "overwrite_on_exit": self._overwrite_on_exit,
        }

    def total_bytes(self) -> int:
        """The number of bytes that all files hold."""
        return sum(svf.num_bytes() for svf in self._all())

    def total_blocks(self) -> int:
        """The number of blocks that all files hold."""
        return sum(svf.num_blocks() for svf in self._all())

    def total_size_of(self) -> int:
        """The memory that all files use, in bytes."""
        return sum(svf.size_of() for svf in self._all())

    def lru_punt_all(self, cache_size_upper_bound: int) -> int:
        """Calls lru_punt of every file."""
        return sum(svf.lru_punt(cache_size_upper_bound) for svf in self._all())

    def _all(self) -> list[cSVF]:
        with self._lock:
            return list(self._files.values())

    # One file, as the methods of cSVF.

    def has_data(self, id: str, file_position: int, length: int) -> bool:
        """See cSVF.has_data."""
        return self._at(id, "svf_has_data").has_data(file_position, length)

    def write(self, id: str, file_position: int, data: bytes) -> None:
        """See cSVF.write."""
        try:
            self._at(id, "svf_write").write(file_position, data)
        except OSError as error:
            raise OSError(
                f'cp_SparseVirtualFileSystem_svf_write: Can not write to a SVF id = "{id}" as the '
                f"given data is different from what is there. ERROR: {_cause(error)}"
            ) from None

    def read(self, id: str, file_position: int, length: int) -> bytes:
        """See cSVF.read."""
        try:
            return self._at(id, "svf_read").read(file_position, length)
        except OSError as error:
            raise OSError(
                f'cp_SparseVirtualFileSystem_svf_read: Can not read from a SVF id= "{id}". '
                f"ERROR: {_cause(error)}"
            ) from None

    def erase(self, id: str, file_position: int) -> None:
        """See cSVF.erase."""
        try:
            self._at(id, "svf_erase").erase(file_position)
        except OSError as error:
            raise OSError(
                "cp_SparseVirtualFileSystem_svf_erase: Can not erase block from a SVF "
                f'id= "{id}". ERROR: {_cause(error)}'
            ) from None

    def need(self, id: str, file_position: int, length: int, greedy_length: int = 0) -> Ranges:
        """See cSVF.need."""
        return self._at(id, "svf_need").need(file_position, length, greedy_length)

    def need_many(self, id: str, seek_reads: Ranges, greedy_length: int = 0) -> Ranges:
        """See cSVF.need_many."""
        return self._at(id, "svf_need_many").need_many(seek_reads, greedy_length)

    def lru_punt(self, id: str, cache_size_upper_bound: int) -> int:
        """See cSVF.lru_punt."""
        return self._at(id, "svf_lru_punt").lru_punt(cache_size_upper_bound)

    def blocks(self, id: str) -> tuple[tuple[int, int], ...]:
        """See cSVF.blocks."""
        return self._at(id, "svf_blocks").blocks()

    def block_touches(self, id: str) -> dict[int, int]:
        """See cSVF.block_touches."""
        return self._at(id, "svf_block_touches").block_touches()

    def num_blocks(self, id: str) -> int:
        """See cSVF.num_blocks."""
        return self._at(id, "svf_num_blocks").num_blocks()

    def num_bytes(self, id: str) -> int:
        """See cSVF.num_bytes."""
        return self._at(id, "svf_num_bytes").num_bytes()

    def size_of(self, id: str) -> int:
        """See cSVF.size_of."""
        return self._at(id, "svf_size_of").size_of()

    def file_mod_time(self, id: str) -> float:
        """See cSVF.file_mod_time."""
        return self._at(id, "file_mod_time").file_mod_time()

    def file_mod_time_matches(self, id: str, file_mod_time: float) -> bool:
        """See cSVF.file_mod_time_matches."""
        return self._at(id, "file_mod_time_matches").file_mod_time_matches(file_mod_time)

    def count_read(self, id: str) -> int:
        """See cSVF.count_read."""
        return self._at(id, "svf_count_read").count_read()

    def count_write(self, id: str) -> int:
        """See cSVF.count_write."""
        return self._at(id, "svf_count_write").count_write()

    def bytes_read(self, id: str) -> int:
        """See cSVF.bytes_read."""
        return self._at(id, "svf_bytes_read").bytes_read()

    def bytes_write(self, id: str) -> int:
        """See cSVF.bytes_write."""
        return self._at(id, "svf_bytes_write").bytes_write()

    def time_read(self, id: str) -> datetime.datetime | None:
        """See cSVF.time_read."""
        return self._at(id, "svf_time_read").time_read()

    def time_write(self, id: str) -> datetime.datetime | None:
        """See cSVF.time_write."""
        return self._at(id, "svf_time_write").time_write()


def _cause(error: OSError) -> str:
    """The message of svfsc's C++ code, without the prefix that its Python layer adds."""
    return str(error).rpartition("ERROR: ")[2]
