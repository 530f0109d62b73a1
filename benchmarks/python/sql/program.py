"""quarrier-sql as a process that is asked one statement after another."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any

#: A row that ends an answer.
MARK = "the end of the answer"


class Refused(Exception):
    """The program says that a statement has no answer."""


class Program:
    """A process that holds its tables; `tables` are names with files."""

    def __init__(self, program: str, tables: dict[str, Path], *options: str) -> None:
        named = [f"--table={name}={path}" for name, path in tables.items()]
        self.complaints: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with it)
        self.process = subprocess.Popen(
            [program, "--format", "json", *named, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
        )
        self.told = 0

    def ask(self, statement: str) -> tuple[float, list[dict[str, Any]]]:
        """Seconds until the whole answer was here, and its rows. Without rows, that is when the next
        answer is here."""
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
        """What was said on standard error since the last time."""
        self.complaints.seek(self.told)
        text = self.complaints.read()
        self.told = self.complaints.tell()
        return text.strip()

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()
        self.complaints.close()
