"""Workers use one thread each for linear algebra: there is one for each CPU already."""

from __future__ import annotations

import sys
from collections.abc import Callable

import threadpoolctl

# What was found when so many modules were loaded.
_known: tuple[int, list[threadpoolctl.LibController]] = (0, [])


def one_thread() -> Callable[[], None]:
    """Looks for the libraries; what it returns, a forked worker calls."""
    global _known
    if _known[0] != len(sys.modules):
        libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
        _known = (len(sys.modules), libraries)
    libraries = _known[1]

    def limit() -> None:
        for library in libraries:
            library.set_num_threads(1)

    return limit
