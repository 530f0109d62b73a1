"""A data folder of 100 million messages: loading, rebuilding the columns, memory, and the start of a server after
it was killed.

    restart.py --quarrier PROGRAM --quarrier-sql PROGRAM [--rows N] [--piece N] [--data FOLDER] [--json FILE]

It takes 185 bytes of disk a message and 160 for those of a piece, and removes everything at the end. The messages
are generated piece by piece, and each piece is loaded and removed. Stored messages are compared with the generated
ones before any figure is printed. Each step runs once, except for the starts.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orders
from keep import FACTS, log_bytes, verdict
from processes import Quarrier, anonymous_bytes, machine, remove, run
from rounds import THREADS, compare

HERE = Path(__file__).parent
#: The older engine rebuilt 100 million messages with 32 threads in 2.3 s, in 29 GB of memory.
OLDER_A_THREAD = 1.43e6
STARTS = 5
START_SECONDS_MAX = 3.0
BYTES_A_MESSAGE_MAX = 32
#: The rate at which a tail may be parsed.
TAIL_RATE = 5e6
BYTES_ON_DISK = 185
BYTES_OF_PIECE = 160


class Sums:
    """The answer of FACTS for the messages generated so far."""

    def __init__(self) -> None:
        self.values = [0, 0, 0, 0]
        self.first: int | None = None
        self.last = 0

    def add(self, batch: Any) -> None:
        import pyarrow.compute as pc

        sums = [batch.num_rows, *(pc.sum(batch[name]).as_py() for name in ("id", "qty")),
                batch.num_rows - batch["note"].null_count]  # fmt: skip
        self.values = [one + other for one, other in zip(self.values, sums, strict=True)]
        self.first = pc.min(batch["ts"]).as_py() if self.first is None else self.first
        self.last = pc.max(batch["ts"]).as_py()

    def row(self) -> list[str]:
        return ["|".join(map(str, [*self.values, self.first, self.last]))]


def pieces(rows: int, piece: int, folder: Path, sums: Sums, name: str = "piece") -> Iterator[tuple[Path, int]]:
    """Writes the orders as JSON lines, piece by piece; a piece is removed when the next one is asked for."""
    import duckdb
    import pyarrow as pa

    batches, number, done = orders.batches(rows), 0, 0
    while done < rows:
        held, many = [], 0
        while many < piece and (batch := next(batches, None)) is not None:
            held.append(batch)
            many += batch.num_rows
            sums.add(batch)
        table = pa.concat_tables(held)
        path = folder / f"{name}-{number:03}.ndjson"
        duckdb.from_arrow(table).query("m", f"COPY (SELECT * FROM m) TO '{path}' (FORMAT json)")
        del held, table
        yield path, many
        path.unlink()
        number, done = number + 1, done + many


def forget_cached(folder: Path) -> None:
    """Drops the folder's files from the page cache."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


class Folder:
    def __init__(self, arguments: argparse.Namespace, path: Path) -> None:
        self.quarrier, self.sql, self.path = arguments.quarrier, arguments.quarrier_sql, path
        self.server = Quarrier(self.sql, path.with_suffix(".serve"), ["--data", path, f"--workers={THREADS}"])

    def load_command(self, source: Path) -> list[str]:
        return [str(part) for part in (self.quarrier, "load", "--data", self.path, "--table", "m", source,
                "--format", "json", f"--workers={THREADS}")]  # fmt: skip

    def load(self, source: Path, rows: int) -> tuple[float, float]:
        ran = run(self.load_command(source))
        row = json.loads(ran.output)
        compare((rows, 0), (row["messages"], row["rejected"]), "messages loaded")
        return ran.seconds, ran.cpu_seconds

    def load_killed(self, source: Path, after_seconds: float) -> None:
        child = subprocess.Popen(self.load_command(source), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(after_seconds)
        child.send_signal(signal.SIGKILL)
        child.wait()

    def start(self) -> tuple[float, list[str]]:
        """The seconds until the server accepts clients and has answered; then its answer."""
        start = time.perf_counter()
        self.server.start()
        count = self.server.ask("SELECT count(*) FROM m")
        return time.perf_counter() - start, count

    def columns_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.path.glob("*.columns"))


def loaded(folder: Folder, arguments: argparse.Namespace, sums: Sums) -> dict[str, Any]:
    seconds, used, size = 0.0, 0.0, 0
    for path, rows in pieces(arguments.rows, arguments.piece, arguments.data, sums):
        taken = folder.load(path, rows)
        seconds, used, size = seconds + taken[0], used + taken[1], size + path.stat().st_size
        print(f"{path.name}: {rows:,} messages in {taken[0]:.2f} s", file=sys.stderr)
    on_disk = log_bytes(folder.path)
    rate = arguments.rows / seconds
    print(f"load, log only: {seconds:.1f} s, {rate / 1e6:.2f} M messages/s, {size / seconds / 1e6:,.0f} MB/s;"
          f" CPU {used:.1f} s; {on_disk:,} bytes on disk, {on_disk / size:.4f} of the JSON lines")  # fmt: skip
    return {"seconds": seconds, "cpu_seconds": used, "bytes": size, "bytes_on_disk": on_disk}


