"""The arrays that a call fills: its own or those given as `out=`, in place where workers can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from quarrier._errors import BufferLayoutError
from quarrier.parallel._array import address_of, empty, place_of
from quarrier.parallel._maps import file_span, mapped_file, mmap_of

Array = npt.NDArray[Any]

# What a call was given as `out=`, and returns.
Filled = TypeVar("Filled", bound=npt.NDArray[Any] | Sequence[npt.NDArray[Any]])

# Whether two arrays with strides have a common byte can take long to find out.
_OVERLAP_WORK_MAX = 100_000


class Outs:
    """The arrays that a job fills. Pickled, they are handles: a worker never fills a copy."""

    def __init__(self, arrays: list[Array], several: bool, as_tuple: bool = False) -> None:
        # A slice of a subclass takes seven times as long to make as one of numpy's own.
        self.arrays = [np.asarray(array) for array in arrays]
        self.several = several
        # Numba has no lists of arrays.
        self.as_tuple = as_tuple

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays together."""
        return sum(array.nbytes for array in self.arrays)

    def at(self, key: Any) -> Any:
        """What a kernel gets: the slice of the array, or a list of those of several."""
        if not self.several:
            return self.arrays[0][key]
        slices = [array[key] for array in self.arrays]
        return tuple(slices) if self.as_tuple else slices


class Results:
    """The arrays that a call returns, and those that its workers fill, which may be others."""

    def __init__(self, given: Any, arrays: list[Array], targets: list[Array]) -> None:
        self._given = given
        self._arrays = arrays
        self.targets = targets
        self.several = isinstance(given, (list, tuple))

    @staticmethod
    def new(array: Array) -> Results:
        """A new array, of which nobody else knows."""
        return Results(array, [array], [array])

    @staticmethod
    def into(out: Any, anywhere: bool, disturbs: Callable[[Array], bool]) -> Results:
        """The arrays of `out=`, filled in place: `anywhere` if the workers are of this process.

        An array whose changes would disturb the kernels is filled at the end.
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
        """The targets, for a job of this kernel."""
        return Outs(self.targets, self.several, is_compiled(kernel))

    def is_empty(self) -> bool:
        """Whether there is nothing to fill."""
        return all(target.size == 0 for target in self.targets)

    def finish(self) -> Any:
        """Copies what was not filled in place, writes mapped files out, and returns the result."""
        for array, target in zip(self._arrays, self.targets, strict=True):
            if target is not array:
                np.copyto(array, target)
            mapped = mmap_of(array)
            if mapped is not None:
                mapped.flush()
        return self._given


def is_compiled(kernel: Callable[..., object]) -> bool:
    """Whether numba compiled the kernel: by its mark, the function that it was made of."""
    return hasattr(kernel, "py_func")


def outs_of(out: Any) -> list[Array]:
    """The arrays of `out=`, one or several, checked."""
    arrays = list(out) if isinstance(out, (list, tuple)) else [out]
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


def _check(array: Any) -> None:
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        raise BufferLayoutError("out must be a writable numpy array, or a list of such")
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("out has a mask, which kernels do not see; give out.data")
    if array.dtype.hasobject:
        raise TypeError(f"dtype {array.dtype} holds Python objects, which processes cannot share")


def disturbs(out: Array, array: Array, sees_neighbours: bool) -> bool:
    """Whether parts of `array` that a kernel has still to see change when `out` is filled.

    A kernel that `sees_neighbours` sees more of `array` than the part that it fills of `out`; one
    that runs again sees what it has filled.
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
        # TooHardError, whose place in numpy has changed.
        return True
    # Parts of one mapping were compared above.
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
    """Whether workers can fill an array in place: one in shared memory or in a mapped file."""
    if place_of(array) is not None:
        return True
    if mmap_of(array) is None:
        return False
    file = mapped_file(array)
    if file is None:
        return False
    file.close()
    return True
