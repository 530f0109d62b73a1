"""`per_worker`: values that each worker makes once."""

from __future__ import annotations

import ctypes
import os
import pathlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from quarrier import parallel


@pytest.fixture(params=["forked", "pooled", "thread"])
def way(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    if request.param == "pooled":
        with parallel.pool(workers=2):
            yield {}
    else:
        yield {"workers": 2, "mode": "thread" if request.param == "thread" else "process"}


def test_a_worker_makes_its_value_once(way: dict[str, Any], tmp_path: pathlib.Path) -> None:
    def worker() -> tuple[int, int]:
        return os.getpid(), threading.get_ident()

    def make() -> tuple[int, int]:
        with (tmp_path / "made").open("a") as file:
            file.write(f"{worker()}\n")
        return worker()

    made = parallel.per_worker(make)
    other = parallel.per_worker(lambda: "other")
    assert made() == worker()

    def check(out: Any, start: int) -> None:
        assert made() == worker() and other() == "other"
        time.sleep(0.001)
        out[:] = 1

    for _ in range(3):
        parallel.init(40, "u1", check, chunk=1, **way)
    times = Counter((tmp_path / "made").read_text().splitlines())
    assert times.pop(str(worker())) == 1
    # A new thread may reuse the ID of one that has ended.
    assert "mode" in way or set(times.values()) == {1}
    # Workers of a pool live as long as the pool.
    assert sum(times.values()) <= (2 if not way else 6)


def test_a_kernel_of_c_is_loaded_once_by_each_worker(way: dict[str, Any]) -> None:
    # Handles of libraries cannot be pickled, so that workers of a pool load their own.
    libc = parallel.per_worker(lambda: ctypes.CDLL(None))

    def swap(out: Any, block: Any) -> None:
        pointers = (ctypes.c_void_p(block.ctypes.data), ctypes.c_void_p(out.ctypes.data))
        libc().swab(*pointers, ctypes.c_ssize_t(out.nbytes))

    values = np.arange(60_000, dtype="u2").reshape(200, 300)
    assert (parallel.map(swap, values, **way) == values.byteswap()).all()
    options = {"worker_mode" if name == "mode" else name: value for name, value in way.items()}
    assert (parallel.stencil(swap, values, 0, tile=(7, 300), **options) == values.byteswap()).all()


def test_an_exception_of_the_maker_is_raised_by_the_kernel() -> None:
    def make() -> None:
        raise LookupError("no model")

    state = parallel.per_worker(make)
    with pytest.raises(LookupError, match="no model"):
        parallel.init(4, "u1", lambda out, start: state(), workers=2)
