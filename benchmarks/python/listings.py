#!/usr/bin/env python3
"""File systems in images: listing a million files beside sleuthkit's `fls -r`, the bytes fetched for a listing
over HTTP, and what `--where` adds to a search.

    listings.py PROGRAM FOLDER [--files N] [--rounds N] [--parts list,http,where] [--kinds ext4,ntfs]

It needs root: the images are made in FOLDER by mkfs.ext4 or mkntfs, and filled through a loop mount or ntfs-3g.

list    files in folders of 1,000, one in ten with 100 bytes, the others empty. The paths of all programs are
        compared in every round.
http    an NTFS image of 2 GiB with 10,000 files, behind a server of byte ranges that counts requests and bytes;
        the rows are compared with those of the local image.
where   the same image, searched for 1,000 literals with and without --where. The findings are compared without
        their files. The time to read the file systems, which `quarrier files` takes too, is subtracted.
"""

from __future__ import annotations

import argparse
import datetime
import mmap
import os
import random
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import images
from turns import Contender, Turns, machine, run

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates/quarrier-python/tests"))
from range_server import RangeServer

A_FOLDER = 1_000
IMAGE_MIB, CONTENT_MIB, CONTENT_FILES = 2048, 1500, 10_000
WHERE_PATTERNS = 1_000
LIST_GOAL, HTTP_GOAL, WHERE_GOAL = 10.0, 0.02, 0.05
MADE = re.compile(rb"/?folder-\d{4}(/file-\d{7}\.txt)?")
MOUNTS = {"ext4": ["mount", "-o", "loop"], "ntfs": ["ntfs-3g", "-o", "big_writes"]}


@contextmanager
def mounted(kind: str, image: Path) -> Iterator[Path]:
    inside = image.with_suffix(".mounted")
    inside.mkdir(exist_ok=True)
    subprocess.run([*MOUNTS[kind], image, inside], check=True)
    try:
        yield inside
    finally:
        subprocess.run(["umount", inside], check=True)
        inside.rmdir()


