"""The two kernels, and the ways to run them that `parallel.py` compares.

k1 is the mean of two bytes; k2 the mean of two means of 11 elements, with zeros beyond the ends. All means are
rounded down.

Run as a program, it is one way: parallel_ways.py WAY FILE FILE BYTES WORKERS. It reads the inputs, then executes
the commands in its standard input (`k1 cold`, `k2 warm`, `check k1`), and answers each with a line of JSON.
Cold: the output is new memory each time. Warm: it is the same memory each time.

Each way imports its own modules, so that their memory is not charged to the others.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from multiprocessing.shared_memory import SharedMemory

HALO = 5
# The block size for numpy: the best of 16 to 256 KiB. Intermediate results should stay in the cache, and the
# allocator returns larger ones to the system each time.
BLOCKS = {"k1": 64 * 1024, "k2": 32 * 1024}
# The bytes of one task of a pool's process.
TASK = 4 << 20

Array = npt.NDArray[np.uint8]


def mean_of_two(out: Array, a: Array, b: Array) -> None:
    """k1 of slices: exact in bytes, without wider intermediate values."""
    between = a ^ b
    between >>= 1
    np.bitwise_and(a, b, out=out)
    out += between


def window_sums(values: Array, lead: int, count: int) -> npt.NDArray[np.uint16]:
    """The sums of 11 around each of `count` elements, preceded by `lead` of them."""
    wide = np.zeros(count + 2 * HALO, np.uint16)
    gap = HALO - lead
    wide[gap : gap + len(values)] = values
    two = wide[:-1] + wide[1:]
    four = two[:-2] + two[2:]
    sums = (four[:-4] + four[4:])[:count]
    sums += two[8 : count + 8]
    sums += wide[10 : count + 10]
    return sums


def window_means(out: Array, lead: int, a: Array, b: Array) -> None:
    """k2 of slices with up to 5 neighbours on both sides."""
    means = window_sums(a, lead, len(out))
    means //= 11
    others = window_sums(b, lead, len(out))
    others //= 11
    means += others
    means >>= 1
    out[:] = means


def fill(
    kernel: str,
    out: Array,
    a: Array,
    b: Array,
    first: int,
    last: int,
    block: int | None = None,
) -> None:
    """out[first:last] from whole inputs, a block of elements at a time."""
    block = BLOCKS[kernel] if block is None else block
    for start in range(first, last, block):
        end = min(start + block, last)
        if kernel == "k1":
            mean_of_two(out[start:end], a[start:end], b[start:end])
        else:
            low, high = max(start - HALO, 0), min(end + HALO, len(a))
            window_means(out[start:end], start - low, a[low:high], b[low:high])


class Way:
    """One way, with its inputs. `run` fills `out`, or new memory, and returns it."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        self.a, self.b, self.workers = a, b, workers

    def new(self) -> Array:
        return np.empty(len(self.a), np.uint8)

    def run(self, kernel: str, out: Array | None) -> Array:
        raise NotImplementedError

    def begin(self) -> None:
        """Starts long-lived processes; the original inputs are gone by now."""

    def token(self, out: Array) -> Any:
        """The argument for `free` once the array is gone."""

    def free(self, token: Any) -> None:
        """Frees resources that do not go away with the array."""

    def close(self) -> None:
        """Ends processes and removes files."""


class Whole(Way):
    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        fill(kernel, out, self.a, self.b, 0, len(self.a), max(len(self.a), 1))
        return out


class Blocks(Way):
    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        fill(kernel, out, self.a, self.b, 0, len(self.a))
        return out


