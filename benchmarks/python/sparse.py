"""quarrier.SparseFile against svfsc.cSVF, call by call: sparse.py ROUNDS

Prints a line of JSON for each case: its name, the block size in bytes, the number of calls behind a figure, the
measurements of quarrier and of the rival in each round, their unit, and how many times as good quarrier must be.
In every round both take turns. Results are compared before anything is measured.
"""

from __future__ import annotations

import gc
import itertools
import json
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import svfsc

import quarrier

FILE_BYTES = 1 << 20
BLOCKS = (1, 8, 64, 512)
BULK = 1_000_000


class Case(NamedTuple):
    name: str
    block: int
    calls: int
    at_least: float | None
    ours: Callable[[], float]
    against: Callable[[], float]
    unit: str = "s"


def check(same: bool, what: str) -> None:
    if not same:
        sys.exit(f"sparse.py: WRONG RESULT: {what}; no time is given")


def seconds(work: Callable[[], Any]) -> Callable[[], float]:
    def timed() -> float:
        gc.collect()
        start = time.perf_counter()
        result = work()
        elapsed = time.perf_counter() - start
        del result
        return elapsed

    return timed


def data_of(block: int) -> bytes:
    return bytes(at % 251 for at in range(block))


def single_calls() -> Iterator[Case]:
    """Loops over a MiB, with adjacent blocks, or with gaps as long as the blocks."""
    for gap, how in [(0, "joined"), (1, "apart")]:
        for block in BLOCKS:
            offsets = list(range(0, FILE_BYTES, block * (1 + gap)))
            yield from calls_of(block, how, offsets)


def calls_of(block: int, how: str, offsets: list[int]) -> Iterator[Case]:
    data, count = data_of(block), len(offsets)

    def write(make: Callable[[str], Any]) -> Any:
        file = make("x")
        write = file.write
        for offset in offsets:
            write(offset, data)
        return file

    def each(method: Callable[[int, int], object]) -> None:
        for offset in offsets:
            method(offset, block)

    ours, theirs = write(quarrier.SparseFile), write(svfsc.cSVF)
    check(tuple(ours.blocks()) == theirs.blocks(), f"blocks {how} of {block}")
    for offset in offsets:
        check(ours.read(offset, block) == theirs.read(offset, block) == data, "a read")
        check(ours.has(offset, block) and theirs.has_data(offset, block), "has")
        check(ours.need(offset, block) == theirs.need(offset, block) == [], "need of nothing")
    cases = [
        ("write", lambda: write(quarrier.SparseFile), lambda: write(svfsc.cSVF)),
        ("read", lambda: each(ours.read), lambda: each(theirs.read)),
        ("has", lambda: each(ours.has), lambda: each(theirs.has_data)),
        ("need of nothing", lambda: each(ours.need), lambda: each(theirs.need)),
    ]
    for name, our_work, their_work in cases:
        yield Case(f"{name}, {how}", block, count, 1, seconds(our_work), seconds(their_work))


def apart(make: Callable[[str], Any], block: int) -> Any:
    file = make("x")
    for offset in range(0, FILE_BYTES, 2 * block):
        file.write(offset, data_of(block))
    return file


def needs() -> Iterator[Case]:
    """Finds all missing ranges of a MiB of which every second block is held."""
    for block in (1, 64):
        ours, theirs = apart(quarrier.SparseFile, block), apart(svfsc.cSVF, block)
        wanted = theirs.need(0, FILE_BYTES)
        offsets, lengths = ours.need_many_arrays([0], [FILE_BYTES])
        check(ours.need(0, FILE_BYTES) == wanted, "need")
        check(list(zip(offsets.tolist(), lengths.tolist(), strict=True)) == wanted, "need_arrays")
        as_list = 10 if block == 1 else None
        as_arrays = 50 if block == 1 else None

        def list_of(file: Any) -> Callable[[], float]:
            return seconds(lambda: file.need(0, FILE_BYTES))

        def arrays_of(file: Any) -> Callable[[], float]:
            return seconds(lambda: file.need_many_arrays([0], [FILE_BYTES]))

        yield Case("need of a MiB, list", block, 1, as_list, list_of(ours), list_of(theirs))
        yield Case("need of a MiB, arrays", block, 1, as_arrays, arrays_of(ours), list_of(theirs))


