"""Searches, carves and queries on the workers of a cluster, by the program `quarrier-cluster`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from quarrier._errors import QuarrierError, SourceWarning
from quarrier._native import Pattern, Table, regex

__all__ = ["Cluster", "connect", "local"]

_NAME = "quarrier-cluster"

_READY = "ready: scheduler at "

# Exit codes: found, nothing found, some of the input could not be read.
_DONE = (0, 1, 3)

_Path: TypeAlias = str | os.PathLike[str]
_AnyPattern: TypeAlias = str | bytes | Pattern | re.Pattern[str] | re.Pattern[bytes]


def local(workers: int = 2) -> Cluster:
    """Starts a scheduler and `workers` processes on this machine, which end with the `Cluster`.

    A worker that dies is replaced. The program `quarrier-cluster`, which `make cluster` builds,
    must be on PATH or beside Python.

    >>> with quarrier.cluster.local(workers=2) as lab:  # doctest: +SKIP
    ...     rows = lab.search("images/*.dd", ["invoice", quarrier.hex("FF D8 FF")])
    """
    if workers < 1:
        raise ValueError(f"a cluster has at least one worker, not {workers}")
    command = [_program(), "local", "--workers", str(workers)]
    # Ctrl-C is for this process, which ends the cluster.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    if not line.startswith(_READY):
        process.wait()
        raise QuarrierError("the cluster did not start; its error is above")
    return Cluster(line.removeprefix(_READY).strip(), None, process)


def connect(address: str, *, tls: _Path | None = None) -> Cluster:
    """The cluster of the scheduler at `address`, `HOST:PORT`.

    `tls` is the folder of certificates that scheduler and workers have.
    """
    return Cluster(address, tls, None)


class Cluster:
    """A cluster. Its methods may be called from several threads; it is also a context manager."""

    def __init__(
        self, address: str, tls: _Path | None, process: subprocess.Popen[str] | None
    ) -> None:
        self.address = address
        """The address of the scheduler, `HOST:PORT`."""
        self._tls = tls
        self._process = process

    def __repr__(self) -> str:
        return f"quarrier.cluster.connect({self.address!r})"

    def search(
        self,
        sources: _Path | Iterable[_Path],
        patterns: _AnyPattern | Iterable[_AnyPattern] | os.PathLike[str],
        *,
        to: _Path | None = None,
        ignore_case: bool = False,
        utf16: bool = False,
        word: bool = False,
        range: tuple[int, int] | None = None,
        unit_size: int | str | None = None,
    ) -> Table:
        """Searches sources, and returns the rows of a search by this process.

        All workers must find the sources by the same absolute paths, or by URLs. A path of patterns
        names a pattern file. With `to`, a folder or a URL of a bucket, rows are stored there, and
        units that have stored rows are not searched again. A unit at which three workers died is
        left out, with a `SourceWarning`.
        """
        options = _flags(i=ignore_case, utf16=utf16, word_regexp=word)
        if range is not None:
            options += ["--range", f"{range[0]}..{range[1]}"]
        if unit_size is not None:
            options += ["--unit-size", str(unit_size)]
        return self._run(["search", *options, *_patterns(patterns), *_to(to)], sources)

    def carve(
        self,
        sources: _Path | Iterable[_Path],
        folder: _Path | None = None,
        *,
        to: _Path | None = None,
        types: Iterable[str] | None = None,
        embedded: bool = False,
        unallocated: bool = False,
        valid_only: bool = False,
        range: tuple[int, int] | None = None,
    ) -> Table:
        """Carves sources, each by one worker, and returns the rows of the files.

        The files are written to `folder`, which all workers must reach; without it, there are only
        rows. With `to`, rows are stored there, and sources that have stored rows are not carved
        again.
        """
        options = _flags(embedded=embedded, unallocated=unallocated)
        options += ["--dry-run"] if folder is None else ["--output", os.fspath(folder)]
        if types is not None:
            options += ["--types", ",".join(types)]
        if valid_only:
            options += ["--keep", "valid"]
        if range is not None:
            options += ["--range", f"{range[0]}..{range[1]}"]
        return self._run(["carve", *options, *_to(to)], sources)

    def sql(self, statement: str, *, tables: Mapping[str, _Path] | None = None) -> Table:
        """Answers one statement of SQL, whose files the workers read, filter and group.

        `tables` gives names to files or globs: Parquet, or messages. Other tables are not spread,
        and are an error: compressed messages, `search(…)` and the like.
        """
        names = {} if tables is None else tables
        options = [f"--table={name}={os.fspath(file)}" for name, file in names.items()]
        return self._run(["query", *options], statement)

    def close(self) -> None:
        """Ends the processes of a local cluster."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _run(self, arguments: list[str], sources: _Path | Iterable[_Path]) -> Table:
        if isinstance(sources, (str, os.PathLike)):
            sources = [sources]
        names = [os.fspath(source) for source in sources]
        if not names:
            raise ValueError("there is no source")
        command = [_program(), *arguments, "--cluster", self.address]
        command += ["--quiet", "--format", "arrow", "--", *names]
        environment = os.environ.copy()
        if self._tls is not None:
            environment["QUARRIER_CLUSTER_TLS"] = os.fspath(self._tls)
        with tempfile.NamedTemporaryFile(suffix=".arrow") as rows:
            _call(command, rows.fileno(), environment)
            return Table.from_messages(rows.name, format="arrow")


def _call(command: list[str], output: int, environment: dict[str, str]) -> None:
    """Runs a command that writes rows to a file. Its messages become warnings, or an error."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, said = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    lines = [line.removeprefix("quarrier: ") for line in said.splitlines()]
    if process.returncode not in _DONE:
        raise QuarrierError(lines[-1] if lines else f"{_NAME} ended: {process.returncode}")
    for line in lines:
        warnings.warn(line, SourceWarning, stacklevel=4)


def _program() -> str:
    places = [Path(sysconfig.get_path("scripts"), _NAME), Path(__file__).parents[1] / "bin" / _NAME]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    on_path = shutil.which(_NAME)
    if on_path is None:
        raise QuarrierError(f"{_NAME} is not on PATH; 'make cluster' builds it")
    return on_path


def _flags(**options: bool) -> list[str]:
    names = [name for name, is_set in options.items() if is_set]
    return [f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}" for name in names]


def _to(place: _Path | None) -> list[str]:
    return [] if place is None else ["--to", os.fspath(place)]


def _patterns(
    patterns: _AnyPattern | Iterable[_AnyPattern] | os.PathLike[str],
) -> Iterator[str]:
    if isinstance(patterns, os.PathLike):
        yield from ("-f", os.fspath(patterns))
        return
    if isinstance(patterns, (str, bytes, Pattern, re.Pattern)):
        patterns = [patterns]
    for pattern in patterns:
        yield _pattern(pattern)


def _pattern(pattern: _AnyPattern) -> str:
    """The option for a pattern, whose text may begin with a hyphen."""
    if isinstance(pattern, re.Pattern):
        pattern = regex(pattern)
    if isinstance(pattern, Pattern):
        return f"--{pattern.kind}={pattern.text}"
    if isinstance(pattern, str):
        return f"--pattern={pattern}"
    if isinstance(pattern, bytes):
        return f"--hex={pattern.hex(' ')}"
    raise TypeError(f"a pattern is a str, bytes, or made by hex or regex, not {pattern!r}")
