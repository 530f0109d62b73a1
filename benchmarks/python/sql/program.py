"""quarrier-sql as a process that answers one statement after another."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any

#: A row that ends an answer.
MARK = "the end of the answer"
#: The line that `--timing` prints for a statement.
TIMED = re.compile(r"\d+ rows? in ([0-9.]+) s")


class Refused(Exception):
    """The program refused a statement."""


class Program:
    """A process that keeps its tables in memory; `tables` are names with files."""

    def __init__(self, program: str, tables: dict[str, Path], *options: str) -> None:
        named = [f"--table={name}={path}" for name, path in tables.items()]
        written = tempfile.NamedTemporaryFile("ab")  # noqa: SIM115 (closed below)
        # It needs a separate position in the file, because the program writes meanwhile.
        self.complaints: IO[bytes] = open(written.name, "rb")  # noqa: SIM115 (closed with it)
        self.process = subprocess.Popen(
            [program, "--format", "json", *named, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
        )
        written.close()
        self.complaints_read = 0
        #: With `--timing`, the seconds of each statement and of the mark after it by the program's own
        #: clock, from reading the statement to writing the answer.
        self.timed: list[float] = []

    def ask(self, statement: str) -> tuple[float, list[dict[str, Any]]]:
        """The seconds until the whole answer arrived, and its rows. If there are none, the next answer ends the
        wait."""
        assert self.process.stdin and self.process.stdout
        start = time.perf_counter()
        end = None
        print(f"{statement};\nSELECT '{MARK}' AS mark;", file=self.process.stdin, flush=True)
        lines = []
        while line := self.process.stdout.readline():
            if MARK in line:
                break
            end = time.perf_counter()
            lines.append(line)
        else:
            raise Refused(f"the program ended: {self.complaint()}")
        seconds = (end or time.perf_counter()) - start
        complaint = self.complaint()
        if complaint:
            raise Refused(complaint)
        return seconds, [json.loads(line) for line in lines]

    def complaint(self) -> str:
        """The output on standard error since the last call."""
        self.complaints.seek(self.complaints_read)
        text = self.complaints.read()
        # The timing of the last mark may be incomplete.
        text = text[: text.rfind(b"\n") + 1]
        self.complaints_read += len(text)
        lines = text.decode(errors="replace").splitlines()
        timings = [TIMED.fullmatch(line) for line in lines]
        self.timed += [float(time[1]) for time in timings if time]
        return "\n".join(line for line, time in zip(lines, timings) if not time).strip()

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()
        self.complaints.close()