def reindexed(folder: Folder, rows: int) -> dict[str, Any]:
    ran = run([folder.quarrier, "reindex", "--data", folder.path, "--format", "json", f"--workers={THREADS}"])
    row = json.loads(ran.output)
    compare(rows, row["messages"], "messages of reindex")
    rate, each = rows / row["seconds"], row["memory_bytes"] / rows
    print(f"reindex: {row['seconds']:.1f} s, {rate / 1e6:.2f} M messages/s, {rate / THREADS / 1e6:.2f} M a thread,"
          f" {rows / ran.cpu_seconds / 1e6:.2f} M a CPU second (older: {OLDER_A_THREAD / 1e6} M a thread); CPU"
          f" {ran.cpu_seconds:.1f} s; columns {each:.1f} B a message, peak of the process"
          f" {ran.peak_bytes / rows:.1f}")  # fmt: skip
    return {"seconds": row["seconds"], "cpu_seconds": ran.cpu_seconds, "bytes_a_message": each,
            "peak_bytes": ran.peak_bytes}  # fmt: skip


def starts(folder: Folder, rows: int, true: list[str]) -> dict[str, Any]:
    seconds, count = folder.start()
    compare([str(rows)], count, "messages after the first start")
    print(f"first start, which builds and stores the columns: {seconds:.1f} s; {folder.columns_bytes():,} bytes")
    record: dict[str, Any] = {"first": seconds}
    for kind in ("cached", "not cached"):
        taken, used = [], []
        for _ in range(STARTS):
            folder.server.kill()
            if kind == "not cached":
                forget_cached(folder.path)
            seconds, count = folder.start()
            compare([str(rows)], count, "messages after a start")
            taken.append(seconds)
            used.append(folder.server.cpu_seconds())
        median = statistics.median(taken)
        print(f"ready after kill -9, files {kind}: median {median:.2f} s ({min(taken):.2f} to {max(taken):.2f}),"
              f" CPU {statistics.median(used):.2f} s; must be at most {START_SECONDS_MAX}:"
              f" {verdict(median <= START_SECONDS_MAX)}")  # fmt: skip
        record[kind] = {"median": median, "min": min(taken), "max": max(taken)}
    assert folder.server.process
    each = anonymous_bytes(folder.server.process.pid) / rows
    print(f"memory of the server: {each:.1f} B a message; must be at most {BYTES_A_MESSAGE_MAX}: "
          f"{verdict(each <= BYTES_A_MESSAGE_MAX)}")  # fmt: skip
    record["bytes_a_message"] = each
    compare(true, folder.server.ask(FACTS), "messages of the server")
    return record


def with_tail(folder: Folder, source: Path, rows: int, load_seconds: float) -> dict[str, Any]:
    """Kills a load of a tail half-way, and starts a server."""
    tail, wait_seconds = 0, load_seconds / 2
    while not tail:
        folder.server.kill()
        folder.load_killed(source, wait_seconds)
        seconds, count = folder.start()
        tail = int(count[0]) - rows
        # On a busy machine, it was killed before it had stored anything.
        wait_seconds *= 2
    most = START_SECONDS_MAX + tail / TAIL_RATE
    print(f"ready after kill -9 of a load, with a tail of {tail:,} messages: {seconds:.2f} s; must be at most"
          f" {most:.2f}: {verdict(seconds <= most)}")  # fmt: skip
    return {"seconds": seconds, "tail": tail}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarrier", type=Path, required=True)
    parser.add_argument("--quarrier-sql", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--piece", type=int, default=10_000_000)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve() / "restart"
    remove(arguments.data)
    arguments.data.mkdir(parents=True)
    needed = BYTES_ON_DISK * arguments.rows + BYTES_OF_PIECE * arguments.piece
    free = shutil.disk_usage(arguments.data).free
    if free < needed:
        sys.exit(f"{arguments.data}: {free / 1e9:.0f} GB of disk are free, of {needed / 1e9:.0f}; try --rows")
    state = machine(arguments.data)
    print(f"{datetime.date.today()}: {state}\n{arguments.rows:,} messages, {THREADS} threads")
    folder, sums = Folder(arguments, arguments.data / "d"), Sums()
    try:
        load = loaded(folder, arguments, sums)
        true = sums.row()
        record = {"machine": state, "rows": arguments.rows, "load": load,
                  "reindex": reindexed(folder, arguments.rows),
                  "start": starts(folder, arguments.rows, true)}  # fmt: skip
        tail = min(arguments.piece, arguments.rows // 20)
        # Under another name: a file that was loaded before is not loaded again.
        for path, rows in pieces(tail, tail, arguments.data, Sums(), "tail"):
            half = load["seconds"] * rows / arguments.rows
            record["tail"] = with_tail(folder, path, arguments.rows, half)
        print(machine(arguments.data))
    finally:
        folder.server.stop()
        remove(arguments.data)
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