def floor() -> Iterator[Case]:
    """A list of as many tuples, made by the interpreter itself without collecting garbage."""
    theirs = apart(svfsc.cSVF, 1)

    def make() -> list[tuple[int, int]]:
        return list(zip(range(1, FILE_BYTES, 2), itertools.repeat(1)))

    check(make() == theirs.need(0, FILE_BYTES), "the interpreter's list")
    timed = seconds(make)

    def undisturbed() -> float:
        gc.disable()
        try:
            return timed()
        finally:
            gc.enable()

    against = seconds(lambda: theirs.need(0, FILE_BYTES))
    yield Case("(such a list by zip and range)", 1, 1, None, undisturbed, against)


def descending() -> Iterator[Case]:
    block, count = 64, 8192
    data = data_of(block)

    def write(make: Callable[[str], Any]) -> Any:
        file = make("x")
        for at in range(count - 1, -1, -1):
            file.write(at * block, data)
        return file

    ours, theirs = write(quarrier.SparseFile), write(svfsc.cSVF)
    check(ours.read(0, block * count) == theirs.read(0, block * count), "descending writes")
    yield Case(
        "write, descending",
        block,
        count,
        100,
        seconds(lambda: write(quarrier.SparseFile)),
        seconds(lambda: write(svfsc.cSVF)),
    )


def bulk() -> Iterator[Case]:
    """A million separate blocks of one byte."""
    offsets = np.arange(0, 2 * BULK, 2, dtype=np.uint64)
    lengths = np.ones(BULK, dtype=np.uint64)
    offset_list = offsets.tolist()
    data = np.random.default_rng(1).bytes(BULK)

    def our_write() -> quarrier.SparseFile:
        file = quarrier.SparseFile("x")
        file.write_many(offsets, lengths, data)
        return file

    def their_write() -> Any:
        file = svfsc.cSVF("x")
        write = file.write
        for at, offset in enumerate(offset_list):
            write(offset, data[at : at + 1])
        return file

    ours, theirs = our_write(), their_write()
    check(tuple(ours.blocks()) == theirs.blocks(), "write_many")

    def their_read() -> None:
        read = theirs.read
        for offset in offset_list:
            read(offset, 1)

    check(ours.read_many(offsets, lengths)[0].tobytes() == data, "read_many")
    check(b"".join(theirs.read(offset, 1) for offset in offset_list) == data, "read")
    read = seconds(lambda: ours.read_many(offsets, lengths))
    yield Case("read_many, apart", 1, BULK, 20, read, seconds(their_read))
    yield Case("write_many, apart", 1, BULK, None, seconds(our_write), seconds(their_write))
    yield Case(
        "two threads, read_many",
        1,
        BULK,
        1.8,
        *two_threads(lambda: ours.read_many(offsets, lengths), 3),
    )
    big = quarrier.SparseFile("big")
    big.write(0, bytes(64 << 20))
    rooms = threading.local()

    def read_big() -> None:
        if not hasattr(rooms, "room"):
            rooms.room = bytearray(1 << 20)
        for at in range(0, 64 << 20, 1 << 20):
            big.read_into(at, rooms.room)

    yield Case("two threads, read_into", 1 << 20, 64, 1.8, *two_threads(read_big, 8))


def two_threads(work: Callable[[], object], repeats: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """The time of two threads for twice the work of one, and twice the time of one."""

    def many() -> None:
        for _ in range(repeats):
            work()

    def run(count: int) -> None:
        threads = [threading.Thread(target=many) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    one = seconds(lambda: run(1))
    return seconds(lambda: run(2)), lambda: 2 * one()


MEMORY = """
import resource, sys
import {module} as module
file = module.{kind}("x")
data = [bytes([byte]) for byte in range(256)]
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()
before = resident()
for at in range({count}):
    file.write(2 * at, data[at & 255])
assert file.num_blocks() == file.num_bytes() == {count}
print((resident() - before) / {count})
"""


def memory() -> Iterator[Case]:
    """The growth of the process for each separate block of one byte."""

    def bytes_of(module: str, kind: str) -> Callable[[], float]:
        program = MEMORY.format(module=module, kind=kind, count=BULK)

        def measured() -> float:
            done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
            return float(done.stdout)

        return measured

    ours, theirs = bytes_of("quarrier", "SparseFile"), bytes_of("svfsc", "cSVF")
    yield Case("memory of a block", 1, 1, 10, ours, theirs, "B")


def main() -> None:
    rounds = int(sys.argv[1])
    built = pathlib.Path(quarrier.__file__).parent
    print(json.dumps({"quarrier": str(built), "python": sys.version.split()[0]}), file=sys.stderr)
    for group in (single_calls, needs, floor, descending, bulk, memory):
        for case in group():
            ours, against = [], []
            for _ in range(rounds):
                ours.append(case.ours() / case.calls)
                against.append(case.against() / case.calls)
            line = case._asdict() | {"ours": ours, "against": against}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
