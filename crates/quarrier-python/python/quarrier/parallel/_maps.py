"""Finds the arrays in mappings that other processes share or can make too."""

from __future__ import annotations

import mmap
import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quarrier.parallel._array import span_of


class Mapping(NamedTuple):
    """A line of /proc/self/maps."""

    first: int
    last: int
    access: str
    offset: int
    device: str
    inode: int
    path: str


class MappedFile(NamedTuple):
    """An open file, and the offset of the array's lowest byte in it."""

    descriptor: int
    offset: int

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.descriptor)


class FileSpan(NamedTuple):
    """The range of a file that an array maps."""

    file: tuple[str, int]
    first: int
    last: int


def mmap_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The `mmap` that an array is a part of, as arrays of `np.memmap` are."""
    below: Any = array
    while isinstance(below, (np.ndarray, memoryview)):
        below = below.base if isinstance(below, np.ndarray) else below.obj
    return below if isinstance(below, mmap.mmap) else None


def mapping_of(array: npt.NDArray[Any]) -> Mapping | None:
    """The mapping that holds all of an array, if a single one does. Reads /proc/self/maps."""
    first, last = span_of(array)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            span, access, offset, device, inode, *path = line.rstrip("\n").split(None, 5)
            begin, end = (int(number, 16) for number in span.split("-"))
            if begin <= first and last <= end:
                place = (int(offset, 16), device, int(inode))
                return Mapping(begin, end, access, *place, path[0] if path else "")
    return None


def file_span(array: npt.NDArray[Any]) -> FileSpan | None:
    """The range of a file that an array maps; None if it maps none."""
    mapping = mapping_of(array)
    if mapping is None or not mapping.path.startswith("/"):
        return None
    first, last = (mapping.offset + address - mapping.first for address in span_of(array))
    return FileSpan((mapping.device, mapping.inode), first, last)


def mapped_file(array: npt.NDArray[Any]) -> MappedFile | None:
    """The file that an array is a shared mapping of; None if there is none or it was removed.

    The descriptor belongs to the caller.
    """
    mapping = mapping_of(array)
    if mapping is None or not mapping.access.endswith("s") or not mapping.path.startswith("/"):
        return None
    try:
        wanted = os.O_RDWR if array.flags.writeable else os.O_RDONLY
        descriptor = os.open(mapping.path, wanted | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    status = os.fstat(descriptor)
    offset = mapping.offset + span_of(array)[0] - mapping.first
    if status.st_ino != mapping.inode or status.st_size < offset + array.nbytes:
        os.close(descriptor)
        return None
    return MappedFile(descriptor, offset)
