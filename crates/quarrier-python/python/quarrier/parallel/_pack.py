"""Packs jobs as bytes. Captured values are copied once, shared arrays not at all.

A packed job is a pickle (by cloudpickle, so that closures and lambdas work) and descriptors:

- regions, and arrays in a region or in a mapped file, are passed as descriptors;
- the bytes of all other arrays are in one new region. Workers map it privately, so that each may
  write to its arrays, as it could after a fork.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import numpy.typing as npt

from quarrier._errors import BufferLayoutError
from quarrier._native import SharedRegion
from quarrier.parallel._array import address_of, place_of, root_of, span_of
from quarrier.parallel._maps import mapped_file
from quarrier.parallel._outs import Outs
from quarrier.parallel._wire import DESCRIPTORS_MAX

_APART_BYTES_MIN = 16 << 10
_LINE = 64
_PAGE = mmap.ALLOCATIONGRANULARITY


class Packed(NamedTuple):
    """A packed job. Its `descriptors` stay open until `close`, after all workers have it."""

    pickled: bytes | None
    apart: list[tuple[int, int]]
    descriptors: tuple[int, ...]
    held: tuple[SharedRegion, ...]
    opened: tuple[int, ...]

    def close(self) -> None:
        """Closes the descriptors that were opened for it."""
        for descriptor in self.opened:
            os.close(descriptor)


def pack(job: Any) -> Packed:
    """Packs a job for workers that were not forked with it."""
    target = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    packer = _Packer(target, buffers)
    try:
        packer.dump(job)
    except BaseException:
        for descriptor in packer.opened:
            os.close(descriptor)
        raise
    pickled: bytes | None = target.getvalue()
    parts = [buffer.raw() for buffer in buffers]
    if target.tell() >= _APART_BYTES_MIN:
        parts.append(memoryview(target.getbuffer()))
        pickled = None
    region, apart = _lay_apart(parts)
    held = (*packer.regions.values(), *([region] if region else []))
    descriptors = [*packer.descriptors, *([region.fileno()] if region else [])]
    return Packed(pickled, apart, tuple(descriptors), held, tuple(packer.opened))


def unpack(pickled: bytes | None, apart: list[tuple[int, int]], descriptors: list[int]) -> Any:
    """Restores the job that `pack` packed, and closes the descriptors."""
    try:
        parts: list[memoryview] = []
        if apart:
            end = apart[-1][0] + apart[-1][1]
            memory = memoryview(_map_privately(descriptors[-1], end))
            parts = [memory[offset : offset + length] for offset, length in apart]
        source = parts.pop() if pickled is None else pickled
        global _arriving
        _arriving = _Arriving(descriptors, {})
        return pickle.loads(source, buffers=parts)
    finally:
        _arriving = None
        for descriptor in descriptors:
            os.close(descriptor)


def _lay_apart(parts: list[memoryview]) -> tuple[SharedRegion | None, list[tuple[int, int]]]:
    if not parts:
        return None, []
    places = []
    end = 0
    for part in parts:
        begin = -(-end // _LINE) * _LINE
        places.append((begin, part.nbytes))
        end = begin + part.nbytes
    region = SharedRegion(max(end, 1))
    with memoryview(region) as target:
        for (begin, length), part in zip(places, parts, strict=True):
            target[begin : begin + length] = part
    return region, places


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, target: io.BytesIO, buffers: list[pickle.PickleBuffer]) -> None:
        self.descriptors: list[int] = []
        self.regions: dict[int, SharedRegion] = {}
        self.opened: list[int] = []
        self._buffers = buffers
        super().__init__(target, protocol=5, buffer_callback=self._lay_apart)

    def _lay_apart(self, buffer: pickle.PickleBuffer) -> bool:
        if buffer.raw().nbytes < _APART_BYTES_MIN:
            return True
        self._buffers.append(buffer)
        return False

    def reducer_override(self, value: Any) -> Any:
        # Not persistent_id(), which is called for every name and number too.
        kind = type(value)
        if value is _array_of or value is _region_of or value is _outs_of:
            return NotImplemented
        if kind is Outs:
            handles = [self._out(array) for array in value.arrays]
            return _outs_of, (handles, value.several, value.as_tuple)
        if kind is SharedRegion and len(self.descriptors) < DESCRIPTORS_MAX:
            known = self.regions.setdefault(value.fileno(), value)
            if known is value and value.fileno() not in self.descriptors:
                self.descriptors.append(value.fileno())
            return _region_of, (self.descriptors.index(value.fileno()), value.nbytes)
        if kind in (np.ndarray, np.memmap) and not value.dtype.hasobject:
            place = self._array(value)
            if place is not None:
                return _array_of, place
        return super().reducer_override(value)

    def _array(self, array: npt.NDArray[Any]) -> Any:
        handle = self._handle(array, _APART_BYTES_MIN)
        if handle is not None or array.nbytes < _APART_BYTES_MIN:
            return handle
        if array.flags.forc or len(self.descriptors) >= DESCRIPTORS_MAX:
            return None
        return self._copy(array)

    def _out(self, array: npt.NDArray[Any]) -> Any:
        """The handle of an array that workers fill."""
        if array.size == 0:
            return "empty", array
        handle = self._handle(array, 0)
        if handle is None:
            raise BufferLayoutError(
                "workers cannot reach out: its file was removed, or too many files are mapped"
            )
        return handle

    def _handle(self, array: npt.NDArray[Any], mapped_bytes_min: int) -> Any:
        """A handle of an array in a region or in a mapped file; None if it is in neither."""
        layout = (array.shape, array.strides, array.dtype, array.flags.writeable)
        place = place_of(array)
        if place is not None:
            return "shared", place.region, place.offset, layout
        if array.nbytes < mapped_bytes_min or len(self.descriptors) >= DESCRIPTORS_MAX:
            return None
        mapped = mapped_file(array)
        if mapped is None:
            return None
        self.opened.append(mapped.descriptor)
        self.descriptors.append(mapped.descriptor)
        first, last = span_of(array)
        where = (mapped.offset, last - first, address_of(array) - first)
        return "mapped", len(self.descriptors) - 1, where, layout

    def _copy(self, array: npt.NDArray[Any]) -> Any:
        # Pickling a non-contiguous array would copy it once more.
        region = SharedRegion(array.nbytes)
        copied = np.ndarray(array.shape, array.dtype, root_of(region))
        np.copyto(copied, array)
        self.regions[region.fileno()] = region
        self.descriptors.append(region.fileno())
        layout = (copied.shape, copied.strides, copied.dtype, array.flags.writeable)
        return "copied", len(self.descriptors) - 1, copied.nbytes, layout


class _Arriving(NamedTuple):
    """The arrays of the job that is being unpacked."""

    descriptors: list[int]
    regions: dict[int, SharedRegion]


# A worker unpacks one job at a time.
_arriving: _Arriving | None = None


def _region_of(index: int, nbytes: int) -> SharedRegion:
    assert _arriving is not None
    if index not in _arriving.regions:
        descriptor = _arriving.descriptors[index]
        _arriving.regions[index] = SharedRegion.from_fd(descriptor, nbytes)
    return _arriving.regions[index]


def _array_of(kind: str, *rest: Any) -> npt.NDArray[Any]:
    assert _arriving is not None
    if kind == "shared":
        region, offset, (shape, strides, dtype, writeable) = rest
        array = np.ndarray(shape, dtype, root_of(region), offset, strides)
    elif kind == "copied":
        index, nbytes, (shape, strides, dtype, writeable) = rest
        array = np.ndarray(shape, dtype, _map_privately(_arriving.descriptors[index], nbytes))
    else:
        index, (offset, length, ahead), (shape, strides, dtype, writeable) = rest
        memory = _map(_arriving.descriptors[index], offset, length, writeable)
        array = np.ndarray(shape, dtype, memory, offset % _PAGE + ahead, strides)
    array.flags.writeable = writeable
    return array


def _outs_of(handles: list[Any], several: bool, as_tuple: bool) -> Outs:
    return Outs([_out_of(*handle) for handle in handles], several, as_tuple)


def _out_of(kind: str, *rest: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = rest[0] if kind == "empty" else _array_of(kind, *rest)
    return array


def _map_privately(descriptor: int, length: int) -> mmap.mmap:
    access = mmap.PROT_READ | mmap.PROT_WRITE
    return mmap.mmap(descriptor, length, flags=mmap.MAP_PRIVATE, prot=access)


def _map(descriptor: int, offset: int, length: int, writeable: bool) -> mmap.mmap:
    begin = offset - offset % _PAGE
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writeable else 0)
    return mmap.mmap(
        descriptor, offset - begin + length, flags=mmap.MAP_SHARED, prot=access, offset=begin
    )