def new_image(kind: str, image: Path, mib: int, files: int) -> None:
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(mib << 20)
    command = (
        ["mkfs.ext4", "-q", "-F", "-N", files * 11 // 10 + 10_000]
        if kind == "ext4"
        else ["mkntfs", "-q", "-Q", "-F"]
    )
    subprocess.run([*map(str, command), image], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_many(kind: str, image: Path, files: int) -> None:
    if image.exists():
        return
    partial = image.with_suffix(".partial")
    new_image(kind, partial, max(64, files * 2048 >> 20), files)
    with mounted(kind, partial) as root:
        for number in range(files):
            if number % A_FOLDER == 0:
                folder = f"{root}/folder-{number // A_FOLDER:04}"
                os.mkdir(folder)
            handle = os.open(f"{folder}/file-{number:07}.txt", os.O_CREAT | os.O_WRONLY, 0o644)
            if number % 10 == 0:
                os.write(handle, b"%098d\n\n" % number)
            os.close(handle)
    partial.rename(image)


def paths(found: Iterator[bytes]) -> list[bytes]:
    """Only names of the files that were made: sleuthkit also lists virtual files, and bytes in the unused part of
    folders that are no entries."""
    return sorted(path.lstrip(b"/") for path in found if MADE.fullmatch(path))


def made(files: int) -> list[bytes]:
    """The paths of the files and folders that were made."""
    names = [f"folder-{number // A_FOLDER:04}/file-{number:07}.txt" for number in range(files)]
    folders = [f"folder-{number:04}" for number in range(-(-files // A_FOLDER))]
    return sorted(name.encode() for name in names + folders)


def of_fls(output: bytes) -> list[bytes]:
    return paths(line.partition(b"\t")[2] for line in output.splitlines())


def of_body(output: bytes) -> list[bytes]:
    return paths(line.split(b"|")[1] for line in output.splitlines())


def of_csv(output: bytes) -> list[bytes]:
    rows = output.splitlines()
    column = rows[0].split(b",").index(b"path")
    return paths(row.split(b",")[column] for row in rows[1:])


def listing(asked: argparse.Namespace) -> None:
    for kind in asked.kinds.split(","):
        image = asked.folder / f"many.{kind}"
        make_many(kind, image, asked.files)
        print(f"\n{kind}, {asked.files:,} files; must be {LIST_GOAL:.0f} times as fast: {machine()}")
        ours = [asked.program, "files", "-q", image]
        turns = Turns(
            {
                "fls -r": Contender(["fls", "-r", "-p", image], of_fls),
                "fls -r -m /": Contender(["fls", "-r", "-m", "/", image], of_body),
                "quarrier files": Contender([*ours, "--format", "csv"], of_csv),
                "quarrier files --bodyfile": Contender([*ours, "--bodyfile"], of_body),
            },
            asked.rounds,
            made(asked.files),
        )
        turns.show("fls -r")
        image.unlink()


def make_content(folder: Path) -> tuple[Path, Path]:
    """An NTFS image with files, and the file of patterns in them."""
    raw, patterns = images.make(folder, CONTENT_MIB, WHERE_PATTERNS)
    image, draw = folder / "content.ntfs", random.Random(36)
    new_image("ntfs", image, IMAGE_MIB, CONTENT_FILES)
    most = 2 * (CONTENT_MIB << 20) // CONTENT_FILES
    with mounted("ntfs", image) as root, raw.open("rb") as source:
        for number in range(CONTENT_FILES):
            inside = root / f"folder-{number // A_FOLDER:04}"
            inside.mkdir(exist_ok=True)
            (inside / f"file-{number:07}.bin").write_bytes(source.read(draw.randrange(most)))
    raw.unlink()
    return image, patterns


def http(asked: argparse.Namespace, image: Path) -> None:
    command = [asked.program, "files", "-q", "--format", "csv"]
    local = run([*command, image]).output
    with image.open("rb") as file:
        held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    with RangeServer({"content.ntfs": held}) as server:  # type: ignore[dict-item]
        ran = run([*command, server.url("content.ntfs")])
        tally = server.take_tally()
    url = server.url("content.ntfs").encode()
    if ran.output.replace(url, str(image).encode()) != local:
        sys.exit("WRONG ANSWER: the listing over HTTP differs")
    share = tally.body_bytes / image.stat().st_size
    print(
        f"\nNTFS, {IMAGE_MIB} MiB, {len(local.splitlines()) - 1:,} rows, over HTTP: {tally.requests} requests, "
        f"{tally.body_bytes / 1e6:.1f} MB, {100 * share:.2f} % of the image; must be below {100 * HTTP_GOAL:.0f} %"
    )


def findings(output: bytes) -> list[bytes]:
    return sorted(b",".join(line.split(b",")[1:4]) for line in output.splitlines())


def where(asked: argparse.Namespace, image: Path, patterns: Path) -> None:
    search = [asked.program, "search", "-q", "-j", "2", "-f", patterns, "--format", "csv", image]
    turns = Turns(
        {
            "search": Contender(search, findings),
            "search --where": Contender([*search, "--where"], findings),
            "files": Contender([asked.program, "files", "--deleted", "-q", "--format", "csv", image]),
        },
        asked.rounds,
    )
    print(f"\n{WHERE_PATTERNS} literals, {len(turns.answer):,} findings: {machine()}")
    turns.show("search")
    for what, times in (("wall", turns.seconds), ("CPU", turns.cpu)):
        costs = [
            (b - c) / a - 1
            for a, b, c in zip(times["search"], times["search --where"], times["files"], strict=True)
        ]
        middle, least, most = (100 * value for value in (statistics.median(costs), min(costs), max(costs)))
        print(
            f"  --where without reading the file systems costs {middle:.1f} % of {what} time ({least:.1f} to "
            f"{most:.1f}); must be at most {100 * WHERE_GOAL:.0f} %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="list,http,where")
    parser.add_argument("--kinds", default="ext4,ntfs")
    asked = parser.parse_args()
    asked.program = asked.program.resolve()
    asked.folder.mkdir(parents=True, exist_ok=True)
    print(datetime.date.today())
    if "list" in asked.parts:
        listing(asked)
    if {"http", "where"} & set(asked.parts.split(",")):
        image, patterns = make_content(asked.folder)
        if "http" in asked.parts:
            http(asked, image)
        if "where" in asked.parts:
            where(asked, image, patterns)
        image.unlink()


if __name__ == "__main__":
    main()
