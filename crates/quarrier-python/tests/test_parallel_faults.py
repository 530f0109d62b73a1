"""Workers that die, raise, hang or exit: the caller gets an exception, and nothing is left over."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from parallel_faults import children, nothing_left

import quarrier
from quarrier import parallel

LENGTH = 1000
CHUNK = 10
BAD = 500
WHERE = (500, 510)


class OwnError(Exception):
    """Takes two arguments, and can still be pickled."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text, number)
        self.number = number


class UnpicklableError(Exception):
    """Holds an object that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("it has a lock")
        self.lock = threading.Lock()


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def segfault() -> None:
    ctypes.string_at(0)


def run_out_of_memory() -> None:
    """Simulates running out of memory, without harm to the rest of the machine."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    np.ones(1 << 30, np.uint8)


def raise_own() -> None:
    raise OwnError("no such luck", 7)


def raise_unpicklable() -> None:
    raise UnpicklableError


def hang() -> None:
    time.sleep(1000)


def hang_without_python() -> None:
    """A kernel that is stuck and blocks all signals but the deadly ones."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.CDLL(None).pause()


def exit_hard() -> None:
    os._exit(3)


def exit_softly() -> None:
    sys.exit(4)


@pytest.fixture(autouse=True)
def _warmed() -> None:
    """Allocates resources made once per process, such as huge pages, which are not leaks."""
    parallel.empty(4 << 20, "u1")
    parallel.init(1, "u1", lambda out, start: None)


@pytest.fixture(params=["forked", "pooled", "clean", "clean pool"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the ways to start workers."""
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    if "clean" in request.param:
        thread.start()
        # The clean parent itself stays.
        parallel.init(1, "u1", lambda out, start: None)
    try:
        if "pool" in request.param:
            with parallel.pool(workers=2):
                yield request.param
        else:
            yield request.param
    finally:
        waiting.set()
        if thread.ident is not None:
            thread.join()


def failing(fault: Callable[[], None]) -> Callable[[Any, int], None]:
    def fill(out: Any, start: int) -> None:
        if start == BAD:
            fault()
        out[:] = np.arange(start, start + len(out))

    return fill


def failure(kernel: Callable[[Any, int], object], **options: Any) -> Any:
    """The exception of `init` without its frames, which hold the unfinished array."""
    try:
        init(kernel, **options)
    except Exception as error:
        return error.with_traceback(None)
    raise AssertionError("nothing was raised")


def init(kernel: Callable[[Any, int], object], **options: Any) -> Any:
    return parallel.init(LENGTH, "i8", kernel, workers=2, chunk=CHUNK, **options)


@pytest.mark.parametrize(
    ("fault", "number", "status"),
    [
        (kill_self, signal.SIGKILL, None),
        (segfault, signal.SIGSEGV, None),
        (exit_hard, None, 3),
        (exit_softly, None, 4),
    ],
)
def test_a_worker_that_ends_is_reported_with_signal_or_status_and_range(
    way: str, fault: Callable[[], None], number: int | None, status: int | None
) -> None:
    with nothing_left_of_workers(way):
        error = failure(failing(fault))
    assert type(error) is quarrier.WorkerDiedError
    assert (error.signal, error.status, error.range) == (number, status, WHERE)
    assert "[500, 510)" in str(error)


def nothing_left_of_workers(way: str) -> Any:
    """In a pool a dead worker is replaced only at the next call, so one may be missing."""
    return contextlib.nullcontext() if "pool" in way else nothing_left()


def test_a_segmentation_fault_has_its_traceback() -> None:
    with pytest.raises(quarrier.WorkerDiedError) as caught:
        init(failing(segfault))
    assert "Segmentation fault" in str(caught.value.__cause__)
    assert "in segfault" in str(caught.value.__cause__)


def test_an_exception_has_its_type_its_message_its_traceback_and_the_range(way: str) -> None:
    with nothing_left_of_workers(way):
        error = failure(failing(raise_own))
    assert (type(error), str(error), error.number) == (OwnError, "('no such luck', 7)", 7)
    assert error.quarrier_range == WHERE
    assert any("[500, 510)" in note for note in error.__notes__)
    assert "in raise_own" in str(error.__cause__)


def test_memory_that_runs_out_is_a_memory_error_of_the_range(way: str) -> None:
    with nothing_left_of_workers(way):
        error = failure(failing(run_out_of_memory))
    assert isinstance(error, MemoryError)
    assert error.quarrier_range == WHERE  # type: ignore[attr-defined]


