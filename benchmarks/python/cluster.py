#!/usr/bin/env python3
"""A cluster on this machine: what it costs with one worker, how it grows to four, and how many units it hands out.

    cluster.py PROGRAM FOLDER [--mib N] [--rounds N] [--megabytes N] [--parts one,four,units] [--units N]

PROGRAM is quarrier, with quarrier-cluster beside it. FOLDER gets images of N MiB, in the page cache.

one    a search, a carving and a query by one worker with all CPUs, and by one process. Output is compared.
four   a search over HTTP by 1, 2 and 4 workers with one CPU each. Each worker has a server of its own, as its
       proxy, that sends N megabytes a second; the servers count bytes. Beside it, the time that `--plan --nodes`
       simulates for the rate of one worker.
units  a search of a small image in N units, and one of the same image in one.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turns import Contender, Turns, machine, run

PATTERNS = ["invoice", "confidential", "PRIVATE KEY", "hex:FF D8 FF E0", "hex:50 4B 03 04 14"]
CHUNK = 256 << 10
#: The hash of the image's content, as far as a client needs to know.
TAG = '"1"'
HOST = "disks.test"


def make_image(path: Path, mebibytes: int) -> None:
    """Noise, with text in which patterns are found a few times in a mebibyte."""
    if path.exists() and path.stat().st_size == mebibytes << 20:
        return
    draw = random.Random(37)
    words = [b"invoice", b"confidential", b"PRIVATE KEY", b"the", b"quick", b"brown", b"fox"]
    with path.open("wb") as out:
        for _ in range(mebibytes):
            block = bytearray(draw.randbytes(1 << 20))
            for _ in range(8):
                text = b" ".join(draw.choices(words, k=20))
                at = draw.randrange(len(block) - len(text))
                block[at : at + len(text)] = text
            out.write(block)


class Cluster:
    """A scheduler and workers, until it is closed."""

    def __init__(self, program: Path, workers: int, cores: int, environments: list[dict[str, str]]) -> None:
        self.program = program
        self.folder = tempfile.TemporaryDirectory()
        self.errors = os.open(Path(self.folder.name, "errors"), os.O_CREAT | os.O_WRONLY)
        command = [program, "cluster", "scheduler", "--listen", "127.0.0.1:0"]
        self.processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors)]
        assert self.processes[0].stdout is not None
        self.at = self.processes[0].stdout.readline().decode().split()[-1]
        for number in range(workers):
            work = Path(self.folder.name, f"work{number}")
            work.mkdir()
            command = [program, "cluster", "worker", self.at, "--listen", "127.0.0.1", "--name", f"w{number}"]
            command += ["--cores", str(cores), "--work", str(work)]
            self.processes.append(
                subprocess.Popen(
                    command,
                    stdout=subprocess.DEVNULL,
                    stderr=self.errors,
                    env=os.environ | environments[number],
                )
            )
        since = time.monotonic()
        while self.status().count('"name":"w') < workers:
            if time.monotonic() - since > 30:
                sys.exit(f"the workers did not start: {self.status()}")
            time.sleep(0.05)

    def status(self) -> str:
        command = [self.program, "cluster", "status", self.at, "--json"]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        os.close(self.errors)
        self.folder.cleanup()


@contextlib.contextmanager
def cluster(
    program: Path, workers: int, cores: int, environments: list[dict[str, str]] | None = None
) -> Iterator[Cluster]:
    started = Cluster(program, workers, cores, environments or [{}] * workers)
    try:
        yield started
    finally:
        started.close()


def lines(output: bytes) -> list[bytes]:
    return output.splitlines()


def one(asked: argparse.Namespace, image: Path) -> None:
    """One worker against one process."""
    program, cpus = asked.program, os.cpu_count() or 1
    written = asked.folder / "patterns.txt"
    written.write_text("\n".join(PATTERNS) + "\n")
    sql = f"SELECT name, count(*) AS n FROM search('{image}', '{written}') GROUP BY name ORDER BY n"
    rows = ["--format", "csv"]
    commands = {
        "search": [program, "search", "-f", written, image, *rows],
        "carve": [program, "carve", "--dry-run", "--quiet", image, *rows],
        "query": [program, "query", sql, *rows],
    }
    with cluster(program, 1, cpus) as lab:
        for name, command in commands.items():
            print(f"\n{name}: {asked.mib} MiB, one worker with {cpus} CPUs, {machine()}")
            # One process prints rows of carved files as it finds them.
            contenders = {
                "one process": Contender(command, lambda out: sorted(lines(out)), (0, 1)),
                "one worker": Contender([*command, "--cluster", lab.at], lambda out: sorted(lines(out)), (0, 1)),
            }
            turns = Turns(contenders, asked.rounds)
            turns.show("one process")
            alone, spread = (statistics.median(turns.seconds[key]) for key in contenders)
            print(f"{'':30} {spread - alone * 1.1:+.2f} s over 1.1 times one process (goal: at most 2)")


class Sender(http.server.BaseHTTPRequestHandler):
    """Sends ranges of the image, no faster than the server's rate. It is the origin and the proxy."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(False)

    def do_GET(self) -> None:
        self.answer(True)

    def answer(self, has_body: bool) -> None:
        size = os.fstat(self.server.image).st_size
        start, end = 0, size
        asked = self.headers.get("Range")
        if asked:
            first, last = asked.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last) + 1 if last else size, size)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", TAG)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        self.wfile.flush()
        while has_body and start < end:
            amount = min(CHUNK, end - start)
            self.server.wait(amount)
            sent = os.sendfile(self.connection.fileno(), self.server.image, start, amount)
            with self.server.count.get_lock():
                self.server.count.value += sent
            start += sent


