"""The gauge against the tools that it replaces, in pairs: gauge.py [--rounds N] [--only WORD] [--wait S]

A ceiling changes by the minute, so no figure is compared with a stored one: our program and the reference take
turns, each in its own process, and the program prints the medians of both with their ratio. Both sides drop the
trials in which they did not get their CPU. If the rounds of a side fall into two groups, both groups are shown;
if both sides were in both, each group has its own ratio. `--json FILE` writes the figures. Some pairs also show
the older system's figures on its own machine, with the tool of its day: they matter for their ratio, not for
their size.
Needs gcc with OpenMP, OpenBLAS with its headers, fio and iperf3 (Debian: gcc libopenblas-pthread-dev fio
iperf3); pairs whose reference cannot be built or run are reported and left out. Files for the disk are 1 GiB,
one at a time, in the folder of `--disk`. Ends with status 1 if a ratio is out of bounds.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

HOME = pathlib.Path(__file__).resolve().parents[2]
RIVALS = HOME / "benchmarks" / "rivals"
ARRAY_BYTES = 128 << 20
FILE_BYTES = 1 << 30
HUGE_PAGE_BYTES = 2 << 20
# So many undisturbed rounds are better evidence than all rounds.
QUIET_ROUNDS = 3


class Pair(NamedTuple):
    """One of our measurements, and how the reference makes the same one."""

    name: str
    ours: tuple[str, ...]
    reference: Callable[[Tools], dict]
    unit: str
    least: float | None = 0.95
    most: float | None = 1.10
    # The result of the older system's own benchmark, and that of its reference tool.
    older: str = ""


class Side(NamedTuple):
    """The values of one side, one per round."""

    values: list[float]
    disturbed: int

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def modes(self) -> tuple[float, float] | None:
        """The two modes of the values, if they have two."""
        limit = limit_between_modes(self.values)
        if limit is None:
            return None
        low, high = self.parted(limit)
        return statistics.median(low), statistics.median(high)

    def parted(self, limit: float) -> tuple[list[float], list[float]]:
        low = [value for value in self.values if value < limit]
        high = [value for value in self.values if value >= limit]
        return low, high


def limit_between_modes(values: list[float]) -> float | None:
    """The least value of the upper mode, if the values have two modes."""
    values = sorted(values)
    cuts = range(2, len(values) - 1)
    if not cuts:
        return None
    cut = max(cuts, key=lambda at: values[at] - values[at - 1])
    gap = values[cut] - values[cut - 1]
    width = max(values[cut - 1] - values[0], values[-1] - values[cut])
    if gap <= 3 * width or gap <= 0.05 * statistics.median(values):
        return None
    return values[cut]


def ratios(ours: Side, theirs: Side) -> list[float]:
    """The ratio of all rounds, or one for each of two modes if both sides were in both: then the medians of all
    rounds would only say how often each side was in which."""
    limit = limit_between_modes([*ours.values, *theirs.values])
    if limit is not None:
        pairs = list(zip(ours.parted(limit), theirs.parted(limit), strict=True))
        if all(mine and its for mine, its in pairs):
            return [statistics.median(mine) / statistics.median(its) for mine, its in pairs]
    if (mine := ours.modes()) and (its := theirs.modes()):
        return [ours_value / its_value for ours_value, its_value in zip(mine, its, strict=True)]
    return [ours.median / theirs.median]


def may_be_in_another_mode(ours: Side, theirs: Side) -> bool:
    """Whether two modes were seen, but not both of them on both sides."""
    limit = limit_between_modes([*ours.values, *theirs.values])
    return limit is not None and len(ratios(ours, theirs)) == 1


class Unavailable(Exception):
    """A reference that this machine cannot build or run."""


class Tools:
    """The programs of both sides, built at first use."""

    def __init__(self, folder: pathlib.Path, disk: str) -> None:
        self.folder = folder
        self.disk = disk
        self.one, self.quarrier = build_ours()
        self.built: dict[str, pathlib.Path] = {}

    def disk_folder(self) -> pathlib.Path:
        """The folder for the files of disk pairs."""
        folder = pathlib.Path(self.disk)
        if not folder.is_dir():
            raise Unavailable(f"{folder} is no folder")
        return folder

    def ours(self, words: tuple[str, ...]) -> list[dict]:
        return [json.loads(line) for line in self.ours_raw(words).splitlines()]

    def ours_between_cpus(self, words: tuple[str, ...]) -> list[dict]:
        """A reading of the network, with one CPU for each end."""
        [port] = free_ports(1)
        address = f"127.0.0.1:{port}"
        near, far = ends()
        listen = [str(self.quarrier), "gauge", "network", "--listen", address, "--quiet"]
        with subprocess.Popen(listen, stdout=subprocess.DEVNULL, preexec_fn=on_cpu(far)) as listener:
            try:
                wait_for_listener(int(port))
                answer = run([str(self.one), *words, f"peer={address}"], cpu=near)
            finally:
                listener.send_signal(signal.SIGINT)
        return [json.loads(line) for line in answer.splitlines()]

    def ours_raw(self, words: tuple[str, ...], first: Callable[[], None] | None = None) -> str:
        words = tuple(f"path={self.disk_folder()}" if word == "path=DISK" else word for word in words)
        return run([str(self.one), *words], first=first)

    def compiled(self, name: str, *libraries: str) -> pathlib.Path:
        """Builds the reference of this name, in plain C, for this machine."""
        if name not in self.built:
            if shutil.which("gcc") is None:
                raise Unavailable("there is no gcc")
            program = self.folder / name
            command = ["gcc", "-O3", "-march=native", "-fopenmp", "-fno-tree-loop-distribute-patterns"]
            command += ["-o", str(program), str(RIVALS / f"{name}.c"), *libraries, "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Unavailable(f"gcc cannot build {name}.c: {done.stderr.strip()[-200:]}")
            self.built[name] = program
        return self.built[name]


def build_ours() -> tuple[pathlib.Path, pathlib.Path]:
    """Builds the program of one measurement, and `quarrier`, which listens."""
    command = ["cargo", "build", "--release", "-p", "quarrier-gauge", "--example", "one"]
    command += ["-p", "quarrier-cli", "--bin", "quarrier", "--message-format=json"]
    done = subprocess.run(command, cwd=HOME, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit("gauge.py: quarrier, or the example `one` of quarrier-gauge, does not build; see above")
    built = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            built[message["target"]["name"]] = pathlib.Path(message["executable"])
    if not {"one", "quarrier"} <= built.keys():
        sys.exit("gauge.py: cargo did not say where it built `one` and `quarrier`")
    return built["one"], built["quarrier"]


def run(
    command: list[str],
    cpu: int | None = None,
    first: Callable[[], None] | None = None,
    **variables: str,
) -> str:
    """The output of a command. The new process first calls `first`, or is bound to `cpu`."""
    if shutil.which(command[0]) is None:
        raise Unavailable(f"there is no {command[0]}")
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=os.environ | variables,
        check=False,
        preexec_fn=first if cpu is None else on_cpu(cpu),
    )
    if done.returncode != 0:
        raise Unavailable(f"{command[0]}: {done.stderr.strip()[-200:]}")
    return done.stdout


# Copy, scale, add, triad: plain C with OpenMP, with threads bound like ours.


def stream(operation: str, threads: int, pages: str) -> Callable[[Tools], dict]:
    def reference(tools: Tools) -> dict:
        command = [str(tools.compiled("stream")), operation, str(ARRAY_BYTES), str(threads), pages]
        return json.loads(run(command, OMP_PROC_BIND="true", OMP_NUM_THREADS=str(threads)))

    return reference


# Stores that bypass the caches move fewer bytes for the same count: their ratio is shown, not bounded.
STORES = {"ordinary": (0.95, 1.10), "streaming": (None, None)}


def stream_pairs() -> list[Pair]:
    pairs = []
    for pages in ("small", "huge"):
        for threads in (1, 2):
            for operation in ("copy", "scale", "add", "triad"):
                for stores, (least, most) in STORES.items():
                    words = ("memory", operation, f"threads={threads}", f"block_bytes={ARRAY_BYTES}")
                    words += (f"pages={pages}", f"stores={stores}")
                    name = f"{operation}, {threads} threads, {pages} pages, {stores} stores"
                    older = "23 GB/s (STREAM 30)" if (operation, threads) == ("triad", 2) else ""
                    reference = stream(operation, threads, pages)
                    pairs.append(Pair(name, words, reference, "B/s", least, most, older))
    return pairs


# Latency: a pointer chaser in C.


def chase(size: int, pages: str) -> Callable[[Tools], dict]:
    return lambda tools: json.loads(run([str(tools.compiled("chase")), str(size), pages]))


def latency_pairs() -> list[Pair]:
    pairs = []
    for size, text in ((16 << 10, "16 KiB"), (512 << 10, "512 KiB"), (64 << 20, "64 MiB")):
        for pages in ("small", "huge"):
            words = ("memory", "latency", f"block_bytes={size}", f"pages={pages}")
            pairs.append(Pair(f"latency, {text}, {pages} pages", words, chase(size, pages), "s"))
    return pairs


# Matrix product: OpenBLAS, with its kernels selected.


def core_type() -> str:
    """In a virtual machine, OpenBLAS takes a processor with AVX-512 for one without."""
    flags = pathlib.Path("/proc/cpuinfo")
    return "SkylakeX" if flags.exists() and " avx512vl " in flags.read_text() else ""


def gemm(lane: str, order: int, threads: int, core: str) -> Callable[[Tools], dict]:
    def reference(tools: Tools) -> dict:
        program = tools.compiled("gemm", "-lopenblas")
        variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_PROC_BIND": "true"}
        if core:
            variables["OPENBLAS_CORETYPE"] = core
        return json.loads(run([str(program), lane, str(order), str(threads)], **variables))

    return reference


def product_pairs() -> list[Pair]:
    pairs = []
    for lane in ("f64", "f32"):
        for threads in (1, 2):
            words = ("cpu", "matrix product", f"type={lane}", f"threads={threads}", "order=1024")
            name = f"matrix product, {lane}, {threads} threads"
            reference = gemm(lane, 1024, threads, core_type())
            older = "2 GFLOP/s (LINPACK 17.5)" if (lane, threads) == ("f64", 2) else ""
            pairs.append(Pair(f"{name}, OpenBLAS", words, reference, "FLOP/s", older=older))
    return pairs


# Peak: against the theoretical one at the clock measured between the trials.


def peak_pairs() -> list[Pair]:
    pairs = []
    for isa in ("scalar", "AVX2", "AVX-512"):
        for lane in ("f64", "f32"):
            for threads in (1, 2):
                words = ("cpu", "multiply-add", f"isa={isa}", f"type={lane}", f"threads={threads}")
                name = f"multiply-add, {lane}, {isa}, {threads} threads, theoretical"
                pairs.append(Pair(name, words, theoretical, "FLOP/s", 0.95, 1.02))
    return pairs


def theoretical(_: Tools) -> dict:
    """A placeholder: the reference value is in our own answer."""
    raise NotImplementedError


# Disk: fio, on the file that our program has just measured, because a file's place changes its rate up to
# twofold. Ours runs first, because it knows the bytes it wrote, and once more after fio, because some disks
# repeat reads faster, one of them by a quarter. Both results are shown beside fio's.
#
# Our buffers are on huge pages, so that a large request is one piece; fio's are so only on request, and only if
# the kernel has set some aside. So large requests are measured twice: with huge pages on both sides, and without
# them on both. Without them, the number of pieces of a request depends on chance in each process: a disk that
# accepts 254 pieces handles the request in one go or in two, at twice or half the rate.


def on_small_pages() -> None:
    """Runs in a new process: it and its children get no huge pages (Linux, prctl)."""
    set_thp_disable = 41
    if ctypes.CDLL(None, use_errno=True).prctl(set_thp_disable, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


@contextlib.contextmanager
def huge_pages_set_aside(size_bytes: int) -> Iterator[None]:
    """Makes the kernel set aside huge pages for `size_bytes`, which needs root, and releases them after."""
    setting = pathlib.Path("/proc/sys/vm/nr_hugepages")
    try:
        before = int(setting.read_text())
        wanted = before + -(-size_bytes // HUGE_PAGE_BYTES)
        setting.write_text(str(wanted))
    except OSError as why:
        raise Unavailable(f"no huge pages for fio: {why}") from None
    try:
        if int(setting.read_text()) < wanted:
            raise Unavailable("the kernel has too few huge pages for fio")
        yield
    finally:
        setting.write_text(str(before))


class OnTheSameFile(NamedTuple):
    """An fio command for our file."""

    mode: str
    block_bytes: int
    depth: int
    is_huge: bool

    def __call__(self, tools: Tools) -> dict:
        raise NotImplementedError

    def measure(self, tools: Tools, words: tuple[str, ...]) -> tuple[list[dict], dict]:
        if shutil.which("fio") is None:
            raise Unavailable("there is no fio")
        command = ["fio", "--name=pair", "--filename=FILE", f"--size={FILE_BYTES}"]
        command += [f"--rw={self.mode}", f"--bs={self.block_bytes}", f"--iodepth={self.depth}"]
        command += ["--ioengine=io_uring", "--direct=1", "--overwrite=1", "--time_based", "--runtime=2"]
        command += ["--output-format=json"]
        if self.is_huge:
            # Two more, because fio aligns its buffers.
            with huge_pages_set_aside(self.block_bytes * self.depth + 2 * HUGE_PAGE_BYTES):
                printed = tools.ours_raw((*words, "--", *command, "--mem=shmhuge"), None)
        else:
            printed = tools.ours_raw((*words, "--", *command), on_small_pages)
        before, _, rest = printed.partition("\n")
        answer, _, after = rest.rstrip("\n").rpartition("\n")
        job = json.loads(answer)["jobs"][0]
        done = job["read" if "read" in self.mode else "write"]
        value = done["iops"] if self.mode.startswith("rand") else done["bw_bytes"]
        return [json.loads(before), json.loads(after)], {"value": value}


def disk_pairs() -> list[Pair]:
    pairs = []
    for name, mode, block_bytes, unit in (
        ("sequential read", "read", 1 << 20, "B/s"),
        ("sequential write", "write", 1 << 20, "B/s"),
        ("random read", "randread", 4096, "op/s"),
        ("random write", "randwrite", 4096, "op/s"),
    ):
        older = {"read": "(iozone 5.8 GB/s)", "write": "(iozone 0.6 GB/s)"}.get(mode, "")
        for depth in (1, 32):
            words = ("disk", name, f"block_bytes={block_bytes}", f"depth={depth}")
            words += (f"file_bytes={FILE_BYTES}", "path=DISK")
            text = f"{name}, {block_bytes >> 10} KiB, direct, depth {depth}"
            small = OnTheSameFile(mode, block_bytes, depth, is_huge=False)
            if block_bytes > 4096:
                huge = OnTheSameFile(mode, block_bytes, depth, is_huge=True)
                pairs.append(Pair(f"{text}, huge pages, fio", words, huge, unit, older=older))
                pairs.append(Pair(f"{text}, small pages, fio", words, small, unit, None, None))
            else:
                pairs.append(Pair(f"{text}, fio", words, small, unit, older=older))
    return pairs


# Network: iperf3 over the loopback, with the same congestion control; received bytes count. On both sides the
# sender has one CPU and the receiver another: otherwise the rate would also depend on where the system happens
# to put the two ends.


def ends() -> tuple[int, int]:
    """The CPU of the sender and that of the receiver."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[0], cpus[-1]


