"""The planted files of an image, and a comparison of carved folders with them.

An image's truth is the JSON that the generator writes: each planted file with its type, size, SHA-256, mode (its
placement) and extents. A file is **exact** if one of the carved files has its SHA-256. A folder with a
`report.jsonl` is read as quarrier's, and its report is checked against the files; in any other folder every file
counts.
"""

from __future__ import annotations

import bisect
import collections
import hashlib
import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MODES = ("contig", "sector", "unaligned", "frag2", "frag3", "ooo", "trunc")
# Files in the rivals' folders that were not carved.
ACCOUNTS = {"audit.txt", "case.json", "report.xml", "report.dfxml", "report.jsonl", "report.html"}

Extents = list[tuple[int, int]]


class Planted(NamedTuple):
    name: str
    type: str
    mode: str
    size: int
    sha256: str
    is_recoverable: bool
    extents: Extents

    def text(self) -> str:
        return f"{self.name} ({self.type}, {self.mode}, {self.size} bytes at {self.extents[0][0]})"


class Row(NamedTuple):
    """A row of quarrier's report."""

    type: str
    offset: int
    length: int
    extents: Extents
    status: str
    reason: str
    sha256: str
    path: str

    def text(self) -> str:
        why = f", {self.reason}" if self.reason else ""
        return f"{self.status} {self.type} of {self.length} bytes at {self.offset}{why}"


class Truth:
    """The planted files of an image."""

    def __init__(self, path: pathlib.Path) -> None:
        fields = json.loads(path.read_text())
        self.image_bytes: int = fields["size"]
        self.files = [planted(file) for file in fields["files"]]
        self.by_hash = {file.sha256: file for file in self.files}
        self.by_start = {file.extents[0][0]: file for file in self.files}
        spans = [(at, at + length, file) for file in self.files for at, length in file.extents]
        self.spans = sorted(spans, key=lambda span: span[:2])
        self.starts = [span[0] for span in self.spans]

    def around(self, offset: int, length: int = 1) -> list[tuple[int, Planted]]:
        """The planted files with bytes in a range, and the number of these bytes."""
        at = max(bisect.bisect_right(self.starts, offset) - 1, 0)
        shared: collections.Counter[str] = collections.Counter()
        while at < len(self.spans) and self.starts[at] < offset + length:
            start, end, file = self.spans[at]
            shared[file.sha256] += max(0, min(end, offset + length) - max(start, offset))
            at += 1
        return [(count, self.by_hash[sha256]) for sha256, count in shared.items() if count]


def planted(file: dict[str, Any]) -> Planted:
    extents = [(int(at), int(length)) for at, length in file["extents"]]
    mode = file["mode"]
    return Planted(file["name"], file["type"], mode, file["size"], file["sha256"], file["recoverable"], extents)


def read_report(folder: pathlib.Path) -> list[Row]:
    """The rows of a report; each file that a row names must have its hash and length."""
    rows = []
    for line in (folder / "report.jsonl").read_text().splitlines():
        fields = json.loads(line)
        extents = [(int(at), int(length)) for at, length in fields["extents"]]
        row = Row(
            fields["type"],
            fields["offset"],
            fields["length"],
            extents,
            fields["status"],
            fields.get("reason") or "",
            fields.get("sha256") or "",
            fields.get("path") or "",
        )
        if row.path and (folder / row.path).exists():
            content = (folder / row.path).read_bytes()
            if len(content) != row.length or hashlib.sha256(content).hexdigest() != row.sha256:
                raise SystemExit(f"{folder}/report.jsonl: {row.path} differs from the report")
        rows.append(row)
    return rows


def carved_files(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in ACCOUNTS:
            yield path


class Score(NamedTuple):
    """How the files of a folder compare with the planted ones."""

    exact: set[str]
    files: int
    bytes: int
    # The numbers of files written again with the same content, and of files that were not planted.
    twice: int
    spurious: int


def score_folder(truth: Truth, folders: Iterable[pathlib.Path]) -> Score:
    """Hashes every file of the folders."""
    hashes: list[str] = []
    total = 0
    for folder in folders:
        for path in carved_files(folder):
            with path.open("rb") as file:
                hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
            total += path.stat().st_size
    exact = {sha256 for sha256 in hashes if sha256 in truth.by_hash}
    spurious = sum(sha256 not in truth.by_hash for sha256 in hashes)
    return Score(exact, len(hashes), total, len(hashes) - len(set(hashes)), spurious)


def nearest(truth: Truth, rows: list[Row], file: Planted) -> Row | None:
    """The row that begins where the file does, else the one that shares most bytes with it."""
    best, most = None, 0
    for row in rows:
        if row.offset == file.extents[0][0]:
            return row
        shared = sum(
            max(0, min(at + length, start + size) - max(at, start))
            for at, length in row.extents
            for start, size in file.extents
        )
        if shared > most:
            best, most = row, shared
    return best


def where(truth: Truth, row: Row) -> str:
    """How a row that was not planted relates to planted files."""
    if begun := truth.by_start.get(row.offset):
        return f"begins as {begun.text()}"
    found = [(file, count) for at, length in row.extents for count, file in truth.around(at, length)]
    if not found:
        return "nowhere near a planted file"
    file, count = max(found, key=lambda pair: pair[1])
    if count == row.length:
        return f"embedded in {file.text()}, {row.offset - file.extents[0][0]} bytes after its start"
    return f"shares {count} bytes with {file.text()}"


def table(truth: Truth, exact: set[str]) -> str:
    """Exact and planted files, by type and mode."""
    planted_of: collections.Counter[tuple[str, str]] = collections.Counter()
    exact_of: collections.Counter[tuple[str, str]] = collections.Counter()
    for file in truth.files:
        for key in ((file.type, file.mode), (file.type, "all"), ("all", file.mode), ("all", "all")):
            planted_of[key] += 1
            exact_of[key] += file.sha256 in exact
    modes = [mode for mode in MODES if planted_of["all", mode]] + ["all"]
    lines = [f"{'exact / planted':16}" + "".join(f"{mode:>11}" for mode in modes)]
    for kind in [*sorted({file.type for file in truth.files}), "all"]:
        cells = (
            f"{exact_of[kind, mode]} / {planted_of[kind, mode]}" if planted_of[kind, mode] else ""
            for mode in modes
        )
        lines.append(f"{kind:16}" + "".join(f"{cell:>11}" for cell in cells))
    return "\n".join(lines)


def explained(truth: Truth, rows: list[Row]) -> Iterator[str]:
    """The errors of a report: `valid` rows that were not planted, then missed files."""
    for row in rows:
        if row.status == "valid" and row.sha256 not in truth.by_hash:
            yield f"wrong: {row.text()}: {where(truth, row)}"
    by_hash = {row.sha256: row for row in rows}
    for file in truth.files:
        row = by_hash.get(file.sha256)
        if row is not None and row.status != "valid":
            yield f"exact, but not valid: {file.text()}: {row.text()}"
        if row is None and file.is_recoverable:
            near = nearest(truth, rows, file)
            yield f"missed: {file.text()}: {near.text() if near else 'no row near it'}"
