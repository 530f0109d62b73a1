"""`submit`: calls in the background."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from parallel_faults import children

import quarrier
from quarrier import parallel

MODES = pytest.mark.parametrize("mode", ["process", "thread"])


def number(out: Any, start: int) -> None:
    out[:] = np.arange(start, start + len(out))


def double(out: Any, values: Any) -> None:
    out[:] = 2 * values


@MODES
def test_submitted_calls_have_the_results_of_direct_calls(mode: Any) -> None:
    futures = [
        parallel.submit(parallel.init, 1_000, "i8", number, workers=2, mode=mode),
        parallel.submit(parallel.map, double, np.arange(1_000), workers=2, mode=mode),
        parallel.submit(parallel.stencil, double, np.arange(1_000), 0, workers=2, worker_mode=mode),
    ]
    numbers, *doubled = [future.result(60) for future in futures]
    assert (numbers == np.arange(1_000)).all()
    assert all((found == 2 * numbers).all() for found in doubled)


def test_a_submitted_call_raises_and_is_cancelled_and_awaited() -> None:
    gate = threading.Event()
    first = parallel.submit(gate.wait, 60)
    failing = parallel.submit(parallel.init, 4, "u1", number, workers=-1)
    second = parallel.submit(parallel.init, 4, "u1", number, workers=1)
    third = parallel.submit(parallel.init, 4, "u1", number, workers=1)
    assert second.cancel()
    gate.set()
    assert first.result(60)
    with pytest.raises(quarrier.PlanError):
        failing.result(60)
    with pytest.raises(CancelledError):
        second.result(60)

    async def wait() -> list[int]:
        array = await asyncio.wrap_future(third)
        found: list[int] = array.tolist()
        return found

    assert asyncio.run(wait()) == [0, 1, 2, 3]


def test_the_end_of_a_pool_waits_for_a_submitted_call_and_leaves_no_worker() -> None:
    began = threading.Event()
    # Children of earlier tests.
    before = children()

    def slowly(out: Any, start: int) -> None:
        time.sleep(0.01)
        number(out, start)

    def call() -> Any:
        began.set()
        return parallel.init(20, "i8", slowly, chunk=1)

    with parallel.pool(workers=2):
        running = parallel.submit(call)
        waiting = parallel.submit(parallel.init, 20, "i8", number, workers=2)
        began.wait(60)
    for future in (running, waiting):
        assert future.result(60).tolist() == list(range(20))
    # The clean parent stays.
    assert len(children() - before) <= 1


def test_a_call_submitted_in_a_kernel_runs_there() -> None:
    def nested(out: Any, start: int) -> None:
        out[:] = parallel.submit(parallel.init, len(out), "i8", number).result()

    assert parallel.init(6, "i8", nested, workers=2, chunk=3).tolist() == [0, 1, 2, 0, 1, 2]
