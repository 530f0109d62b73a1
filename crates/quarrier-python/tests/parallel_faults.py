"""Checks for the tests of parallel workers: resources that a call must not leave behind."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator


def children() -> set[int]:
    """The child processes that have not been waited for."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            found.update(map(int, file.read().split()))
    return found


def descriptors() -> dict[int, str]:
    """The open descriptors, and the file behind each."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return {number: what for number, what in found.items() if not what.endswith("/fd")}


def _held() -> dict[str, object]:
    gc.collect()
    return {
        "children": children(),
        "descriptors": descriptors(),
        "threads": threading.active_count(),
        "names": os.listdir("/dev/shm"),
    }


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Checks that no child, descriptor, thread or name in /dev/shm is left over."""
    before = _held()
    yield
    assert _held() == before
