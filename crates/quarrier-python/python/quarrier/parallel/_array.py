"""Arrays in shared memory: allocated, found by address, and passed on by handle."""

from __future__ import annotations

import copyreg
import math
import os
import weakref
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quarrier._errors import RegionGoneError
from quarrier._native import SharedRegion

Bytes = npt.NDArray[np.uint8]


class _Root(NamedTuple):
    """The array over all bytes of a region; every other array in it holds this one."""

    region: SharedRegion
    array: weakref.ref[Bytes]
    identity: tuple[int, int]


# The regions of this process that hold an array, by address. A region is removed with the last of
# its arrays.
_roots: dict[int, _Root] = {}


class Place(NamedTuple):
    """The place of an array in its region."""

    region: SharedRegion
    offset: int


class SharedArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array in memory that other processes can map.

    It is an ordinary writable array. It pickles to a handle of a few hundred bytes: unpickling the
    handle while this process is alive maps the same memory, and later writes are visible there.
    Slices are shared too; results computed from it, and `copy()`, are ordinary arrays. The memory
    is freed with the last array in any process; there is no name to unlink.
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        place = place_of(self)
        if place is None:
            return self.view(np.ndarray).__reduce_ex__(protocol)
        return attach, (place.region, place.offset, self.shape, self.strides, self.dtype)

    def copy(self, order: Any = "C") -> Any:
        """An ordinary array with the same values."""
        return self.view(np.ndarray).copy(order)

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False, /
    ) -> Any:
        if array is self or type(self) is not SharedArray:
            return array
        plain = np.asarray(array)
        return plain[()] if return_scalar or plain.ndim == 0 else plain

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        # Indexing by numbers or a mask has made a copy.
        if type(found) is SharedArray and not np.may_share_memory(found, self):
            return found.view(np.ndarray)
        return found


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> SharedArray:
    """A new array of zeros in shared memory.

    It costs a mapping and a file descriptor; pages are allocated at the first write. Raises
    `MemoryError` if the machine or the control group cannot hold it.
    """
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"dtype {kind} holds Python objects, which processes cannot share")
    sizes = sizes_of(shape)
    nbytes = math.prod(sizes) * kind.itemsize
    if nbytes == 0:
        return np.zeros(sizes, kind).view(SharedArray)
    bytes_of = root_of(SharedRegion(nbytes))
    return np.ndarray(sizes, kind, bytes_of).view(SharedArray)


def sizes_of(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """The size of each axis of a shape in any form that numpy accepts."""
    sizes = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
    if any(size < 0 for size in sizes):
        raise ValueError(f"shape {sizes} has a negative size")
    return sizes


def root_of(region: SharedRegion) -> Bytes:
    """The array over all of a region; always the same one while it lives."""
    array = np.frombuffer(memoryview(region), np.uint8)
    address = address_of(array)
    known = _roots.get(address)
    living = known.array() if known is not None else None
    if living is not None:
        return living

    def forget(_: object) -> None:
        _roots.pop(address, None)

    status = os.fstat(region.fileno())
    identity = (status.st_dev, status.st_ino)
    _roots[address] = _Root(region, weakref.ref(array, forget), identity)
    return array


def place_of(array: npt.NDArray[Any]) -> Place | None:
    """Returns the region that holds all of an array, however the array was derived from it."""
    first, last = span_of(array)
    # The copy is made in one step. A list is not, and a garbage collection meanwhile removes roots.
    for address, root in _roots.copy().items():
        if address <= first and last <= address + root.region.nbytes and root.array() is not None:
            return Place(root.region, address_of(array) - address)
    return None


def address_of(array: npt.NDArray[Any]) -> int:
    """The address of the first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def span_of(array: npt.NDArray[Any]) -> tuple[int, int]:
    """The addresses of the lowest byte and of the end after the highest."""
    first = last = address_of(array)
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            first += (size - 1) * stride
        else:
            last += (size - 1) * stride
    return first, last + array.itemsize


def attach(
    region: SharedRegion,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
) -> SharedArray:
    """Returns an array of this layout in a region. Unpickling calls it."""
    return np.ndarray(shape, dtype, root_of(region), offset, strides).view(SharedArray)


def open_region(pid: int, fd: int, identity: tuple[int, int], nbytes: int) -> SharedRegion:
    """Maps the region of another process, or returns the one that this process has already."""
    for root in _roots.copy().values():
        if root.identity == identity and root.array() is not None:
            return root.region
    gone = f"the process {pid}, which held this shared array, "
    try:
        opened = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError) as error:
        raise RegionGoneError(gone + "has ended or has dropped it", pid) from error
    try:
        status = os.fstat(opened)
        if (status.st_dev, status.st_ino) != identity or status.st_size < nbytes:
            raise RegionGoneError(gone + "has dropped it", pid)
        return SharedRegion.from_fd(opened, nbytes)
    finally:
        os.close(opened)


# Regions that were pickled in a worker and must stay until another process has unpickled them.
_handed: list[SharedRegion] | None = None


def keep_handed() -> None:
    """Starts a new list of regions to keep, and drops the earlier ones."""
    global _handed
    _handed = []


def _reduce_region(region: SharedRegion) -> tuple[Any, ...]:
    if _handed is not None:
        _handed.append(region)
    status = os.fstat(region.fileno())
    identity = (status.st_dev, status.st_ino)
    return open_region, (os.getpid(), region.fileno(), identity, region.nbytes)


copyreg.pickle(SharedRegion, _reduce_region)