def on_cpu(cpu: int) -> Callable[[], None]:
    """Runs in a new process before it executes a program."""
    return lambda: os.sched_setaffinity(0, {cpu})


def wait_for_listener(port: int) -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise Unavailable("the server for the measurement did not start")


def iperf3(protocol: str, streams: int, message_bytes: int, congestion: str) -> Callable[[Tools], dict]:
    """One process per stream: before version 3.16 a process has one thread for all its streams."""

    def reference(_: Tools) -> dict:
        if shutil.which("iperf3") is None:
            raise Unavailable("there is no iperf3")
        ports = free_ports(streams)
        near, far = map(on_cpu, ends())
        servers = [
            subprocess.Popen(
                ["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port],
                stdout=subprocess.DEVNULL,
                preexec_fn=far,
            )
            for port in ports
        ]
        try:
            time.sleep(0.3)
            command = ["iperf3", "-J", "-c", "127.0.0.1", "-t", "2", "-l", str(message_bytes)]
            command += ["-u", "-b", "0"] if protocol == "udp" else ["-C", congestion]
            clients = [
                subprocess.Popen([*command, "-p", port], stdout=subprocess.PIPE, preexec_fn=near) for port in ports
            ]
            answers = [json.loads(client.communicate()[0])["end"]["sum_received"] for client in clients]
        finally:
            for server in servers:
                server.terminate()
                server.wait()
        return {"value": sum(answer["bytes"] / answer["seconds"] for answer in answers)}

    return reference


def free_ports(count: int) -> list[str]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def network_pairs() -> list[Pair]:
    pairs = []
    for congestion in congestion_controls():
        for streams in (1, 4):
            words = ("network", "throughput", "protocol=tcp", f"message_bytes={128 << 10}")
            words += (f"streams={streams}", f"congestion={congestion}")
            name = f"TCP, {streams} streams, 128 KiB, {congestion}, iperf3"
            reference = iperf3("tcp", streams, 128 << 10, congestion)
            pairs.append(Pair(name, words, reference, "B/s", older="15 GB/s (iperf 36)"))
    # The maximum IPv4 datagram, 28 bytes less than 64 KiB.
    words = ("network", "throughput", "protocol=udp", "message_bytes=65507", "streams=1")
    reference = iperf3("udp", 1, 65_507, "")
    pairs.append(Pair("UDP, 1 stream, 64 KiB, iperf3", words, reference, "B/s", 1.0, None, "21 GB/s (iperf 42.5)"))
    return pairs


def congestion_controls() -> list[str]:
    """Those that any user may choose; with one, loopback is twice as fast as with another."""
    path = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    return path.read_text().split() if path.exists() else []


PAIRS: list[Pair] = [
    *peak_pairs(),
    *product_pairs(),
    *stream_pairs(),
    *latency_pairs(),
    *disk_pairs(),
    *network_pairs(),
]


def busy_seconds() -> float:
    """The CPU time used by the whole machine; 0 if the system does not count it."""
    stat = pathlib.Path("/proc/stat")
    if not stat.exists():
        return 0.0
    fields = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(seconds: float) -> None:
    """Returns once the machine is idle, or after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = busy_seconds()
        time.sleep(0.3)
        if busy_seconds() - before < 0.05:
            return


def measure(pair: Pair, tools: Tools, rounds: int, wait: float) -> tuple[Side, Side]:
    """Measures both in turns; the one to begin changes with every round. Makes up to three times as many rounds
    if two modes were seen but not both on both sides, or if a side has too few undisturbed rounds of arithmetic
    or memory."""
    ours: list[dict] = []
    theirs: list[dict] = []
    measured = tools.ours_between_cpus if pair.ours[0] == "network" else tools.ours
    is_bounded = pair.least is not None or pair.most is not None
    for turn in range(3 * rounds if is_bounded else rounds):
        is_known = pair.ours[0] not in ("cpu", "memory") or min(quiet(ours), quiet(theirs)) >= QUIET_ROUNDS
        if turn >= rounds and is_known and not may_be_in_another_mode(side(ours), side(theirs)):
            break
        wait_for_quiet(wait)
        if pair.reference is theoretical:
            *readings, reference = (*tools.ours(pair.ours), None)[:2]
            if reference is None:
                raise Unavailable("the design of this processor is not known")
        elif isinstance(pair.reference, OnTheSameFile):
            readings, reference = pair.reference.measure(tools, pair.ours)
        elif turn % 2:
            reference, readings = pair.reference(tools), measured(pair.ours)[:1]
        else:
            readings, reference = measured(pair.ours)[:1], pair.reference(tools)
        if pair.ours[0] == "network":
            # iperf3 reports the mean over time.
            readings = [reading | {"value": reading["mean"]} for reading in readings]
        ours += readings
        theirs.append(reference)
    return side(ours), side(theirs)


def quiet(answers: list[dict]) -> int:
    """The number of undisturbed rounds."""
    return sum(not answer.get("disturbed") for answer in answers)


def side(answers: list[dict]) -> Side:
    """The values of the undisturbed rounds if there are enough, else of all."""
    undisturbed = [answer for answer in answers if not answer.get("disturbed")]
    values = [answer["value"] for answer in (undisturbed if len(undisturbed) >= QUIET_ROUNDS else answers)]
    return Side(values, len(answers) - len(undisturbed))


def shown(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value * 1e9:.2f} ns"
    if unit == "op/s":
        return f"{value / 1e3:.2f} k{unit}"
    return f"{value / 1e9:.2f} G{unit}"


def row(pair: Pair, ours: Side, theirs: Side) -> tuple[str, bool]:
    found = ratios(ours, theirs)
    low, high = pair.least or 0.0, pair.most or float("inf")
    holds = all(low <= ratio <= high for ratio in found)
    text = f"{pair.name:52} {shown(ours.median, pair.unit):>15} {shown(theirs.median, pair.unit):>15}"
    text += f" {', '.join(f'{ratio:6.3f}' for ratio in found)} {'' if holds else '  outside'}"
    for who, one in (("ours", ours), ("reference", theirs)):
        if modes := one.modes():
            text += f"  {who} has two modes: {shown(modes[0], pair.unit)}, {shown(modes[1], pair.unit)}"
    if pair.older:
        text += f"  older: {pair.older}"
    if ours.disturbed or theirs.disturbed:
        text += f"  disturbed: {ours.disturbed} / {theirs.disturbed} rounds"
    return text.rstrip(), holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds")
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for an idle machine, a round")
    parser.add_argument("--disk", default="/var/tmp", help="a folder on the disk to measure")
    parser.add_argument("--json", help="a file for the figures")
    options = parser.parse_args()
    all_hold = True
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(pathlib.Path(folder), options.disk)
        print(f"{'':52} {'quarrier':>15} {'reference':>15}  ratio")
        for pair in PAIRS:
            if options.only not in pair.name:
                continue
            try:
                ours, theirs = measure(pair, tools, max(options.rounds, 1), options.wait)
            except Unavailable as why:
                print(f"{pair.name}: left out: {why}", file=sys.stderr)
                continue
            text, holds = row(pair, ours, theirs)
            all_hold &= holds
            print(text, flush=True)
            found = {"name": pair.name, "unit": pair.unit, "ours": ours.values}
            found |= {"reference": theirs.values, "ratios": ratios(ours, theirs), "holds": holds}
            figures.append(found | {"disturbed": [ours.disturbed, theirs.disturbed]})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures))
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
