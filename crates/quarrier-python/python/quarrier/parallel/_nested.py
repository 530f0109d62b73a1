"""Whether this code already runs in a worker: then everything in it runs sequentially."""

from __future__ import annotations

import os
import threading

# The process that is a worker: not a flag, since a worker's children are none.
_worker_pid = 0
_thread = threading.local()


def enter_worker() -> None:
    """This process is a worker from now on."""
    global _worker_pid
    _worker_pid = os.getpid()


def enter_thread() -> None:
    """This thread is a worker from now on."""
    _thread.is_worker = True


def in_worker() -> bool:
    """Whether the caller is a kernel."""
    return _worker_pid == os.getpid() or getattr(_thread, "is_worker", False)
