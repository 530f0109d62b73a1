"""System calls that Python lacks."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

_PR_SET_PDEATHSIG = 1
# The index in /proc/PID/stat, counted after the name, of the flags of the kernel's sched.h.
_FLAGS_FIELD = 6
_PF_EXITING = 4
_libc = ctypes.CDLL(None, use_errno=True)

# Signals that report a fault in the process; blocking them would lose the cause.
_OF_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
# The functions below the wrappers of `signal`, which convert all arguments and results to
# enumerations: with them, getting the handlers of all signals takes a tenth of a millisecond.
_plain = importlib.import_module("_signal")
# Kept, because querying takes a tenth of a millisecond.
_HANDLED = tuple(int(number) for number in signal.valid_signals() - _OF_FAULTS)


def die_with_parent(parent: int) -> None:
    """Makes the system kill this process when its parent dies, or if it has died already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


class Hold:
    """Defers signal handlers, so that no KeyboardInterrupt comes between a fork and its record.

    Blocking signals is not enough if there are other threads: one of them may receive the signal,
    and Python then runs the handler in the main thread, blocked or not. So all handlers are
    replaced by one that only records the signal. Other threads never run handlers.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._waiting: list[int] = []
        handler_of = _plain.getsignal
        self._held = {number for number in _HANDLED if callable(handler_of(number))}
        self._before = _plain.pthread_sigmask(_plain.SIG_BLOCK, self._held)
        try:
            self._replace()
        except BaseException:
            self.end()
            raise

    def _replace(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in self._held:
                # The current handlers.
                handler = _plain.signal(number, self._note)
                if handler != self._note:
                    self._handlers[number] = handler

    def _note(self, number: int, frame: object) -> None:
        self._waiting.append(number)

    def _restore(self) -> None:
        handlers = self._handlers
        for number, handler in handlers.items():
            _plain.signal(number, handler)
        while self._waiting:
            number = self._waiting.pop(0)
            handlers[number](number, None)

    def end(self) -> None:
        """Delivers the waiting signals."""
        try:
            self._restore()
        finally:
            _plain.pthread_sigmask(_plain.SIG_SETMASK, self._before)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Lets handlers run, and raise, inside this block."""
        try:
            self._restore()
            _plain.pthread_sigmask(_plain.SIG_SETMASK, self._before)
            yield
        finally:
            _plain.pthread_sigmask(_plain.SIG_BLOCK, self._held)
            self._replace()


@contextlib.contextmanager
def signals_held() -> Iterator[Hold]:
    """Defers signal handlers, which may raise, to where the hold is opened, and to its end."""
    hold = Hold()
    try:
        yield hold
    finally:
        hold.end()


def other_threads(patience_seconds: float = 0.0) -> set[int]:
    """The other threads of this process, after a short wait for those that are exiting."""
    until = time.monotonic() + patience_seconds
    while True:
        others = set(map(int, os.listdir("/proc/self/task"))) - {threading.get_native_id()}
        others = {thread for thread in others if _is_running(thread)}
        if not others or time.monotonic() >= until:
            return others
        time.sleep(0.001)


def _is_running(thread: int) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/stat", "rb") as file:
            flags = int(file.read().rpartition(b")")[2].split()[_FLAGS_FIELD])
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not flags & _PF_EXITING
