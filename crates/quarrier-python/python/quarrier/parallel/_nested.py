"""Whether this code runs in a worker; calls there run sequentially."""

from __future__ import annotations

import os
import threading

# The ID of the worker process. A flag would be wrong in its children, which are not workers.
_worker_pid = 0
_thread = threading.local()


def enter_worker() -> None:
    """Marks this process as a worker."""
    global _worker_pid
    _worker_pid = os.getpid()


def enter_thread() -> None:
    """Marks this thread as a worker."""
    _thread.is_worker = True


def in_worker() -> bool:
    """Whether the caller is a kernel."""
    return _worker_pid == os.getpid() or getattr(_thread, "is_worker", False)
