"""Values that each worker makes once and keeps: a model, an open file, a connection."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class _WorkerValues(threading.local):
    """The values of this thread, by the identity of their maker; empty in a forked child."""

    def __init__(self) -> None:
        self.values: dict[bytes, Any] = {}
        self.process = os.getpid()


_worker_values = _WorkerValues()


class PerWorker(Generic[T]):
    """The result of `per_worker`: a call in a kernel returns the value of its worker."""

    def __init__(self, make: Callable[[], T], identity: bytes) -> None:
        self._make = make
        self._identity = identity

    def __call__(self) -> T:
        """Returns the value of this worker, which the first call makes."""
        if _worker_values.process != os.getpid():
            _worker_values.values, _worker_values.process = {}, os.getpid()
        if self._identity not in _worker_values.values:
            _worker_values.values[self._identity] = self._make()
        value: T = _worker_values.values[self._identity]
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        # The identity lets a pool's worker find its value again in the next call.
        return PerWorker, (self._make, self._identity)


def per_worker(make: Callable[[], T]) -> PerWorker[T]:
    """A value that each worker makes for itself, once: a model, an open file, a connection.

    Parameters
    ----------
    make : callable
        Makes the value, without arguments, when a kernel first requests it in a worker. It runs
        again in each worker: a process, or with `mode="thread"` a thread. If it raises, the kernel
        raises the same exception.

    Returns
    -------
    callable
        A kernel calls it to get the value of its worker. Workers of `pool` keep the value between
        calls, until the pool ends; workers that a call starts end with it. Processes end without
        clean-up: a kernel must flush its output itself.

    Examples
    --------
    >>> import numpy as np, quarrier.parallel as parallel
    >>> table = parallel.per_worker(lambda: np.arange(256)[::-1].astype("u1"))
    >>> def invert(out, values):
    ...     out[:] = table()[values]
    >>> parallel.map(invert, bytes([0, 1, 255]), workers=2).tolist()
    [255, 254, 0]
    """
    return PerWorker(make, os.urandom(16))
