"""quarrier.parallel.stencil compared with scipy.ndimage, numpy and numba: medians of rounds in turns.

stencil.py [--rounds N] [--size N] [--only WORD] [--json FILE]

Every result is compared with scipy's before a time is taken. numpy runs the same kernel over the whole padded
array. The ceiling is two processes that share nothing, each with half of the array, compared with one after the
other. Ends with status 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import atexit
import contextvars
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from quarrier import parallel

WORKERS = 2
ONE, TWO = "quarrier, 1 worker", "quarrier, 2 workers"
Array = npt.NDArray[Any]
Work = Callable[[Array, Array], object]
GAUSS = ndimage.gaussian_filter1d(np.eye(1, 9, 4)[0], 1.5, radius=4)


class Case(NamedTuple):
    name: str
    halo: int
    axes: int
    kernel: Callable[[Any, Any], object]
    scipy: Work


def laplace(out: Any, block: Any) -> None:
    middle = block[(slice(1, -1),) * block.ndim]
    np.multiply(middle, -2 * block.ndim, out=out)
    for axis in range(block.ndim):
        for side in (slice(None, -2), slice(2, None)):
            key = [slice(1, -1)] * block.ndim
            key[axis] = side
            out += block[tuple(key)]


def gauss(out: Any, block: Any) -> None:
    rows = GAUSS[0] * block[:-8]
    for at in range(1, 9):
        rows += GAUSS[at] * block[at : block.shape[0] - 8 + at]
    np.multiply(rows[:, :-8], GAUSS[0], out=out)
    for at in range(1, 9):
        out += GAUSS[at] * rows[:, at : rows.shape[1] - 8 + at]


# Paeth's exchanges, after which the fifth of nine numbers is the median.
EXCHANGES = [(1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3)]
EXCHANGES += [(5, 8), (4, 7), (3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2)]


def median(out: Any, block: Any) -> None:
    height, width = out.shape
    nine = [block[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    for low, high in EXCHANGES:
        nine[low], nine[high] = np.minimum(nine[low], nine[high]), np.maximum(nine[low], nine[high])
    out[:] = nine[4]


# Numba starts threads, after which nothing can be forked, so it has a separate case and process.
NUMBA = "laplace, 2-D, numba"
CASES = [
    Case(NUMBA, 1, 2, laplace, lambda a, out: ndimage.laplace(a, out)),
    Case("laplace, 2-D", 1, 2, laplace, lambda a, out: ndimage.laplace(a, out)),
    Case("laplace, 3-D", 1, 3, laplace, lambda a, out: ndimage.laplace(a, out)),
    Case("gauss 9 x 9", 4, 2, gauss, lambda a, out: ndimage.gaussian_filter(a, 1.5, 0, out, radius=4)),
    Case("median 3 x 3", 1, 2, median, lambda a, out: ndimage.median_filter(a, 3, output=out)),
]


def numba_laplace() -> tuple[Any, Any]:
    """A kernel for tiles, and numba's own loop over a padded array."""
    import numba

    @numba.njit
    def kernel(out: Any, block: Any) -> None:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = (
                    block[i, j + 1]
                    + block[i + 2, j + 1]
                    + block[i + 1, j]
                    + block[i + 1, j + 2]
                    - 4 * block[i + 1, j + 1]
                )

    @numba.njit(parallel=True)
    def whole(out: Any, block: Any) -> None:
        for i in numba.prange(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = (
                    block[i, j + 1]
                    + block[i + 2, j + 1]
                    + block[i + 1, j]
                    + block[i + 1, j + 2]
                    - 4 * block[i + 1, j + 1]
                )

    numba.set_num_threads(WORKERS)
    return kernel, whole


def ways(case: Case) -> dict[str, Work]:
    def padded(kernel: Callable[[Any, Any], object]) -> Work:
        return lambda a, out: kernel(out, np.pad(a, case.halo, "symmetric"))

    def tiles(kernel: Callable[[Any, Any], object], **options: Any) -> Work:
        return lambda a, out: parallel.stencil(kernel, a, case.halo, out=out, **options)

    def pooled(workers: int) -> Work:
        # Each way has its own context, in which its pool stays.
        context = contextvars.copy_context()
        pool = parallel.pool(workers)
        context.run(pool.__enter__)
        atexit.register(context.run, pool.__exit__, None, None, None)
        work = tiles(case.kernel, workers=workers)
        return lambda a, out: context.run(work, a, out)

    if case.name == NUMBA:
        kernel, whole = numba_laplace()
        return {
            "scipy.ndimage": case.scipy,
            "numba prange, whole array": padded(whole),
            ONE: tiles(kernel, workers=1, worker_mode="thread"),
            TWO: tiles(kernel, workers=WORKERS, worker_mode="thread"),
        }
    return {
        "scipy.ndimage": case.scipy,
        "numpy, whole array": padded(case.kernel),
        ONE: pooled(1),
        TWO: pooled(WORKERS),
        "quarrier, 2 workers, started for the call": tiles(case.kernel, workers=WORKERS),
        "quarrier, 2 threads": tiles(case.kernel, workers=WORKERS, worker_mode="thread"),
    }


def input_of(case: Case, size: int) -> Array:
    shape = (size, size) if case.axes == 2 else (round(size ** (2 / 3)),) * 3
    array: Array = parallel.empty(shape)
    array[:] = np.random.default_rng(1).random(shape)
    return array


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def ceiling(case: Case, array: Array) -> float:
    """The speed-up of two processes that share nothing over one."""
    half = np.array(array[: len(array) // 2])
    pipes, processes = [], []

    def serve(end: Any, cpu: int) -> None:
        os.sched_setaffinity(0, {cpu})
        mine, out = np.pad(half, case.halo, "symmetric"), np.empty_like(half)
        rows = 32
        while end.recv():
            begin = time.perf_counter()
            for at in range(0, len(out), rows):
                part = out[at : at + rows]
                case.kernel(part, mine[at : at + len(part) + 2 * case.halo])
            end.send(time.perf_counter() - begin)

    context = multiprocessing.get_context("fork")
    cpus = sorted(os.sched_getaffinity(0))
    for number in range(WORKERS):
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, cpus[number % len(cpus)]))
        process.start()
        pipes.append(ours)
        processes.append(process)

    def run(chosen: list[Any]) -> list[float]:
        for pipe in chosen:
            pipe.send(True)
        return [pipe.recv() for pipe in chosen]

    run(pipes)
    alone, together = [], []
    for _ in range(3):
        alone.append(sum(run([pipe])[0] for pipe in pipes))
        together.append(max(run(pipes)))
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(False)
        process.join()
    return statistics.median(alone) / statistics.median(together)


def check(case: Case, way: str, found: Array, expected: Array) -> None:
    if not np.allclose(found, expected, rtol=1e-12, atol=1e-12):
        sys.exit(f"stencil.py: WRONG RESULT: {case.name} of {way}; no time is given")


def measure(case: Case, size: int, rounds: int) -> dict[str, Any]:
    array = input_of(case, size)
    expected = np.empty(array.shape)
    case.scipy(np.asarray(array), expected)
    out = parallel.empty(array.shape)
    chosen = ways(case)
    times: dict[str, list[float]] = {name: [] for name in chosen}
    # Compare one worker with two in the same round, and likewise the processes of the ceiling.
    ceilings = []
    for name, work in chosen.items():
        out[:] = 0
        work(array, out)
        check(case, name, out, expected)
    for _ in range(rounds):
        for name, work in chosen.items():
            times[name].append(seconds(lambda work=work: work(array, out)))  # type: ignore[misc]
        ceilings.append(ceiling(case, array))
    scaling = [
        one / two for one, two in zip(times["quarrier, 1 worker"], times["quarrier, 2 workers"], strict=True)
    ]
    return {
        "case": case.name,
        "shape": array.shape,
        "seconds": times,
        "two_workers_times_one": statistics.median(scaling),
        "two_processes_times_one": statistics.median(ceilings),
    }


def show(record: dict[str, Any]) -> None:
    shape = " x ".join(map(str, record["shape"]))
    print(f"\n{record['case']}, {shape} float64\n")
    print("| way | ms | times as fast as scipy |\n|---|--:|--:|")
    scipy = record["seconds"]["scipy.ndimage"]
    for name, times in record["seconds"].items():
        faster = statistics.median(a / b for a, b in zip(scipy, times, strict=True))
        print(f"| {name} | {1e3 * statistics.median(times):.0f} | {faster:.2f} |")
    two, most = record["two_workers_times_one"], record["two_processes_times_one"]
    print(f"\n2 workers are {two:.2f} times as fast as 1 (processes that share nothing: {most:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        case = next(case for case in CASES if case.name == options.case)
        print(json.dumps(measure(case, options.size, options.rounds)))
        return
    records = []
    for case in CASES:
        if options.only in case.name:
            records.append(measure_apart(case, options.size, options.rounds))
            show(records[-1])
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1))


def measure_apart(case: Case, size: int, rounds: int) -> dict[str, Any]:
    """Runs a case in a new process, without threads of others."""
    words = [sys.executable, __file__, "--case", case.name, "--size", str(size), "--rounds", str(rounds)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(1)
    record: dict[str, Any] = json.loads(done.stdout)
    return record


if __name__ == "__main__":
    main()
