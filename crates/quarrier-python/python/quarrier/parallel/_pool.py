"""Workers that stay between calls."""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections.abc import Iterator
from typing import Literal

from quarrier.parallel._crew import Crew
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import count_of
from quarrier.parallel._system import signals_held


class Pool:
    """The result of `pool()`: calls inside its `with` use its workers."""

    def __init__(self, count: int) -> None:
        self.crew = Crew(count)
        # Held by the call that uses the workers, and for good after the end.
        self.busy = threading.Lock()
        self.has_ended = False
        self._process = os.getpid()

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self.crew.count

    def open(self) -> None:
        """Starts the workers."""
        with signals_held():
            try:
                for place in range(self.workers):
                    self.crew.hire(place)
            except BaseException:
                self.crew.close()
                raise

    def close(self) -> None:
        """Ends the workers, after any call that another thread has running."""
        if not self.is_mine():
            return
        if not self.has_ended:
            self.busy.acquire()
            self.has_ended = True
        with signals_held():
            self.crew.close()

    def is_mine(self) -> bool:
        """Whether this process made the pool; in a forked child it has no workers."""
        return self._process == os.getpid()


_current: contextvars.ContextVar[Pool | None] = contextvars.ContextVar("pool", default=None)


def current_pool() -> Pool | None:
    """The innermost pool around the caller."""
    found = _current.get()
    if found is None or found.has_ended or not found.is_mine():
        return None
    return found


@contextlib.contextmanager
def pool(workers: int | Literal["auto"] | None = None) -> Iterator[Pool]:
    """Keeps workers for the calls inside: they start in less than a millisecond.

    Kernels are pickled by cloudpickle, so closures and lambdas work. Arrays that they capture are
    copied through shared memory once a call; shared arrays and mapped files never are. Dead workers
    are replaced at the next call. Pools nest: the innermost one is used. A concurrent call from a
    second thread starts new workers.

    >>> import quarrier.parallel as parallel
    >>> def fill(out, start):
    ...     out[:] = range(start, start + len(out))
    >>> with parallel.pool(workers=2):
    ...     parallel.init(4, "i8", fill).tolist()
    [0, 1, 2, 3]
    """
    found = Pool(count_of(workers))
    token = _current.set(found)
    try:
        if not in_worker():
            found.open()
        yield found
    finally:
        try:
            _current.reset(token)
            found.close()
        except BaseException:
            # A signal handler interrupted the first attempt.
            found.close()
            raise
