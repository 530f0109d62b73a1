"""Blocking reads for coroutines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# The default executor of asyncio has six threads on two CPUs, but these threads wait for a network.
_THREADS_MAX = 32


class _Threads(NamedTuple):
    executor: ThreadPoolExecutor
    process: int


_threads: _Threads | None = None


async def in_thread(call: Callable[[], T]) -> T:
    """Returns the result of a call that another thread makes.

    If the coroutine is cancelled, the call still runs to its end.
    """
    global _threads
    # A forked child has none of the threads.
    if _threads is None or _threads.process != os.getpid():
        _threads = _Threads(ThreadPoolExecutor(_THREADS_MAX, "quarrier reads"), os.getpid())
    return await asyncio.get_running_loop().run_in_executor(_threads.executor, call)
