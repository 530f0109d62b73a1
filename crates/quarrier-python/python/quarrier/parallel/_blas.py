"""Limits linear algebra to one thread a worker: each CPU already has a worker."""

from __future__ import annotations

import sys
from collections.abc import Callable

import threadpoolctl

# The number of loaded modules at the last lookup, and the libraries found then.
_known: tuple[int, list[threadpoolctl.LibController]] = (0, [])


def one_thread() -> Callable[[], None]:
    """Looks for the libraries and returns a function for a forked worker to call."""
    global _known
    if _known[0] != len(sys.modules):
        libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
        _known = (len(sys.modules), libraries)
    libraries = _known[1]

    def limit() -> None:
        for library in libraries:
            library.set_num_threads(1)

    return limit
