"""Programs in turns: whole processes with their CPU time, whose answers are compared in every round."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Ran(NamedTuple):
    """A program that has ended."""

    seconds: float
    #: User and system time, from wait4.
    cpu_seconds: float
    output: bytes


def run(command: Sequence[Any], keep: bool = True, accepted: Sequence[int] = (0,)) -> Ran:
    """Runs a program; an exit status that is not accepted ends the benchmark. Without `keep`, its output goes to
    the null device."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output if keep else subprocess.DEVNULL,
            stderr=complaints,
        )
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in accepted:
            complaints.seek(0)
            text = complaints.read().decode(errors="replace")
            sys.exit(f"{' '.join(map(str, command))[:300]}: status {child.returncode}: {text[-800:]}")
        output.seek(0)
        return Ran(seconds, used.ru_utime + used.ru_stime, output.read())


class Contender(NamedTuple):
    """A program, and the answer that its output must give; None is not compared."""

    command: Sequence[Any]
    answer: Callable[[bytes], Any] | None = None
    accepted: Sequence[int] = (0,)


class Turns:
    """The times of contenders in some rounds."""

    def __init__(self, contenders: dict[str, Contender], rounds: int, expected: Any = None) -> None:
        self.seconds: dict[str, list[float]] = {name: [] for name in contenders}
        self.cpu: dict[str, list[float]] = {name: [] for name in contenders}
        for number in range(rounds + 1):
            for name, contender in contenders.items():
                ran = run(contender.command, contender.answer is not None, contender.accepted)
                if contender.answer:
                    found = contender.answer(ran.output)
                    expected = found if expected is None else expected
                    if found != expected:
                        sys.exit(f"{name} has a different answer: {' '.join(map(str, contender.command))}")
                # The first round fills the page cache.
                if number:
                    self.seconds[name].append(ran.seconds)
                    self.cpu[name].append(ran.cpu_seconds)
        self.answer = expected

    def ratio(self, of: str, to: str) -> tuple[float, float, float, float]:
        """How many times as fast `of` is as `to`: the median, least and greatest of the rounds' ratios, and the
        median by CPU time."""
        wall, cpu = (
            [b / max(a, 1e-9) for a, b in zip(times[of], times[to], strict=True)]
            for times in (self.seconds, self.cpu)
        )
        return statistics.median(wall), min(wall), max(wall), statistics.median(cpu)

    def row(self, name: str) -> str:
        """Median and spread of the seconds and of the CPU seconds."""
        wall, cpu = self.seconds[name], self.cpu[name]
        return (
            f"{name:28} {statistics.median(wall):8.3f} s ({min(wall):.3f} to {max(wall):.3f}), CPU "
            f"{statistics.median(cpu):7.3f} s ({min(cpu):.3f} to {max(cpu):.3f})"
        )

    def show(self, baseline: str) -> None:
        """Prints each contender, and how many times as fast as the baseline it is."""
        for name in self.seconds:
            print("  " + self.row(name))
            if name != baseline:
                middle, least, most, cpu = self.ratio(name, baseline)
                spread = f"({least:.2f} to {most:.2f}), by CPU {cpu:.2f}"
                print(f"{'':30} {middle:.2f} times as fast as {baseline} {spread}")
        sys.stdout.flush()


def machine() -> str:
    """One line about this machine and its load."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{found[1] if found else 'unknown CPU'}, {os.cpu_count()} CPUs, load {load}"
