"""`submit`: calls that run in the background, in order."""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from quarrier.parallel._nested import in_worker

if TYPE_CHECKING:
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")


class _Line:
    """Queued calls, and the one thread that runs them; it ends when none is left."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_served = False

    def append(self, run: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.append(run)
            if self._is_served:
                return
            self._is_served = True
        threading.Thread(target=self._serve, name="quarrier calls").start()

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_served = False
                    return
                run = self._waiting.popleft()
            run()


_line = _Line()


def submit(call: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> Future[T]:
    """Runs a call in the background: `submit(parallel.map, kernel, array, out=out)`.

    Calls run one at a time, in the order of `submit`, because each uses all workers. They use the
    `pool` around `submit`, whose end waits for the running call. New workers come from the clean
    parent, as in every process with threads.

    Parameters
    ----------
    call : callable
        `init`, `map`, `stencil`, `scan`, `reduce`, or any function that calls them.
    *arguments, **options
        Its arguments.

    Returns
    -------
    concurrent.futures.Future
        `result()` waits for the result, or raises the exception of the call. `cancel()` withdraws a
        call that has not started. `asyncio.wrap_future` makes it awaitable.

    Examples
    --------
    >>> import quarrier.parallel as parallel
    >>> def fill(out, start):
    ...     out[:] = range(start, start + len(out))
    >>> future = parallel.submit(parallel.init, 4, "i8", fill, workers=2)
    >>> future.result().tolist()
    [0, 1, 2, 3]
    """
    global _line
    # Programs that do not use it should not wait for it.
    from concurrent.futures import Future

    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = context.run(call, *arguments, **options)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    if in_worker():
        run()
        return future
    if _line.process != os.getpid():
        # A forked child does not have the thread.
        _line = _Line()
    _line.append(run)
    return future