def shares(length: int, workers: int) -> list[tuple[int, int]]:
    size = -(-length // workers)
    return [(start, min(start + size, length)) for start in range(0, length, size)]


class Threads(Way):
    def run(self, kernel: str, out: Array | None) -> Array:
        from threading import Thread

        filled = self.new() if out is None else out
        threads = [
            Thread(target=fill, args=(kernel, filled, self.a, self.b, *share))
            for share in shares(len(self.a), self.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return filled


class Fork(Way):
    """The older system's way: fork, and fill a shared mapping of 4 KiB pages."""

    def new(self) -> Array:
        from mmap import mmap

        return np.frombuffer(mmap(-1, len(self.a)), np.uint8)

    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        children = []
        for first, last in shares(len(self.a), self.workers):
            child = os.fork()
            if child == 0:
                fill(kernel, out, self.a, self.b, first, last)
                os._exit(0)
            children.append(child)
        for child in children:
            if os.waitpid(child, 0)[1] != 0:
                sys.exit("a child failed")
        return out


class Numba(Way):
    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        import numba

        numba.set_num_threads(workers)

        @numba.njit(parallel=True)
        def k1(out: Array, a: Array, b: Array) -> None:
            for at in numba.prange(len(out)):
                out[at] = (np.uint16(a[at]) + np.uint16(b[at])) >> 1

        @numba.njit(parallel=True)
        def k2(out: Array, a: Array, b: Array) -> None:
            tasks = (len(out) + 65535) // 65536
            for task in numba.prange(tasks):
                first, last = task * 65536, min((task + 1) * 65536, len(out))
                sum_a, sum_b = np.uint32(0), np.uint32(0)
                for at in range(max(first - 5, 0), min(first + 5, len(out))):
                    sum_a += np.uint32(a[at])
                    sum_b += np.uint32(b[at])
                for at in range(first, last):
                    if at + 5 < len(out):
                        sum_a += np.uint32(a[at + 5])
                        sum_b += np.uint32(b[at + 5])
                    out[at] = (sum_a // np.uint32(11) + sum_b // np.uint32(11)) >> 1
                    if at >= 5:
                        sum_a -= np.uint32(a[at - 5])
                        sum_b -= np.uint32(b[at - 5])

        self.kernels: dict[str, Callable[..., None]] = {"k1": k1, "k2": k2}
        for kernel in self.kernels.values():
            kernel(np.empty(100, np.uint8), a[:100], b[:100])

    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        self.kernels[kernel](out, self.a, self.b)
        return out


# The inputs, which the processes of a pool inherit by fork.
INPUTS: list[Array] = []


def tasks(length: int) -> list[tuple[int, int]]:
    return [(start, min(start + TASK, length)) for start in range(0, length, TASK)]


def pickled_task(task: tuple[str, int, int]) -> Array:
    kernel, first, last = task
    a, b = INPUTS
    part = np.empty(last - first, np.uint8)
    block = BLOCKS[kernel]
    for start in range(first, last, block):
        end = min(start + block, last)
        low, high = max(start - HALO, 0), min(end + HALO, len(a))
        out = part[start - first : end - first]
        if kernel == "k1":
            mean_of_two(out, a[start:end], b[start:end])
        else:
            window_means(out, start - low, a[low:high], b[low:high])
    return part


class Pool(Way):
    """multiprocessing.Pool, started before; it inherits the inputs by fork and sends results back."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        import multiprocessing
        from multiprocessing import resource_tracker

        INPUTS[:] = [a, b]
        # Otherwise each process of the pool would start one.
        resource_tracker.ensure_running()
        self.pool = multiprocessing.get_context("fork").Pool(workers)

    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        spans = tasks(len(self.a))
        parts = self.pool.imap(pickled_task, [(kernel, *span) for span in spans])
        for (first, last), part in zip(spans, parts, strict=True):
            out[first:last] = part
        return out


def named_task(task: tuple[str, str, int, int]) -> None:
    from multiprocessing.shared_memory import SharedMemory

    name, kernel, first, last = task
    a, b = INPUTS
    memory = SharedMemory(name)
    try:
        out = np.frombuffer(memory.buf, np.uint8)
        fill(kernel, out, a, b, first, last)
        del out
    finally:
        memory.close()


class PoolShared(Pool):
    """The same pool; results go to multiprocessing.shared_memory, which is then unlinked."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        self.held: dict[int, SharedMemory] = {}

    def new(self) -> Array:
        from multiprocessing.shared_memory import SharedMemory

        memory = SharedMemory(create=True, size=len(self.a))
        out = np.frombuffer(memory.buf, np.uint8, len(self.a))
        self.held[out.ctypes.data] = memory
        return out

    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        name = self.held[out.ctypes.data].name
        self.pool.map(named_task, [(name, kernel, *span) for span in tasks(len(self.a))], 1)
        return out

    def token(self, out: Array) -> Any:
        return out.ctypes.data

    def free(self, token: Any) -> None:
        memory = self.held.pop(token)
        memory.close()
        memory.unlink()

    def close(self) -> None:
        for token in list(self.held):
            self.free(token)


class Joblib(Way):
    """joblib with memmaps in /dev/shm: those of the inputs are made before."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        import tempfile

        import joblib

        self.joblib = joblib
        self.folder = tempfile.mkdtemp(prefix="quarrier-bench-", dir="/dev/shm")
        self.count = 0
        self.mapped = []
        for name, values in [("a", a), ("b", b)]:
            joblib.dump(values, f"{self.folder}/{name}")
            self.mapped.append(joblib.load(f"{self.folder}/{name}", mmap_mode="r"))
        # The inputs are in the folder by now.
        self.a, self.b = self.mapped
        self.parallel = joblib.Parallel(n_jobs=workers)
        self.parallel.__enter__()

    def new(self) -> Array:
        self.count += 1
        path = f"{self.folder}/out{self.count}"
        return np.memmap(path, np.uint8, "w+", shape=(len(self.a),))

    def token(self, out: Array) -> Any:
        return out.filename  # type: ignore[attr-defined]

    def free(self, token: Any) -> None:
        os.unlink(token)

    def run(self, kernel: str, out: Array | None) -> Array:
        out = self.new() if out is None else out
        work = self.joblib.delayed(fill)
        self.parallel(
            work(kernel, out, self.a, self.b, first, last) for first, last in shares(len(self.a), 4 * self.workers)
        )
        return out

    def close(self) -> None:
        import shutil

        shutil.rmtree(self.folder, ignore_errors=True)


class Quarrier(Way):
    """Workers are forked for each call."""

    mode = "process"
    kernels: Mapping[str, Callable[..., None]] = {"k1": mean_of_two, "k2": window_means}

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        import quarrier.parallel

        self.parallel = quarrier.parallel

    def new(self) -> Array:
        def touch(out: Array, start: int) -> None:
            out[:] = 1

        return self.parallel.init(len(self.a), np.uint8, touch)  # type: ignore[no-any-return]

    def run(self, kernel: str, out: Array | None) -> Array:
        return self.parallel.map(  # type: ignore[no-any-return]
            self.kernels[kernel],
            self.a,
            self.b,
            out=out,
            halo=0 if kernel == "k1" else HALO,
            workers=self.workers,
            mode=self.mode,
        )

    def start(self) -> float:
        """The seconds until a kernel runs, with the first input captured."""
        a = self.a

        def now(out: npt.NDArray[np.float64], start: int) -> None:
            # All processes share this clock.
            out[:] = time.perf_counter() + 0 * a[0]

        called = time.perf_counter()
        begun = self.parallel.init(self.workers, np.float64, now, workers=self.workers, chunk=1)
        return float(begun.min()) - called


class QuarrierPool(Quarrier):
    """Workers stay between calls, and the inputs are in shared arrays."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        self.a, self.b = self.shared(a), self.shared(b)

    def begin(self) -> None:
        self.pool = self.parallel.pool(workers=self.workers)
        self.pool.__enter__()

    def shared(self, values: Array) -> Array:
        def copy(out: Array, start: int) -> None:
            out[:] = values[start : start + len(out)]

        return self.parallel.init(len(values), np.uint8, copy)  # type: ignore[no-any-return]

    def close(self) -> None:
        self.pool.__exit__(None, None, None)


def kernels_of_numba() -> dict[str, Callable[..., None]]:
    """The loops of `Numba` over slices."""
    import numba

    @numba.njit
    def k1(out: Array, a: Array, b: Array) -> None:
        for at in range(len(out)):
            out[at] = (np.uint16(a[at]) + np.uint16(b[at])) >> 1

    @numba.njit
    def k2(out: Array, lead: int, a: Array, b: Array) -> None:
        sum_a, sum_b = np.uint32(0), np.uint32(0)
        for at in range(min(lead + 5, len(a))):
            sum_a += np.uint32(a[at])
            sum_b += np.uint32(b[at])
        for at in range(len(out)):
            after = at + lead + 5
            if after < len(a):
                sum_a += np.uint32(a[after])
                sum_b += np.uint32(b[after])
            out[at] = (sum_a // np.uint32(11) + sum_b // np.uint32(11)) >> 1
            if at + lead >= 5:
                sum_a -= np.uint32(a[at + lead - 5])
                sum_b -= np.uint32(b[at + lead - 5])

    few = np.zeros(100, np.uint8)
    k1(few, few, few)
    k2(few, 0, few, few)
    return {"k1": k1, "k2": k2}


class QuarrierNumba(Quarrier):
    """Workers are forked with compiled kernels."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        self.kernels = kernels_of_numba()


class QuarrierPoolNumba(QuarrierPool):
    """Each worker compiles them again."""

    def __init__(self, a: Array, b: Array, workers: int) -> None:
        super().__init__(a, b, workers)
        self.kernels = kernels_of_numba()


class QuarrierThreads(Quarrier):
    mode = "thread"


WAYS: dict[str, type[Way]] = {
    "quarrier": Quarrier,
    "quarrier, pool": QuarrierPool,
    "quarrier, numba": QuarrierNumba,
    "quarrier, pool, numba": QuarrierPoolNumba,
    "quarrier, threads": QuarrierThreads,
    "numpy": Whole,
    "numpy in blocks": Blocks,
    "numpy in blocks, threads": Threads,
    "numba prange": Numba,
    "fork, shared mapping": Fork,
    "Pool, shared_memory": PoolShared,
    "Pool, results pickled": Pool,
    "joblib, memmaps": Joblib,
}


def check(kernel: str, a: Array, b: Array, out: Array) -> dict[str, int]:
    """Compares with numpy, a MiB at a time, and adds up checksums for programs in other languages."""
    step = 1 << 20
    total = weighted = 0
    weights = np.arange(step, dtype=np.uint64) & np.uint64(255)
    for start in range(0, len(out), step):
        part = out[start : start + step]
        if kernel == "k1":
            pair = a[start : start + step].astype(np.uint16) + b[start : start + step]
            wanted = (pair // 2).astype(np.uint8)
        else:
            means = []
            for values in (a, b):
                low, high = max(start - HALO, 0), min(start + step + HALO, len(a))
                around = np.zeros(len(part) + 2 * HALO, np.uint16)
                around[HALO - (start - low) :][: high - low] = values[low:high]
                windows = np.zeros(len(part), np.uint16)
                for shift in range(2 * HALO + 1):
                    windows += around[shift : shift + len(part)]
                means.append(windows // 11)
            wanted = ((means[0] + means[1]) // 2).astype(np.uint8)
        if not np.array_equal(part, wanted):
            at = start + int(np.argmax(part != wanted))
            sys.exit(f"WRONG RESULT: {kernel} at {at}: {out[at]}, not {wanted[at - start]}")
        total += int(part.sum(dtype=np.uint64))
        weighted += int((part * weights[: len(part)]).sum())
    return {"sum": total, "weighted": weighted}


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - start, result


def serve(way: Way) -> None:
    way.begin()
    warm: Array | None = None
    for line in sys.stdin:
        what, which = line.split()
        if warm is None and (what == "check" or which == "warm"):
            warm = way.run("k1", None)
        answer: dict[str, float]
        if what == "check":
            answer = check(which, way.a, way.b, way.run(which, warm))
        elif what == "start":
            assert isinstance(way, Quarrier)
            whole, begun = timed(way.start)
            answer = {"seconds": begun, "whole_seconds": whole}
        elif which == "warm":
            answer = {"seconds": timed(way.run, what, warm)[0]}
        else:
            seconds, out = timed(way.run, what, None)
            answer = {"seconds": seconds}
            token = way.token(out)
            del out
            way.free(token)
        print(json.dumps(answer), flush=True)
    del warm
    way.close()


def main() -> None:
    name, first, second, count, workers = sys.argv[1:]

    def read(path: str) -> Array:
        return np.fromfile(path, np.uint8, int(count))

    # No variable refers to the inputs: a contender may store them elsewhere.
    serve(WAYS[name](read(first), read(second), int(workers)))


if __name__ == "__main__":
    main()
