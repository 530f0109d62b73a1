"""What callers give as arrays, as numpy arrays over the same bytes."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def as_array(value: Any) -> npt.NDArray[Any]:
    """An array over what `value` shows: numpy, bytes, memoryview, mmap, Arrow; no copy of these."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bytes, bytearray, mmap.mmap)):
        return np.frombuffer(value, np.uint8)
    return np.asarray(value)


def as_bytes(value: Any) -> npt.NDArray[np.uint8]:
    """The bytes of whatever shows some, read-only."""
    view = memoryview(value)
    if view.nbytes == 0:
        return np.zeros(0, np.uint8)
    array = np.frombuffer(view.cast("B") if view.contiguous else view.tobytes(), np.uint8)
    array.flags.writeable = False
    return array
