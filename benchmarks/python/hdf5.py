"""Reads of HDF5 over HTTP: h5py through quarrier and through fsspec, and HDF5's own driver ROS3.

hdf5.py [--rounds N] [--ros3 PYTHON] [--only WORD] [--json FILE]

The program makes files, serves them on the loopback by a server that waits 20 ms before each answer, and reads
them through each contender in turn. It counts the requests (including those for the length) and the bytes of their
bodies, and compares what was read with a read of the file itself before it prints a time. h5py's wheels lack ROS3:
`--ros3` names an interpreter whose h5py has it, such as that of Debian's python3-h5py.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import numpy as np

LATENCY_SECONDS = 0.02
CACHES = ("readahead", "blockcache", "bytes")


def digest(values: list[Any]) -> str:
    """A hash of arrays and names."""
    sha = hashlib.sha256()
    for value in values:
        sha.update(value.encode() if isinstance(value, str) else np.ascontiguousarray(value).tobytes())
    return sha.hexdigest()


def tree(file: Any) -> list[Any]:
    """The names of all groups and datasets, and their attributes."""
    found: list[Any] = []

    def visit(name: str, item: Any) -> None:
        found.append(name)
        found.extend(np.asarray(value) for _, value in sorted(item.attrs.items()))

    file.visititems(visit)
    return found


def one_group(file: Any) -> list[Any]:
    """One small dataset in one of many groups."""
    group = sorted(file)[len(file) // 2]
    return [file[group]["values"][...]]


def tile(file: Any) -> list[Any]:
    """A window of a dataset in chunks."""
    return [file["image"][1000:1300, 2000:2300]]


def row(file: Any) -> list[Any]:
    """A row of a dataset in chunks."""
    return [file["image"][3000]]


def series(file: Any) -> list[Any]:
    """Every 64th row of a contiguous dataset."""
    return [file["series"][::64]]


def whole(file: Any) -> list[Any]:
    """All of a contiguous dataset."""
    return [file["series"][...]]


READS = {read.__name__: read for read in (tree, one_group, tile, row, series, whole)}
WORKLOADS = (
    ("groups.h5", "tree"),
    ("groups.h5", "one_group"),
    ("chunks.h5", "tile"),
    ("chunks.h5", "row"),
    ("flat.h5", "series"),
    ("flat.h5", "whole"),
)


def make(fill: Callable[[Any], None]) -> bytes:
    """A file, as bytes."""
    memory = io.BytesIO()
    # The oldest format, which every HDF5 can read.
    with h5py.File(memory, "w", libver="earliest") as file:
        fill(file)
    return memory.getvalue()


def files() -> dict[str, bytes]:
    """Many small groups; a dataset in chunks of 256 KiB; a contiguous one."""
    rng = np.random.default_rng(1)

    def groups(file: Any) -> None:
        for number in range(200):
            group = file.create_group(f"group{number:04}")
            group.attrs["number"] = number
            group.create_dataset("values", data=rng.random(1000))

    def chunks(file: Any) -> None:
        file.create_dataset("image", data=rng.random((4096, 4096), np.float32), chunks=(256, 256))

    def flat(file: Any) -> None:
        file.create_dataset("series", data=rng.random((4096, 1024)))

    return {"groups.h5": make(groups), "chunks.h5": make(chunks), "flat.h5": make(flat)}


def by_quarrier(url: str, read: str) -> tuple[str, float]:
    """Through `quarrier.open`."""
    import quarrier

    begin = time.perf_counter()
    with quarrier.open(url) as remote, h5py.File(remote, "r") as file:
        values = READS[read](file)
    return digest(values), time.perf_counter() - begin


def by_fsspec(cache: str) -> Callable[[str, str], tuple[str, float]]:
    """Through a cache of fsspec, with its default block size."""
    import fsspec

    def measure(url: str, read: str) -> tuple[str, float]:
        system = fsspec.filesystem("http", skip_instance_cache=True)
        begin = time.perf_counter()
        with system.open(url, cache_type=cache) as remote, h5py.File(remote, "r") as file:
            values = READS[read](file)
        return digest(values), time.perf_counter() - begin

    return measure


def by_ros3(url: str, read: str) -> tuple[str, float]:
    """Through the driver of HDF5, in this interpreter."""
    begin = time.perf_counter()
    with h5py.File(url, "r", driver="ros3") as file:
        values = READS[read](file)
    return digest(values), time.perf_counter() - begin


def by_other_ros3(interpreter: str) -> Callable[[str, str], tuple[str, float]]:
    """Through the driver of HDF5, in another interpreter; its start is not part of the time."""

    def measure(url: str, read: str) -> tuple[str, float]:
        command = [interpreter, __file__, "--read-by-ros3", url, read]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"{interpreter}: {ran.stderr.strip()}")
        got, seconds = json.loads(ran.stdout)
        return got, seconds

    return measure


def contenders(ros3: str | None) -> dict[str, Callable[[str, str], tuple[str, float]]]:
    """All that this machine has."""
    all_of_them = {"quarrier": by_quarrier}
    all_of_them |= {f"fsspec {cache}": by_fsspec(cache) for cache in CACHES}
    if ros3:
        all_of_them["ROS3"] = by_other_ros3(ros3)
    elif h5py.get_config().ros3:
        all_of_them["ROS3"] = by_ros3
    else:
        print("ROS3 is left out: this h5py was built without it, and --ros3 names no other", file=sys.stderr)
    return all_of_them


def measure(server: Any, name: str, read: str, ways: dict[str, Any], rounds: int) -> dict[str, Any]:
    """One read by all contenders in turn."""
    with h5py.File(io.BytesIO(server.files[name]), "r") as file:
        expected = digest(READS[read](file))
    figures: dict[str, Any] = {way: {"seconds": []} for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            server.take_tally()
            got, seconds = run(server.url(name), read)
            if got != expected:
                sys.exit(f"WRONG: {way} reads something else from {name} ({read})")
            tally = server.take_tally()
            figures[way]["seconds"].append(seconds)
            figures[way].update(requests=tally.requests, body_bytes=tally.body_bytes)
    for figure in figures.values():
        times = figure.pop("seconds")
        figure.update(seconds=median(times), least_seconds=min(times), most_seconds=max(times))
    return figures


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ros3", metavar="PYTHON")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--read-by-ros3", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read_by_ros3:
        print(json.dumps(by_ros3(*options.read_by_ros3)))
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates/quarrier-python/tests"))
    from range_server import RangeServer

    ways = contenders(options.ros3)
    served = files()
    print("requests / bytes / median time (least to most) of", options.rounds, "rounds in turns\n")
    print("| file | read | " + " | ".join(ways) + " |")
    print("|---|---|" + "---:|" * len(ways))
    records = []
    with RangeServer(served, LATENCY_SECONDS) as server:
        for name, read in WORKLOADS:
            if options.only not in f"{name} {read}":
                continue
            figures = measure(server, name, read, ways, options.rounds)
            cells = [
                f"{f['requests']} / {f['body_bytes'] / 1e3:,.0f} kB / {f['seconds'] * 1e3:,.0f} ms "
                f"({f['least_seconds'] * 1e3:,.0f} to {f['most_seconds'] * 1e3:,.0f})"
                for f in figures.values()
            ]
            title = f"{name} ({len(served[name]) / 1e6:.1f} MB)"
            print(f"| {title} | {read} | " + " | ".join(cells) + " |", flush=True)
            record = {"file": name, "read": read, "file_bytes": len(served[name])}
            records.append(record | {"contenders": figures})
    if options.json:
        options.json.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
