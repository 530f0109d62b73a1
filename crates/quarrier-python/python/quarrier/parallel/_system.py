"""What Python does not offer of the system."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

# Signals by which a process says that it is broken; to block them would lose the cause.
_OF_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
_BLOCKED = signal.valid_signals() - _OF_FAULTS


def die_with_parent(parent: int) -> None:
    """Has the system kill this process when its parent dies, or has died already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """No handler runs, and so no KeyboardInterrupt comes, until what is begun is noted down."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def count_threads(wanted: int, patience_seconds: float) -> int:
    """The threads of this process; those that are just ending are waited for a moment."""
    until = time.monotonic() + patience_seconds
    while (count := len(os.listdir("/proc/self/task"))) > wanted and time.monotonic() < until:
        time.sleep(0.0002)
    return count