class Server(http.server.ThreadingHTTPServer):
    """A server with a rate, in bytes per second; 0 for no limit."""

    daemon_threads = True

    def __init__(self, image: Path, rate: float, count: Any) -> None:
        super().__init__(("127.0.0.1", 0), Sender)
        self.image = os.open(image, os.O_RDONLY)
        self.rate, self.count = rate, count
        self.lock, self.free = threading.Lock(), 0.0

    def wait(self, amount: int) -> None:
        """Waits until the rate permits to send an amount."""
        if not self.rate:
            return
        with self.lock:
            now = time.monotonic()
            # After a pause, nothing is made up for.
            self.free = max(self.free, now - 0.01) + amount / self.rate
            until = self.free - now
        if until > 0:
            time.sleep(until)


def serve(image: Path, rate: float, count: Any, port: Any) -> None:
    server = Server(image, rate, count)
    port.send(server.server_address[1])
    server.serve_forever()


def four(asked: argparse.Namespace, image: Path) -> None:
    """One, two and four workers behind servers of a limited rate."""
    program, rate = asked.program, asked.megabytes * 1e6
    counts = [multiprocessing.Value("q", 0) for _ in range(5)]
    ports = []
    for number, count in enumerate(counts):
        ours, theirs = multiprocessing.Pipe()
        # The last is for the client, which only opens the source.
        limit = rate if number < 4 else 0.0
        multiprocessing.Process(target=serve, args=(image, limit, count, theirs), daemon=True).start()
        ports.append(ours.recv())
    proxies = [
        {name: f"http://127.0.0.1:{port}" for name in ("http_proxy", "HTTP_PROXY")}
        | {"NO_PROXY": "", "no_proxy": ""}
        for port in ports
    ]
    os.environ.update(proxies[4])
    command = [program, "search", "-e", "invoice", "-e", "PRIVATE KEY", f"http://{HOST}/image.dd"]
    command += ["--format", "csv"]
    size = image.stat().st_size
    print(f"\n{size >> 20} MiB over HTTP, {asked.megabytes} MB/s for each worker: {machine()}")
    seconds: dict[int, list[float]] = {1: [], 2: [], 4: []}
    fetched: dict[int, list[float]] = {1: [], 2: [], 4: []}
    expected = lines(
        run([program, "search", "-e", "invoice", "-e", "PRIVATE KEY", image, "--format", "csv"]).output
    )
    for round_number in range(asked.rounds + 1):
        for workers in seconds:
            with cluster(program, workers, 1, proxies) as lab:
                before = sum(count.value for count in counts)
                ran = run([*command, "--cluster", lab.at])
                got = sum(count.value for count in counts) - before
            rows = [line.split(b",", 1)[1] for line in lines(ran.output)]
            if rows != [line.split(b",", 1)[1] for line in expected]:
                sys.exit(f"{workers} workers have a different answer")
            if round_number:
                seconds[workers].append(ran.seconds)
                fetched[workers].append(got / size)
    own = size / statistics.median(seconds[1])
    for workers, times in seconds.items():
        plan = [program, "search", "-e", "invoice", image, "--plan", "--rate", str(int(own)), "--unit-size"]
        plan += [str(max(16 << 20, -(-(size // 64) >> 20) << 20)), "--nodes", str(workers), "--format", "json"]
        simulated = json.loads(run(plan).output)["simulated_seconds"]
        ratios = [a / b for a, b in zip(seconds[1], times, strict=True)]
        print(
            f"  {workers} workers {statistics.median(times):7.3f} s ({min(times):.3f} to {max(times):.3f}), "
            f"{statistics.median(ratios):.2f} times one ({min(ratios):.2f} to {max(ratios):.2f}), "
            f"simulated {simulated:.3f} s; bytes fetched {max(fetched[workers]):.5f} of the image at most"
        )


def units(asked: argparse.Namespace, image: Path) -> None:
    """Many units against one."""
    program, size = asked.program, image.stat().st_size
    small = str(-(-size // asked.units))
    command = [program, "search", "-e", "invoice", image, "--format", "csv", "--unit-size"]
    print(f"\n{asked.units:,} units of {small} bytes: {machine()}")
    for workers, cores in ((1, 2), (4, 1)):
        with cluster(program, workers, cores) as lab:
            on = ["--cluster", lab.at]
            contenders = {
                "one unit": Contender([*command, str(size), *on], lines),
                f"{asked.units:,} units": Contender([*command, small, *on], lines),
            }
            turns = Turns(contenders, asked.rounds)
        print(f"  {workers} workers of {cores} CPUs")
        for name in contenders:
            print("    " + turns.row(name))
        alone, many = (statistics.median(turns.seconds[name]) for name in contenders)
        print(f"{'':32} {asked.units / (many - alone):,.0f} units per second (goal: 300)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--parts", default="one,four,units")
    asked = parser.parse_args()
    asked.program = asked.program.resolve()
    asked.folder.mkdir(parents=True, exist_ok=True)
    parts = asked.parts.split(",")
    image, small = asked.folder / "image.dd", asked.folder / "small.dd"
    if "one" in parts or "four" in parts:
        make_image(image, asked.mib)
    if "one" in parts:
        one(asked, image)
    if "four" in parts:
        four(asked, image)
    if "units" in parts:
        make_image(small, 64)
        units(asked, small)


if __name__ == "__main__":
    main()
