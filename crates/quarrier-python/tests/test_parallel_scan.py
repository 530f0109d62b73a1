"""Scans of remote objects, and scans whose kernels fail."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from parallel_faults import nothing_left
from range_server import RangeServer

import quarrier
from quarrier import parallel

LENGTH = 100_000
CHUNK = 1000
BAD = 50_000


@pytest.fixture(autouse=True)
def _warmed() -> None:
    """Allocates resources made once per process, such as huge pages, which are not leaks."""
    parallel.empty(4 << 20, "u1")
    parallel.init(1, "u1", lambda out, start: None)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    path = tmp_path / "data"
    path.write_bytes(np.random.default_rng(5).bytes(LENGTH))
    yield path


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def segfault() -> None:
    ctypes.string_at(0)


def raise_value_error() -> None:
    raise ValueError("no such luck")


def exit_hard() -> None:
    os._exit(3)


def hang() -> None:
    time.sleep(1000)


FAULTS = [kill_self, segfault, raise_value_error, exit_hard, hang]


def total(part: Any, offset: int) -> int:
    return int(part.sum(dtype=np.int64))


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_url_is_scanned_like_a_file(mode: Any, path: pathlib.Path) -> None:
    with RangeServer({"data": path.read_bytes()}) as server:
        url = server.url("data")
        found = parallel.scan(url, total, CHUNK, workers=2, mode=mode)
        assert found == parallel.scan(path, total, CHUNK, workers=2, mode=mode)
        # Each byte was fetched once, for any chunk size.
        assert server.tally.body_bytes <= LENGTH + (64 << 10)


def test_a_missing_url_is_an_error_of_the_call() -> None:
    with RangeServer({}) as server, pytest.raises(OSError, match="404"):
        parallel.scan(server.url("nothing"), total, CHUNK, workers=2)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_chunk_that_fails_once_is_scanned_again(
    fault: Callable[[], None], path: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    expected = parallel.scan(path, total, CHUNK, workers=2)
    failed = tmp_path / "failed"

    def once(part: Any, offset: int) -> int:
        if offset == BAD and not failed.exists():
            failed.touch()
            fault()
        return total(part, offset)

    with nothing_left():
        found = parallel.scan(
            path, once, CHUNK, workers=2, on_error="retry", timeout=3 if fault is hang else 60
        )
    assert found == expected
    assert failed.exists()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_chunk_that_fails_is_named(fault: Callable[[], None], path: pathlib.Path) -> None:
    def fail(part: Any, offset: int) -> int:
        if offset == BAD:
            fault()
        return 0

    def failure() -> Exception:
        """The exception without its frames, which hold the buffers."""
        try:
            parallel.scan(path, fail, CHUNK, workers=2, timeout=3 if fault is hang else 60)
        except Exception as error:
            return error.with_traceback(None)
        raise AssertionError("nothing was raised")

    with nothing_left():
        error = failure()
    if fault is raise_value_error:
        assert type(error) is ValueError
    else:
        assert isinstance(error, quarrier.WorkerError)
        assert error.range == (BAD, BAD + CHUNK)


def test_auto_is_the_default_number_of_workers() -> None:
    def length(chunk: Any, offset: int) -> int:
        return len(chunk)

    found = parallel.scan(bytes(10), length, chunk=4, workers="auto", mode="thread")
    assert found == parallel.scan(bytes(10), length, chunk=4, mode="thread")
