"""Many threads use the same objects at once without a lock, as free-threaded Python allows.

The tests also run on interpreters with a lock, where fewer things happen at once.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import quarrier
from quarrier import ReadAhead, SparseFile, SparseStore, Table, parallel

THREADS = 8
SECONDS_MAX = 240


def at_once(*works: Callable[[], None]) -> None:
    """Runs all at the same time, and raises the first exception."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait(SECONDS_MAX)
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if failures:
        raise failures[0]


def test_the_import_does_not_turn_the_lock_on() -> None:
    code = (
        "import sys, quarrier, quarrier.parallel\n"
        "print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    is_free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert done.stdout == f"{not is_free}\n"


def test_threads_share_a_file_a_table_searches_and_arrays() -> None:
    data = np.random.default_rng(11).bytes(1 << 20)
    part = len(data) // THREADS
    file = SparseFile("shared")
    rows = 20_000
    lines = b"".join(b'{"n":%d,"s":"%d"}\n' % (n, n % 7) for n in range(rows))
    table = Table.from_messages(lines)
    haystack = b"needle " * 1000

    def fill(place: int) -> Callable[[], None]:
        def work() -> None:
            begin = place * part
            for at in range(begin, begin + part, 64):
                file.write(at, data[at : at + 64])
                assert file.read(at, 64) == data[at : at + 64]
                file.has(0, len(data))
                file.need(begin, 4096)

        return work

    def ask() -> None:
        for _ in range(20):
            assert len(table.query("SELECT n FROM m WHERE s = '3'")) == len(range(3, rows, 7))
            first, second = table.query_many(
                ["SELECT count(*) AS c FROM m WHERE n < 100", "SELECT n FROM m WHERE n = 7"]
            )
            assert first.to_pylist() == [{"c": 100}] and second.to_pylist() == [{"n": 7}]

    def find() -> None:
        for _ in range(20):
            assert len(quarrier.search(haystack, ["needle", quarrier.hex("6e 65 ??")])) == 2000

    def compute() -> None:
        def double(out: Any, values: Any) -> None:
            out[:] = values * 2

        values = np.arange(100_000)
        for _ in range(5):
            found = parallel.map(double, values, mode="thread", workers=2)
            assert (found == values * 2).all()

    def fork() -> None:
        def start_values(out: Any, start: int) -> None:
            out[:] = range(start, start + len(out))

        found = parallel.init(100_000, "i8", start_values, workers=2)
        assert (found == np.arange(100_000)).all()

    fills = [fill(place) for place in range(THREADS)]
    at_once(*fills, ask, ask, find, find, compute, compute, fork, fork)
    assert file.read(0, len(data)) == data
    assert file.num_blocks() == 1


def test_threads_take_each_finding_of_one_iterator_once() -> None:
    findings = quarrier.search(b"ab" * 20_000, ["a"])
    shared = iter(findings)
    taken: list[list[int]] = [[] for _ in range(THREADS)]

    def take(mine: list[int]) -> Callable[[], None]:
        return lambda: mine.extend(finding.offset for finding in shared)

    at_once(*(take(mine) for mine in taken))
    assert sorted(offset for mine in taken for offset in mine) == list(range(0, 40_000, 2))


def test_threads_make_long_lists_and_arrays_while_the_file_changes() -> None:
    file = SparseFile("holes")
    blocks = 3000
    for at in range(blocks):
        file.write(2 * at, b"x")
    end = 2 * blocks
    assert gc.isenabled()

    def lists() -> None:
        for _ in range(30):
            spans = file.need(0, end)
            assert spans == sorted(spans) and all(length == 1 for _, length in spans)

    def arrays() -> None:
        offsets = np.arange(0, end, 2, dtype="u8")
        for _ in range(30):
            bytes_read, starts = file.read_many(offsets, 1)
            assert bytes(bytes_read) == b"x" * blocks and len(starts) == blocks + 1

    def change() -> None:
        for at in range(blocks):
            file.write(end + 2 * at, b"y")
            file.write(2 * at, b"x")

    at_once(lists, lists, lists, arrays, arrays, change, change)
    # The lists are made without the collector, which must not stay off.
    assert gc.isenabled()


def test_threads_share_a_store_and_a_planner() -> None:
    store = SparseStore()
    planner = ReadAhead()
    wins: list[int] = []

    def insert(thread: int) -> Callable[[], None]:
        def work() -> None:
            for name in range(200):
                file = SparseFile(str(name))
                file.write(0, b"abc")
                try:
                    store.insert(file)
                    wins.append(name)
                except quarrier.QuarrierError:
                    pass
                shared = store[str(name)]
                assert shared.read(0, 3) == b"abc"
                planner.observe(1000 + thread, 0.01, 0.02)
                assert planner.plan(shared, 0, 3) == []

        return work

    at_once(*(insert(thread) for thread in range(THREADS)))
    assert sorted(wins) == list(range(200)), "each name was free for one thread"
    assert len(store) == 200


def test_threads_pass_one_stream_on_and_only_one_gets_it() -> None:
    table = Table.from_messages(b'{"n":1}\n{"n":2}\n')

    class Once:
        """Gives the same stream to everybody, as a reader that is read only once."""

        def __init__(self) -> None:
            self.stream = table.__arrow_c_stream__()

        def __arrow_c_stream__(self, _schema: object = None) -> object:
            return self.stream

    for _ in range(50):
        once = Once()
        got: list[int] = []
        refused: list[Exception] = []

        def take(once: Once, got: list[int], refused: list[Exception]) -> Callable[[], None]:
            def work() -> None:
                try:
                    got.append(len(Table.from_arrow(once)))
                except ValueError as error:
                    refused.append(error)

            return work

        at_once(*(take(once, got, refused) for _ in range(4)))
        assert got == [2] and len(refused) == 3
