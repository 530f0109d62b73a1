"""The arrays that a call fills: new ones, or those of `out=`, in place if possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from quarrier._errors import BufferLayoutError
from quarrier.parallel._array import address_of, empty, place_of
from quarrier.parallel._maps import file_span, mapped_file, mmap_of

Array = npt.NDArray[Any]

# The value of `out=`, which the call also returns.
Filled = TypeVar("Filled", bound=npt.NDArray[Any] | Sequence[npt.NDArray[Any]])

# Finding a common byte of two strided arrays can take long.
_OVERLAP_WORK_MAX = 100_000


class Outs:
    """The arrays that a job fills. Pickled, they are handles, so that no worker fills a copy."""

    def __init__(self, arrays: list[Array], several: bool, as_tuple: bool = False) -> None:
        # Slicing a subclass takes seven times as long as slicing numpy's own class.
        self.arrays = [np.asarray(array) for array in arrays]
        self.several = several
        # Numba does not support lists of arrays.
        self.as_tuple = as_tuple

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def nbytes(self) -> int:
        """The size of all arrays together, in bytes."""
        return sum(array.nbytes for array in self.arrays)

    def at(self, key: Any) -> Any:
        """The slice for a kernel, or the list of slices if there are several arrays."""
        if not self.several:
            return self.arrays[0][key]
        slices = [array[key] for array in self.arrays]
        return tuple(slices) if self.as_tuple else slices


class Results:
    """The arrays that a call returns, and the targets that its workers fill, which may differ."""

    def __init__(self, given: Any, arrays: list[Array], targets: list[Array]) -> None:
        self._given = given
        self._arrays = arrays
        self.targets = targets
        self.several = isinstance(given, (list, tuple))

    @staticmethod
    def new(array: Array) -> Results:
        """A result in a new array, which no other code holds."""
        return Results(array, [array], [array])

    @staticmethod
    def into(out: Any, anywhere: bool, disturbs: Callable[[Array], bool]) -> Results:
        """The arrays of `out=`. With `anywhere`, workers are in this process and reach any memory.

        An array that workers cannot reach, or whose changes kernels would see, is filled at the
        end.
        """
        arrays = outs_of(out)
        targets = [
            array
            if (anywhere or _is_reachable(array)) and not disturbs(array)
            else empty(array.shape, array.dtype)
            for array in arrays
        ]
        return Results(out, arrays, targets)

    def outs(self, kernel: Callable[..., object]) -> Outs:
        """The targets, prepared for a job with this kernel."""
        return Outs(self.targets, self.several, is_compiled(kernel))

    def is_empty(self) -> bool:
        """Whether there is nothing to fill."""
        return all(target.size == 0 for target in self.targets)

    def finish(self) -> Any:
        """Copies arrays not filled in place, flushes mapped files, and returns the result."""
        for array, target in zip(self._arrays, self.targets, strict=True):
            if target is not array:
                np.copyto(array, target)
            mapped = mmap_of(array)
            if mapped is not None:
                mapped.flush()
        return self._given


def is_compiled(kernel: Callable[..., object]) -> bool:
    """Whether numba compiled the kernel: it then has the original function as `py_func`."""
    return hasattr(kernel, "py_func")


def outs_of(out: Any) -> list[Array]:
    """Checks the arrays of `out=`, one or several, and returns them as a list."""
    arrays = [_as_out(each) for each in (out if isinstance(out, (list, tuple)) else [out])]
    if not arrays:
        raise ValueError("out is an empty list; give an array, or None for a new one")
    for array in arrays:
        _check(array)
    for number, array in enumerate(arrays):
        for other in range(number):
            if _have_common_bytes(array, arrays[other]):
                raise ValueError(
                    f"out[{other}] and out[{number}] overlap; each needs its own memory"
                )
    return arrays


def _as_out(value: Any) -> Any:
    """Another library's array as a numpy array over the same memory, by DLPack."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return value
    return np.from_dlpack(value)


def _check(array: Any) -> None:
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        raise BufferLayoutError(
            "out must be a writable array of numpy, or of a library with DLPack; or a list of such"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("out has a mask, which kernels do not see; give out.data")
    if array.dtype.hasobject:
        raise TypeError(f"dtype {array.dtype} holds Python objects, which processes cannot share")


def disturbs(out: Array, array: Array, sees_neighbours: bool) -> bool:
    """Whether filling `out` changes parts of `array` that a kernel still has to read.

    A kernel that `sees_neighbours` reads more of `array` than the part of `out` that it fills. A
    kernel that may run again would read its own results.
    """
    if not _may_have_common_bytes(out, array):
        return False
    is_same = address_of(out) == address_of(array) and (out.shape, out.strides, out.itemsize) == (
        array.shape,
        array.strides,
        array.itemsize,
    )
    return not is_same or sees_neighbours


def _may_have_common_bytes(first: Array, second: Array) -> bool:
    return np.may_share_memory(first, second) or _have_common_file(first, second)


def _have_common_bytes(first: Array, second: Array) -> bool:
    try:
        if np.shares_memory(first, second, max_work=_OVERLAP_WORK_MAX):  # type: ignore[arg-type]
            return True
    except RuntimeError:
        # TooHardError, which has moved within numpy.
        return True
    # Arrays of one mapping were compared above.
    is_one_mapping = mmap_of(first) is mmap_of(second)
    return not is_one_mapping and _have_common_file(first, second)


def _have_common_file(first: Array, second: Array) -> bool:
    """Whether two arrays map common bytes of a file, which may be mapped twice."""
    if mmap_of(first) is None:
        return False
    one, other = file_span(first), file_span(second)
    if one is None or other is None or one.file != other.file:
        return False
    return one.first < other.last and other.first < one.last


def _is_reachable(array: Array) -> bool:
    """Whether workers can fill an array in place: it is in shared memory or in a mapped file."""
    if place_of(array) is not None:
        return True
    if mmap_of(array) is None:
        return False
    file = mapped_file(array)
    if file is None:
        return False
    file.close()
    return True
