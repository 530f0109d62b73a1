#!/usr/bin/env python3
"""A folder of a million small files, searched by quarrier and by ripgrep; and 100 large files, compared with one
file of all their bytes.

    folders.py PROGRAM FOLDER [--files N] [--rounds N] [--parts small,large] [--rg PROGRAM]

FOLDER gets the files (200 bytes to 4 KB of text, 1,000 in each folder; it needs about 4 GB), or 100 files of
20 MiB. Both programs have two threads and print the same: the names of files with a match, or each match with its
file and offset. The sorted output is compared in every round. The files are in the page cache, or in a tmpfs.
"""

from __future__ import annotations

import argparse
import datetime
import os
import random
import shutil
from pathlib import Path

import images
from turns import Contender, Turns, machine

A_FOLDER = 1_000
LARGE, LARGE_MIB = 100, 20
PATTERNS = 100
#: One of so many files contains a pattern.
PLANTED_ONE_IN = 50


def make_small(folder: Path, count: int) -> list[str]:
    """Writes the files into `folder`; returns the patterns."""
    draw = random.Random(35)
    letters = "abcdefghijklmnopqrstuvwxyz"
    patterns = ["".join(draw.choices(letters, k=draw.randint(8, 16))) for _ in range(PATTERNS)]
    vocabulary = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(5_000)]
    text = " ".join(draw.choices(vocabulary, k=100_000)).encode()
    for number in range(count):
        if number % A_FOLDER == 0:
            inside = folder / f"{number // A_FOLDER:04}"
            inside.mkdir(parents=True)
        start = draw.randrange(len(text) - 4096)
        content = text[start : start + draw.randint(200, 4096)]
        if number % PLANTED_ONE_IN == 0:
            content = content[:100] + b" " + draw.choice(patterns).encode() + b"\n" + content[100:4000]
        handle = os.open(f"{inside}/{number:07}.txt", os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(handle, content)
        os.close(handle)
    return patterns


def rows(output: bytes) -> list[bytes]:
    return sorted(output.splitlines())


def ours(output: bytes) -> list[bytes]:
    """The rows of CSV, `source,offset,…`, as ripgrep prints them: `source:offset:match`."""
    lines = (line.split(b",") for line in output.splitlines()[1:])
    return sorted(b":".join((line[0], line[1], line[-1])) for line in lines)


def small(asked: argparse.Namespace) -> None:
    inputs, written = asked.folder / "small", asked.folder / "patterns.txt"
    shutil.rmtree(inputs, ignore_errors=True)
    patterns = make_small(inputs, asked.files)
    written.write_text("\n".join(patterns) + "\n")
    print(f"\n{asked.files:,} files of 200 bytes to 4 KB: {machine()}")
    search = [asked.program, "search", "-q", "-j", "2"]
    rg = [asked.rg, "-uuu", "-a", "-F", "-j", "2", "--no-config"]
    print("\n1 literal, names of files with a match")
    names = {
        "ripgrep": Contender([*rg, "-l", "-e", patterns[0], inputs], rows),
        "quarrier": Contender([*search, "-l", "-e", patterns[0], inputs], rows),
    }
    Turns(names, asked.rounds).show("ripgrep")
    print(f"\n{PATTERNS} literals, matches with their offsets")
    matches = {
        "ripgrep": Contender([*rg, "-obN", "--no-heading", "-H", "-f", written, inputs], rows),
        "quarrier": Contender([*search, "--format", "csv", "-f", written, inputs], ours),
    }
    Turns(matches, asked.rounds).show("ripgrep")
    shutil.rmtree(inputs)


def large(asked: argparse.Namespace) -> None:
    raw, patterns = images.make(asked.folder, LARGE * LARGE_MIB)
    parts = asked.folder / "large"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    with raw.open("rb") as file:
        for number in range(LARGE):
            (parts / f"{number:03}.img").write_bytes(file.read(LARGE_MIB << 20))
    print(f"\n{LARGE} files of {LARGE_MIB} MiB, {images.PATTERNS} literals: {machine()}")
    search = [asked.program, "search", "-q", "-j", "2", "-c", "--format", "csv", "-f", patterns]
    # No planted pattern crosses the end of a file.
    turns = Turns(
        {"one": Contender([*search, raw], rows), "many": Contender([*search, parts], rows)}, asked.rounds
    )
    turns.show("one")
    shutil.rmtree(parts)
    raw.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="small,large")
    parser.add_argument("--rg", default="rg")
    asked = parser.parse_args()
    asked.program = asked.program.resolve()
    asked.folder.mkdir(parents=True, exist_ok=True)
    print(datetime.date.today())
    for part, measure in (("small", small), ("large", large)):
        if part in asked.parts.split(","):
            measure(asked)


if __name__ == "__main__":
    main()
