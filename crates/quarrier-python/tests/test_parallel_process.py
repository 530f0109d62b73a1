"""The effects of calls on the caller's process, and on workers that stay."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from parallel_faults import children, nothing_left

import quarrier
from quarrier import parallel


def number(out: Any, start: int) -> None:
    out[:] = np.arange(start, start + len(out))


@pytest.fixture(autouse=True)
def _warmed() -> None:
    parallel.empty(4 << 20, "u1")
    parallel.init(1, "u1", lambda out, start: None)


@pytest.fixture
def other_thread() -> Iterator[None]:
    """The caller has a thread, so workers come from the clean parent."""
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    parallel.init(1, "u1", number)
    yield
    waiting.set()
    thread.join()


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


THOUSAND = """
import sys
sys.path.insert(0, sys.argv[1])
from parallel_faults import nothing_left
from quarrier import parallel
def fill(out, start):
    out[:] = 1
parallel.init(4 << 20, "u1", fill)
with nothing_left():
    for _ in range(1000):
        parallel.init(8, "i8", fill, workers=1)
"""


def test_a_thousand_inits_leave_nothing() -> None:
    run(THOUSAND, str(pathlib.Path(__file__).parent))


def test_a_thousand_calls_of_a_pool_leave_nothing() -> None:
    with nothing_left(), parallel.pool(workers=2):
        parallel.init(8, "i8", number)
        with nothing_left():
            for _ in range(1000):
                parallel.init(8, "i8", number)


FORKED = """
import os
import numpy
from quarrier import parallel
numpy.ones((300, 300)) @ numpy.ones((300, 300))  # OpenBLAS has its threads now
before = os.getpid()
captured = [object()]
def fill(out, start):
    out[:] = (os.getppid(), id(captured[0]))
found = parallel.init((2, 2), "i8", fill)
assert (found == (before, id(captured[0]))).all(), found
"""


def test_a_caller_without_threads_is_forked() -> None:
    run(FORKED)


def test_workers_of_a_caller_with_threads_are_not_forked_from_it(other_thread: None) -> None:
    mine = os.getpid()
    captured = np.arange(1 << 20)

    def fill(out: Any, start: int) -> None:
        captured[0] += 1  # its own copy, as after a fork
        out[:] = os.getppid() == mine

    assert not parallel.init(4, "u1", fill, workers=2).any()
    assert captured[0] == 0


NATIVE_THREAD = """
import ctypes, os
from quarrier import parallel
libc = ctypes.CDLL(None)
code = ctypes.cast(libc.pause, ctypes.c_void_p)
assert libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, code, None) == 0
def fill(out, start):
    out[:] = os.getppid()
assert (parallel.init(2, "i8", fill) != os.getpid()).all()
"""


def test_threads_of_libraries_count_unless_they_end_for_a_fork() -> None:
    run(NATIVE_THREAD)


def test_functions_of_a_main_script_reach_workers(
    tmp_path: pathlib.Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import threading
from quarrier import parallel
class Offset:
    value = 3
class MineError(Exception):
    pass
def fill(out, start):
    out[:] = Offset.value
def fail(out, start):
    raise MineError("mine")
if __name__ == "__main__":
    stop = threading.Event()
    threading.Thread(target=stop.wait).start()
    print(parallel.init(2, "u1", fill).tolist())
    try:
        parallel.init(2, "u1", fail)
    except MineError as error:
        print(error)
    stop.set()
"""
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[3, 3]\nmine\n"


