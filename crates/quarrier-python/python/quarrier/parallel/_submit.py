"""`submit`: calls that run in the background, one after another."""

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
    """Calls that wait, and a thread as long as there are some: with one, nothing is forked."""

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

    Parameters
    ----------
    call : callable
        `init`, `map`, `stencil`, `scan`, `reduce`, or any function that calls them.
    *arguments, **options
        Its arguments.

    Returns
    -------
    concurrent.futures.Future
        `result()` waits for the result and raises what the call raises. `cancel()` withdraws a call
        that has not begun. `asyncio.wrap_future` makes it awaitable.

    Calls run one after another, in the order of `submit`, because each uses all workers. They use
    the `pool` around `submit`, whose end waits for the call that is running. Their workers come
    from the clean parent, as in every process with threads.

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
        # The thread of the parent is not in a forked child.
        _line = _Line()
    _line.append(run)
    return future