def test_an_exception_of_a_local_class_is_of_that_class() -> None:
    class LocalError(Exception):
        pass

    def fault() -> None:
        raise LocalError("here")

    with pytest.raises(LocalError, match="here"):
        init(failing(fault))


def test_an_exception_that_cannot_be_pickled_is_reported_as_text(way: str) -> None:
    with pytest.raises(quarrier.KernelError, match="UnpicklableError: it has a lock") as caught:
        init(failing(raise_unpicklable))
    assert caught.value.range == WHERE
    assert "in raise_unpicklable" in str(caught.value.__cause__)


@pytest.mark.parametrize("fault", [hang, hang_without_python])
def test_a_kernel_that_hangs_is_killed_after_its_timeout(
    way: str, fault: Callable[[], None]
) -> None:
    with nothing_left_of_workers(way):
        # Long enough for the other workers on a busy machine.
        error = failure(failing(fault), timeout=2)
    assert type(error) is quarrier.WorkerTimeoutError
    assert error.range == WHERE


def test_siblings_are_cancelled(tmp_path: pathlib.Path) -> None:
    def fill(out: Any, start: int) -> None:
        if start == 0:
            raise OwnError("at once", 1)
        (tmp_path / str(os.getpid())).touch()
        time.sleep(1000)

    with nothing_left():
        error = failure(fill)
    assert type(error) is OwnError


FAULTS = [kill_self, segfault, raise_own, raise_unpicklable, exit_hard, exit_softly, hang]


@pytest.mark.parametrize("fault", FAULTS)
def test_on_error_retry_runs_that_range_alone_again(
    way: str, fault: Callable[[], None], tmp_path: pathlib.Path
) -> None:
    def fill(out: Any, start: int) -> None:
        with open(tmp_path / "runs", "a") as runs:
            runs.write(f"{start}\n")
        failed = tmp_path / "failed"
        if start == BAD and not failed.exists():
            failed.touch()
            fault()
        out[:] = np.arange(start, start + len(out))

    with nothing_left_of_workers(way):
        # Only the hanging kernel may reach the timeout, because each timeout causes another run.
        found = init(fill, on_error="retry", timeout=3 if fault is hang else 60).copy()
    assert (found == np.arange(LENGTH)).all()
    runs = [int(line) for line in (tmp_path / "runs").read_text().split()]
    assert sorted(runs) == sorted([*range(0, LENGTH, CHUNK), BAD])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_second_failure_is_raised_despite_retry(way: str, fault: Callable[[], None]) -> None:
    with nothing_left_of_workers(way):
        error = failure(failing(fault), on_error="retry", timeout=0.5)
    assert isinstance(error, (OwnError, quarrier.WorkerError))


def test_every_chunk_may_fail_once(tmp_path: pathlib.Path) -> None:
    def fill(out: Any, start: int) -> None:
        failed = tmp_path / str(start)
        if not failed.exists():
            failed.touch()
            os._exit(1)
        out[:] = np.arange(start, start + len(out))

    with nothing_left():
        found = parallel.init(60, "i8", fill, workers=3, chunk=3, on_error="retry").copy()
    assert (found == np.arange(60)).all()


@pytest.mark.parametrize("on_error", ["raise", "retry"])
def test_workers_killed_at_any_moment_never_give_a_partial_array(on_error: Any) -> None:
    """Another process kills workers: between chunks, after a claim, at the end."""

    def fill(out: Any, start: int) -> None:
        out[:] = np.arange(start, start + len(out))

    whole = failed = 0
    before = children()
    killer = os.fork()
    if killer == 0:
        kill_children_of(os.getppid(), before)
    try:
        for _ in range(60):
            try:
                found = parallel.init(20_000, "i8", fill, workers=2, chunk=10, on_error=on_error)
            except quarrier.WorkerDiedError as error:
                assert error.signal == signal.SIGKILL
                failed += 1
            else:
                assert (found == np.arange(20_000)).all()
                whole += 1
    finally:
        os.kill(killer, signal.SIGKILL)
        os.waitpid(killer, 0)
    assert whole + failed == 60
    assert children() == before


def kill_children_of(parent: int, before: set[int]) -> None:
    """Kills random children of a process, but not this one; never returns."""
    random = np.random.default_rng(1)
    spared = {os.getpid(), *before}
    while True:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as file:
                others = set(map(int, file.read().split())) - spared
        except OSError:
            os._exit(0)
        for pid in others:
            if random.random() < 0.2:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(float(random.random()) * 0.003)