INTERRUPTED = """
import os, sys, time
import numpy
from quarrier import parallel
if sys.argv[1] == "clean":
    import threading
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def fill(out, start):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(1000)
def children():
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()
def go():
    try:
        mode = "thread" if sys.argv[1] == "thread" else "process"
        parallel.init(10, "u1", fill, workers=2, mode=mode)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
if sys.argv[1] == "pool":
    with parallel.pool(workers=2):
        go()
else:
    go()
parallel._clean_parent.end() if sys.argv[1] == "clean" else None
print(children(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("way", ["fork", "clean", "pool", "thread"])
def test_ctrl_c_ends_workers_and_is_raised_by_the_call(way: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, way],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        workers = {int(process.stdout.readline()) for _ in range(2)}
        assert len(workers) == (1 if way == "thread" else 2)
        # Like a terminal, which signals all processes of the group.
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert said == "interrupted\n[]\n"
    if way != "thread":
        assert not any(is_alive(worker) for worker in workers)


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("way", ["fork", "clean", "pool"])
def test_workers_die_with_a_killed_caller(way: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, way], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        workers = {int(process.stdout.readline()) for _ in range(2)}
        process.kill()
        process.wait()
        # The pipe ends: no process has it open any more.
        assert process.stdout.read() == ""
    while any(is_alive(worker) for worker in workers):
        time.sleep(0.01)  # they are still exiting


def test_a_killed_clean_parent_is_an_error_and_is_replaced(other_thread: None) -> None:
    def fill(out: Any, start: int) -> None:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)

    with pytest.raises(quarrier.WorkerDiedError):
        parallel.init(4, "u1", fill, workers=2)
    assert parallel.init(4, "u1", number, workers=2).tolist() == [0, 1, 2, 3]


def test_a_handler_of_signals_may_raise_at_any_moment() -> None:
    class AlarmError(Exception):
        pass

    def ring(number: int, frame: object) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    random = np.random.default_rng(3)
    rung = 0
    try:
        with nothing_left():
            for _ in range(150):
                try:
                    signal.setitimer(signal.ITIMER_REAL, float(random.random()) * 0.02 + 0.0005)
                    parallel.init(100, "i8", number, workers=2)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except AlarmError:
                    rung += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung > 0


def test_nested_calls_run_in_the_worker_itself() -> None:
    def fill(out: Any, start: int) -> None:
        def inner(part: Any, begin: int) -> None:
            part[:] = os.getpid()

        out[:] = os.getpid() == parallel.init(8, "i8", inner, workers=4, chunk=1)[: len(out)]

    assert parallel.init(6, "u1", fill, workers=2, chunk=3).all()
    with parallel.pool(workers=2):
        assert parallel.init(6, "u1", fill, chunk=3).all()


def test_nested_calls_of_threads_run_in_the_thread_itself() -> None:
    def fill(out: Any, start: int) -> None:
        mine = threading.get_ident()

        def inner(part: Any, begin: int) -> None:
            part[:] = threading.get_ident() == mine

        out[:] = parallel.init(8, "u1", inner, chunk=1)[: len(out)]

    assert parallel.init(6, "u1", fill, workers=2, chunk=3, mode="thread").all()


def test_uneven_work_is_distributed_on_demand() -> None:
    def fill(out: Any, start: int) -> None:
        out[:] = os.getpid()
        if start == 0:
            while marks[0] < 99:
                time.sleep(0.001)
        marks[0] += 1

    marks = parallel.empty(1, "i8")
    found = parallel.init(100, "i8", fill, workers=2, chunk=1)
    assert (found == found[0]).sum() == 1


def test_a_pool_keeps_its_workers_and_replaces_the_dead(tmp_path: pathlib.Path) -> None:
    def both(name: str) -> list[int]:
        folder = tmp_path / name
        folder.mkdir()

        def pid(out: Any, start: int) -> None:
            (folder / str(os.getpid())).touch()
            while len(os.listdir(folder)) < 2:  # until the other one has its chunk
                time.sleep(0.001)
            out[:] = os.getpid()

        found: list[int] = sorted(parallel.init(2, "i8", pid, chunk=1).tolist())
        return found

    def end(out: Any, start: int) -> None:
        os._exit(1)

    with nothing_left(), parallel.pool(workers=2):
        first = both("first")
        assert both("again") == first
        with pytest.raises(quarrier.WorkerDiedError):
            parallel.init(8, "i8", end, chunk=1)
        later = both("later")
        assert later != first
        # An idle worker that was killed is replaced too.
        os.kill(later[0], signal.SIGKILL)
        time.sleep(0.05)
        assert parallel.init(8, "i8", number, on_error="retry").tolist() == list(range(8))


def test_pools_nest_and_the_innermost_is_used() -> None:
    def pid(out: Any, start: int) -> None:
        out[:] = os.getpid()

    with nothing_left(), parallel.pool(workers=1):
        outer = parallel.init(1, "i8", pid)[0]
        with parallel.pool(workers=1):
            assert parallel.init(1, "i8", pid)[0] != outer
        assert parallel.init(1, "i8", pid)[0] == outer


def test_captured_arrays_reach_a_pool_and_the_callers_stay_unchanged() -> None:
    captured = {"plain": np.arange(100_000), "reversed": np.arange(100_000)[::-1]}
    shared = parallel.empty(100_000, "i8")
    shared[:] = 5

    def fill(out: Any, start: int) -> None:
        stop = start + len(out)
        out[:] = captured["plain"][start:stop] + captured["reversed"][start:stop]
        out += np.asarray(shared)[start:stop]
        captured["plain"][:] = 0

    with parallel.pool(workers=1):
        found = parallel.init(100_000, "i8", fill, chunk=100_000)
    assert (found == 99_999 + 5).all()
    assert captured["plain"][-1] == 99_999


def test_progress_counts_up_to_the_total() -> None:
    reports: list[tuple[int, int]] = []

    def fill(out: Any, start: int) -> None:
        time.sleep(0.01)

    for mode in ("process", "thread"):
        reports.clear()
        parallel.init(
            50, "u1", fill, workers=2, chunk=1, mode=mode,  # type: ignore[arg-type]
            progress=lambda done, total: reports.append((done, total)),
        )  # fmt: skip
        assert reports[-1] == (50, 50)
        assert reports == sorted(reports)
        assert len(reports) > 2


def test_progress_that_raises_ends_the_call() -> None:
    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise StopError

    def fill(out: Any, start: int) -> None:
        time.sleep(0.1)

    before = children()
    with pytest.raises(StopError):
        parallel.init(1000, "u1", fill, workers=2, chunk=1, progress=stop)
    assert children() == before


def test_progress_by_tqdm_does_not_prevent_a_fork(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parallel.init(1000, "i8", number, workers=2, progress="tqdm")
    assert "1000/1000" in capsys.readouterr().err
    assert threading.active_count() == 1


def test_a_late_thread_is_an_error_at_once() -> None:
    release = threading.Event()

    def fill(out: Any, start: int) -> None:
        if start == 5:
            release.wait()

    with pytest.raises(quarrier.WorkerTimeoutError) as caught:
        parallel.init(10, "u1", fill, workers=2, chunk=1, mode="thread", timeout=0.1)
    assert caught.value.range == (5, 6)
    release.set()


def test_an_exception_in_a_thread_has_its_range() -> None:
    def fill(out: Any, start: int) -> None:
        if start == 5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        parallel.init(10, "u1", fill, workers=2, chunk=1, mode="thread")
    assert caught.value.quarrier_range == (5, 6)  # type: ignore[attr-defined]


def test_two_threads_may_call_at_once(other_thread: None) -> None:
    found: dict[int, Any] = {}

    def call(which: int) -> None:
        found[which] = parallel.init(1000, "i8", number, workers=2)

    with parallel.pool(workers=2):
        threads = [threading.Thread(target=call, args=(which,)) for which in range(4)]
        for thread in threads:
            thread.start()
        call(4)
        for thread in threads:
            thread.join()
    assert len(found) == 5
    assert all((array == np.arange(1000)).all() for array in found.values())


def test_output_of_a_kernel_is_printed_once() -> None:
    program = """
