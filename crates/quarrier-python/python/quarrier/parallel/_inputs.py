"""Converts callers' arguments into numpy arrays over the same bytes."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def as_array(value: Any) -> npt.NDArray[Any]:
    """An array over the memory of numpy, bytes, memoryview, mmap, Arrow or DLPack; no copy."""
    _check_missing(value)
    if isinstance(value, np.ndarray):
        return np.ma.getdata(value)
    if isinstance(value, (bytes, bytearray, mmap.mmap)):
        return np.frombuffer(value, np.uint8)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def as_arrays(call: str, values: tuple[Any, ...]) -> list[npt.NDArray[Any]]:
    """The input arrays of a call that cuts them along the first axis."""
    if not values:
        raise TypeError(f"{call} takes at least one array")
    arrays = [as_array(value) for value in values]
    if any(array.ndim == 0 for array in arrays):
        raise ValueError("an array without an axis cannot be cut into slices")
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(f"the arrays differ in length: {', '.join(str(n) for n in lengths)}")
    return arrays


def _check_missing(value: Any) -> None:
    """Refuses masks and NULLs, because kernels would see the arbitrary bytes there."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError("an array has masked values, which kernels do not see; give .filled(…)")
    count = getattr(value, "null_count", 0)
    if (count() if callable(count) else count) != 0:
        raise ValueError("an array has NULLs, which kernels do not see; fill them first")


def as_bytes(value: Any) -> npt.NDArray[np.uint8]:
    """The bytes of any object that exports them, read-only."""
    _check_missing(value)
    view = memoryview(value)
    if view.nbytes == 0:
        return np.zeros(0, np.uint8)
    array = np.frombuffer(view.cast("B") if view.contiguous else view.tobytes(), np.uint8)
    array.flags.writeable = False
    return array
