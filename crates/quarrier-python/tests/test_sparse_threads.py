"""Many threads on one file, and leaks."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import quarrier
from quarrier import SparseFile, SparseStore

TOGETHER_SECONDS_MAX = 60


def together(*works: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TOGETHER_SECONDS_MAX)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if failures:
        raise failures[0]


def in_store() -> SparseFile:
    store = SparseStore()
    store.insert(SparseFile("x"))
    return store["x"]


@pytest.mark.parametrize("make", [SparseFile, in_store])
def test_reads_and_writes_of_all_sizes_at_once_give_the_right_bytes(make) -> None:
    file = make()
    data = np.random.default_rng(5).bytes(4 << 20)
    block = 256 << 10
    file.write(0, data)

    def write_far() -> None:
        for at in range(0, len(data), block):
            file.write((1 << 40) + at, data[at : at + block])

    def write_small() -> None:
        for at in range(3000):
            file.write((1 << 41) + 2 * at, b"x")

    def read_big() -> None:
        for at in range(0, len(data), block):
            assert file.read(at, block) == data[at : at + block]

    def read_small() -> None:
        for at in range(0, 200_000, 61):
            assert file.read(at, 61) == data[at : at + 61]

    def read_many() -> None:
        offsets = np.arange(0, 1 << 20, 16)
        for _ in range(20):
            assert file.read_many(offsets, 16)[0].tobytes() == data[: 1 << 20]

    def need() -> None:
        for _ in range(200):
            missing = file.need(1 << 41, 6000)
            assert all(length > 0 for _, length in missing)
            file.need_many_arrays([1 << 41], [6000])

    together(write_far, write_small, read_big, read_small, read_many, need)
    assert file.num_bytes() == 2 * len(data) + 3000
    assert file.read(1 << 40, len(data)) == data


def test_a_thread_that_waits_for_a_long_write_does_not_stop_others() -> None:
    file = SparseFile(on_conflict="replace")
    data = bytearray(16 << 20)

    def write() -> None:
        for _ in range(8):
            file.write(0, data)

    def read() -> None:
        for _ in range(20):
            file.has(0, 1)
            file.need(0, 100)

    together(write, read, read, write)
    assert file.num_bytes() == len(data)


class Looks:
    """An object in a cycle, so that the garbage collector finalizes it; it then uses the file."""

    def __init__(self, file: SparseFile, seen: list[int]) -> None:
        self.file, self.seen, self.cycle = file, seen, self

    def __del__(self) -> None:
        self.seen.append(self.file.num_bytes())
        self.file.write(1 << 50, b"x")


def test_a_finalizer_may_use_the_file_while_a_list_is_made() -> None:
    file = SparseFile()
    for offset in range(0, 1200, 2):
        file.write(offset, b"x")
    seen: list[int] = []
    for _ in range(300):
        Looks(file, seen)
        file.need(0, 1200)
        file.blocks()
    gc.collect()
    assert len(seen) == 300


def test_calls_leak_no_memory() -> None:
    file = SparseFile("x")
    file.write(0, bytes(1000))
    room = bytearray(10)
    offsets = np.arange(10)

    def once() -> None:
        file.read(1, 1)
        file.read(1, 500)
        file.read_into(1, room)
        file.has(1, 5)
        file.write(0, room)
        file.write(0, bytes(10))
        file.need(990, 100)
        file.need_many([(990, 100), (5000, 2**64 - 6000)])
        file.need_many_arrays(offsets, offsets)
        file.read_many(offsets, 3)
        file.write_many(offsets, 1, bytes(10))
        file.blocks()
        file.counters()
        SparseFile.from_bytes(file.to_bytes())
        for wrong in (
            lambda: file.read(990, 100),
            lambda: file.write(0, b"x"),
            lambda: file.read(-1, 1),
            lambda: file.write(0, "text"),
            lambda: file.read_many([-1], 1),
        ):
            try:
                wrong()
            except (quarrier.QuarrierError, TypeError):
                pass
            else:
                raise AssertionError("no error")

    for _ in range(20):
        once()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(200):
            once()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(2000):
            once()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # If each call lost an object, there would be 2000.
    assert after - before < 2000 * 16