import sys
from quarrier import parallel
print("before", end=" ")
def fill(out, start):
    print("chunk", end=" ")
parallel.init(2, "u1", fill, workers=2, chunk=1)
print("after")
"""
    # The workers' words and blanks may interleave in any order.
    printed = run(program)
    assert [printed.count(word) for word in ("before", "chunk", "after")] == [1, 2, 1]
    assert printed.startswith("before ") and printed.endswith("after\n")


def test_a_library_for_linear_algebra_uses_one_thread_a_worker() -> None:
    import threadpoolctl

    def fill(out: Any, start: int) -> None:
        out[:] = max(pool["num_threads"] for pool in threadpoolctl.threadpool_info())

    assert (parallel.init(2, "i8", fill, workers=2) == 1).all()


def test_kernels_of_workers_do_not_draw_the_same_random_numbers() -> None:
    def fill(out: Any, start: int) -> None:
        out[:] = np.random.random()
        time.sleep(0.02)

    assert len(set(parallel.init(8, "f8", fill, workers=2, chunk=1).tolist())) == 8


def test_a_full_dev_shm_does_not_matter() -> None:
    program = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
made = libc.unshare(0x00020000) == 0
made = made and libc.mount(b"none", b"/", None, 0x44000, None) == 0
made = made and libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=1m") == 0
if not made:
    print("refused")
    sys.exit()
from quarrier import parallel
def fill(out, start):
    out[:] = 1
print(parallel.init(64 << 20, "u1", fill).sum(dtype="i8"), parallel.init(9000, "u1", fill).sum())
"""
    said = run(program)
    if said == "refused\n":
        pytest.skip("a mount namespace was refused")
    assert said == f"{64 << 20} 9000\n"


def test_a_worker_that_closes_all_its_descriptors_is_an_error() -> None:
    def fill(out: Any, start: int) -> None:
        os.closerange(3, 1000)

    with pytest.raises(quarrier.WorkerDiedError):
        parallel.init(4, "u1", fill, workers=2, chunk=1)


def test_a_numba_kernel_runs_in_processes_and_threads() -> None:
    import numba

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def fill(out: Any, start: int) -> None:
        for index in range(len(out)):
            out[index] = start + index

    fill(np.zeros(1, np.int64), 0)
    for mode in ("process", "thread"):
        found = parallel.init(10_000, "i8", fill, workers=2, mode=mode)  # type: ignore[arg-type]
        assert (found == np.arange(10_000)).all()
