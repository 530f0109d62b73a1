"""quarrier.parallel against earlier ways: time and memory of two kernels.

parallel.py --rounds N --bytes N,N --data FOLDER --rust PROGRAM [--parmap PROGRAM] [--json FILE]

`parallel_ways.py` describes the kernels and the ways. Each way runs in its own process, one at a time, restarted
in each round, so that rounds are interleaved and ways do not disturb each other. Every result is compared before
anything is measured. Prints tables, and the project's own promises; ends with status 1 if one does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from parallel_ways import WAYS

WORKERS = 2
# The measurements, and the number of runs of each in a round.
FIGURES = {"k1 cold": 3, "k1 warm": 3, "k2 cold": 1}
STARTS = 21
MB = 10**6


class Contender(NamedTuple):
    name: str
    command: list[str]
    workers: int = WORKERS
    figures: tuple[str, ...] = tuple(FIGURES)
    rounds: int | None = None


class Session:
    """A contender's process, which follows commands."""

    def __init__(self, contender: Contender, inputs: list[str], count: int) -> None:
        self.name = contender.name
        words = [*contender.command, *inputs, str(count), str(contender.workers)]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": str(WORKERS)}
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def ask(self, what: str) -> dict[str, Any]:
        self.tell(what)
        return self.hear(what)

    def tell(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def hear(self, what: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"parallel.py: {self.name} failed at '{what}'")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def seconds(self, what: str) -> float:
        return float(self.ask(what)["seconds"])

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit(f"parallel.py: {self.name} ended with {self.process.returncode}")

    def pss(self) -> dict[str, int]:
        """The PSS of each process of the session."""
        held = {}
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                # After the name, which may contain anything: state, parent, group, session.
                after = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(after[3]) == self.process.pid:
                    held[folder.name] = pss_of(folder)
        return held

    def pss_bytes(self) -> int:
        """The memory of all processes, with shared memory counted once.

        They are queried one at a time. If one forks meanwhile, its memory counts fully in its own answer, and by
        a third in each child's. So all are queried twice, and the smaller answer counts.
        """
        first, second = self.pss(), self.pss()
        return sum(min(held, second[process]) for process, held in first.items() if process in second)

    def peak_bytes(self, works: list[str]) -> int:
        """The peak memory during the commands, which run one at a time."""
        peak, ended = 0, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not ended.is_set():
                peak = max(peak, self.pss_bytes())
                time.sleep(0.001)

        watcher = threading.Thread(target=watch)
        watcher.start()
        for what in works:
            self.ask(what)
        ended.set()
        watcher.join()
        return peak


def pss_of(folder: pathlib.Path) -> int:
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def contenders(rust: str, parmap: str | None) -> Iterator[Contender]:
    script = str(pathlib.Path(__file__).with_name("parallel_ways.py"))
    for name in WAYS:
        if name == "quarrier, threads":
            # That kernel releases the interpreter's lock only while it processes a block.
            yield Contender("quarrier, 1 worker", [sys.executable, script, "quarrier"], 1)
        # With whole arrays as intermediate results it takes minutes, and is not a rival.
        rounds = 3 if name == "numpy" else None
        yield Contender(name, [sys.executable, script, name], rounds=rounds)
    yield Contender("Rust, parallel::map", [rust, "map"])
    yield Contender("Rust, by hand", [rust, "hand"], figures=("k1 cold", "k1 warm"))
    if parmap is not None:
        yield Contender("OCaml, Parmap", [parmap])


def make_inputs(folder: pathlib.Path, count: int) -> list[str]:
    """Files of random bytes, the same on every machine."""
    paths = []
    for seed, name in [(1, "a"), (2, "b")]:
        path = folder / f"parallel-{name}.bin"
        paths.append(str(path))
        if path.exists() and path.stat().st_size >= count:
            continue
        random = np.random.default_rng(seed)
        with path.open("wb") as file:
            for start in range(0, count, 1 << 24):
                file.write(random.bytes(min(1 << 24, count - start)))
    return paths


def touch_memory(count: int) -> None:
    """Touches memory: in a virtual machine the first touch of a page is expensive."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            count = min(count, int(line.split()[1]) * 1024 * 3 // 4)
    np.empty(count, np.uint8).fill(1)


def measure(ways: list[Contender], inputs: list[str], count: int, rounds: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = [{"name": way.name, "bytes": count} for way in ways]
    known: dict[str, dict[str, Any]] = {}
    for number in range(rounds + 1):
        for way, record in zip(ways, records, strict=True):
            if way.rounds is not None and number > way.rounds:
                continue
            session = Session(way, inputs, count)
            if number == 0:
                # Before the process keeps any output.
                works = [what for what in way.figures if what.endswith("cold")]
                record["peak_bytes"] = session.peak_bytes(works * 3)
                check(session, way, known)
            else:
                # The first call pays the one-time costs.
                session.ask(way.figures[0])
                for what in way.figures:
                    calls = [session.seconds(what) for _ in range(FIGURES[what])]
                    record.setdefault(what, []).append(statistics.median(calls))
                if way.name in ("quarrier", "quarrier, pool"):
                    starts = [session.ask("start call") for _ in range(STARTS)]
                    for what, key in [("start", "seconds"), ("whole call", "whole_seconds")]:
                        value = statistics.median(float(start[key]) for start in starts)
                        record.setdefault(what, []).append(value)
            session.close()
            print(".", end="", file=sys.stderr, flush=True)
        if number > 0:
            for record in records:
                if record["name"] == "quarrier":
                    record.setdefault("ceiling", []).append(ceiling(inputs, count))
    print(file=sys.stderr)
    return records


def ceiling(inputs: list[str], count: int) -> float:
    """The speed-up of all CPUs over one, with k2.

    Each CPU gets its own process, which shares nothing with the others, and a part of the inputs: first they run
    one at a time, then all at once.
    """
    script = str(pathlib.Path(__file__).with_name("parallel_ways.py"))
    way = Contender("numpy in blocks", [sys.executable, script, "numpy in blocks"], 1)
    what = "k2 warm"
    sessions = [Session(way, inputs, count // WORKERS) for _ in range(WORKERS)]
    cpus = sorted(os.sched_getaffinity(0))
    for number, session in enumerate(sessions):
        os.sched_setaffinity(session.process.pid, {cpus[number % len(cpus)]})
        session.ask(what)
    alone, together = [], []
    for _ in range(3):
        alone.append(sum(session.seconds(what) for session in sessions))
        for session in sessions:
            session.tell(what)
        together.append(max(float(session.hear(what)["seconds"]) for session in sessions))
    for session in sessions:
        session.close()
    return statistics.median(alone) / statistics.median(together)


def check(session: Session, way: Contender, known: dict[str, dict[str, Any]]) -> None:
    for kernel in sorted({what.split()[0] for what in way.figures}):
        found = session.ask(f"check {kernel}")
        if known.setdefault(kernel, found) != found:
            sys.exit(f"parallel.py: WRONG RESULT: {kernel} of {way.name}; no time is given")


def median(record: dict[str, Any], what: str) -> float | None:
    return statistics.median(record[what]) if what in record else None


def show(records: list[dict[str, Any]], count: int, rounds: int) -> None:
    print(
        f"\nTwo arrays of {count} bytes into a third, {WORKERS} workers, {rounds} rounds: "
        "median times in ms,\nmost memory of all processes (PSS) beyond inputs and output "
        "in MB.\n"
    )
    rows = [["", "k1, cold", "k1, warm", "k2", "memory"]]
    for record in records:
        cells = [record["name"]]
        for what in FIGURES:
            seconds = median(record, what)
            cells.append("" if seconds is None else f"{1e3 * seconds:.1f}")
        peak = record.get("peak_bytes")
        cells.append("" if peak is None else f"{(peak - 3 * count) / MB:.0f}")
        rows.append(cells)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]])
    for row in rows:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("| " + " | ".join([first, *rest]) + " |")


class Promise(NamedTuple):
    text: str
    value: float
    limit: float
    at_least: bool

    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def promises(records: list[dict[str, Any]], count: int) -> Iterator[Promise]:
    by_name = {record["name"]: record for record in records}

    def ratio(what: str, over: str | list[str], under: str | list[str], pick: Callable[..., float] = min) -> float:
        """The median of the ratios within each round."""

        def times(names: str | list[str]) -> list[float]:
            names = [names] if isinstance(names, str) else names
            each = [by_name[name][what] for name in names]
            return [pick(together) for together in zip(*each, strict=True)]

        pairs = zip(times(over), times(under), strict=True)
        return statistics.median(first / second for first, second in pairs)

    ours = "quarrier"
    value = ratio("k2 cold", "quarrier, 1 worker", ours)
    most = median(by_name[ours], "ceiling")
    text = f"k2: 2 workers, times as fast as 1 (processes that share nothing: {most:.2f})"
    yield Promise(text, value, 1.85, True)
    threads = ["numba prange", "numpy in blocks, threads"]
    for name, kind in [("quarrier, numba", "forked"), ("quarrier, pool, numba", "pool")]:
        value = ratio("k1 cold", name, threads)
        text = f"k1, cold, kernel of numba, {kind}: times the better of numba and numpy on threads"
        yield Promise(text, value, 1.2, False)
    value = ratio("k1 cold", ours, threads)
    text = "k1, cold, kernel of numpy: times the better of numba and numpy on threads"
    yield Promise(text, value, 1.2, False)
    value = ratio("k1 cold", ours, "numpy in blocks, threads")
    yield Promise("k1, cold, kernel of numpy: times numpy on threads", value, 1.2, False)
    for name, kind in [("quarrier, numba", "numba"), (ours, "numpy")]:
        value = ratio("k1 cold", "fork, shared mapping", name)
        text = f"k1, cold, kernel of {kind}: times as fast as fork and a shared mapping"
        yield Promise(text, value, 2, True)
    value = ratio("k1 warm", "Rust, by hand", "Rust, parallel::map")
    yield Promise("k1, warm: parallel::map, share of the ceiling (by hand)", value, 0.85, True)
    beyond = (by_name[ours]["peak_bytes"] - 3 * count) / MB
    yield Promise("memory beyond inputs and output, MB", beyond, 32, False)
    for name, text, limit in [
        (ours, f"a forked call with {count} bytes captured", 10),
        ("quarrier, pool", "a call in a pool", 1),
    ]:
        start, whole = (1e3 * (median(by_name[name], what) or 0) for what in ("start", "whole call"))
        yield Promise(f"{text} (over after {whole:.2f} ms) starts in ms", start, limit, False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", default="268435456,1073741824")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--rust", required=True)
    parser.add_argument("--parmap")
    parser.add_argument("--only", help="a part of the names of ways")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    sizes = [int(size) for size in options.bytes.split(",")]
    ways = [way for way in contenders(options.rust, options.parmap) if (options.only or "") in way.name]
    inputs = make_inputs(options.data, max(sizes))
    touch_memory(9 * max(sizes))
    everything, broken = [], False
    for size in sizes:
        records = measure(ways, inputs, size, options.rounds)
        everything += records
        if options.rounds == 0:
            continue
        show(records, size, options.rounds)
        if options.only:
            continue
        print()
        for promise in promises(records, size):
            sign = "at least" if promise.at_least else "at most"
            holds = "" if promise.holds() else "  DOES NOT HOLD"
            print(f"- {promise.text}: {promise.value:.2f} ({sign} {promise.limit}){holds}")
            broken |= not promise.holds()
            everything.append({"bytes": size, "holds": promise.holds(), **promise._asdict()})
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1))
    sys.exit(broken)


if __name__ == "__main__":
    main()
