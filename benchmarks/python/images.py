#!/usr/bin/env python3
"""Images in containers: how fast quarrier searches a qcow2, VMDK, VHDX, VHD or VDI, compared with the raw image,
and a compressed one, compared with a program that only decompresses it.

    images.py PROGRAM FOLDER [--size MiB] [--rounds N] [--parts plain,compressed] [--only WORD]

FOLDER gets an image of noise, text, zeros, log lines and records, and one container at a time, written by qemu-img
or a compressor. In plain ones every cluster is allocated (`qemu-img convert -S 0`). The search is for 100
literals, and its findings are compared, offset by offset, with those in the raw image. Decoders write to nowhere:
qemu-img to its device `null-co`, the others to /dev/null. Everything is read from the page cache.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import random
import subprocess
from pathlib import Path

from turns import Contender, Turns, machine, run

PIECE_BYTES = 64 << 10
PATTERNS = 100
PLAIN_GOAL, COMPRESSED_GOAL = 0.7, 0.9
#: Options of `qemu-img convert` for each kind.
PLAIN = {
    "qcow2": ["-O", "qcow2"],
    "vmdk": ["-O", "vmdk"],
    "vhdx": ["-O", "vhdx"],
    "vhd": ["-O", "vpc"],
    "vdi": ["-O", "vdi"],
    # Clusters in the order in which the writes were finished.
    "qcow2-unordered": ["-W", "-m", "16", "-O", "qcow2"],
}
PACKED = {
    "qcow2-zlib": ["-c", "-O", "qcow2"],
    "qcow2-zstd": ["-c", "-O", "qcow2", "-o", "compression_type=zstd"],
    "vmdk-stream": ["-O", "vmdk", "-o", "subformat=streamOptimized"],
}
#: Compressors and decompressors, which read a file and write to standard output.
STREAMS = {
    "gz": (["pigz", "-p2", "-c"], ["pigz", "-dc"]),
    "zst": (["zstd", "-T2", "-q", "-c"], ["zstd", "-T2", "-q", "-dc"]),
    "zst-frames": (["split", "-b8M", "--filter=zstd -q -c"], ["zstd", "-T2", "-q", "-dc"]),
    "zst-pzstd": (["pzstd", "-p", "2", "-q", "-c"], ["pzstd", "-p", "2", "-q", "-dc"]),
    "xz": (["xz", "-T2", "-2", "-c"], ["xz", "-T2", "-dc"]),
}


def make(folder: Path, size_mib: int, count: int = PATTERNS) -> tuple[Path, Path]:
    """The raw image, and the file of patterns; a pattern is planted in every second piece."""
    raw, patterns = folder / f"raw-{size_mib}-{count}.img", folder / f"patterns-{count}.txt"
    draw = random.Random(34)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    words = ["".join(draw.choices(letters, k=draw.randint(8, 16))) for _ in range(count)]
    patterns.write_text("\n".join(words) + "\n")
    if raw.exists():
        return raw, patterns
    vocabulary = ["".join(draw.choices(letters[:26], k=draw.randint(2, 11))) for _ in range(20_000)]
    partial = raw.with_suffix(".partial")
    with partial.open("wb") as file:
        for number in range((size_mib << 20) // PIECE_BYTES):
            kind = draw.random()
            if kind < 0.35:
                piece = bytearray(draw.randbytes(PIECE_BYTES))
            elif kind < 0.60:
                piece = bytearray(" ".join(draw.choices(vocabulary, k=PIECE_BYTES // 3)).encode())
            elif kind < 0.80:
                piece = bytearray(PIECE_BYTES)
            elif kind < 0.90:
                ends = (f"host{i % 7} daemon[{i}]: {draw.choice(vocabulary)}\n" for i in range(PIECE_BYTES // 40))
                piece = bytearray("".join(f"2026-11-27T10:{number % 60:02} {end}" for end in ends).encode())
            else:
                record = b"".join((number * 4096 + i).to_bytes(8, "little") + bytes(24) for i in range(2048))
                piece = bytearray(record)
            piece = piece[:PIECE_BYTES].ljust(PIECE_BYTES, b"\0")
            if number % 2:
                word = draw.choice(words).encode()
                at = draw.randrange(PIECE_BYTES - len(word))
                piece[at : at + len(word)] = word
            file.write(piece)
    partial.rename(raw)
    return raw, patterns


def digest(output: bytes) -> str:
    """Findings without the name of the source."""
    rows = [line.partition(b",")[2] for line in output.splitlines()]
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


class Search:
    def __init__(self, program: Path, patterns: Path) -> None:
        self.base = [program, "search", "-q", "-j", "2", "-f", patterns, "--format", "csv"]

    def findings(self, image: Path) -> str:
        output = run([*self.base, image]).output
        return f"{len(output.splitlines())} lines, {digest(output)}"

    def contender(self, image: Path) -> Contender:
        return Contender([*self.base, "-c", image], lambda output: sorted(output.splitlines()[1:]))


def is_right(search: Search, raw: Path, image: Path) -> bool:
    found, expected = search.findings(image), search.findings(raw)
    if found != expected:
        print(f"  WRONG ANSWER, not timed: {image}: {found}; raw: {expected}")
    return found == expected


def convert(raw: Path, target: Path, options: list[str]) -> None:
    subprocess.run(["qemu-img", "convert", "-f", "raw", *options, raw, target], check=True)


def plain(search: Search, raw: Path, folder: Path, rounds: int, only: str) -> None:
    print(f"\nPlain clusters, {raw.stat().st_size >> 20} MiB, {PATTERNS} literals; goal {PLAIN_GOAL} of raw")
    for kind, options in PLAIN.items():
        if only not in kind:
            continue
        image = folder / f"plain.{kind}"
        convert(raw, image, ["-S", "0", *options])
        if is_right(search, raw, image):
            turns = Turns({"raw": search.contender(raw), kind: search.contender(image)}, rounds)
            turns.show("raw")
        image.unlink()


def compressed(search: Search, raw: Path, folder: Path, rounds: int, only: str) -> None:
    size = raw.stat().st_size
    print(f"\nCompressed, {size >> 20} MiB, {PATTERNS} literals; goal {COMPRESSED_GOAL} of the decoder")
    for kind in [*PACKED, *STREAMS]:
        if only not in kind:
            continue
        image = folder / f"packed.{kind}"
        if kind in PACKED:
            convert(raw, image, PACKED[kind])
            target = f"driver=null-co,size={size}"
            decoder = ["qemu-img", "convert", "-m", "8", "-W", "-n", "--target-image-opts", image, target]
        else:
            with image.open("wb") as file:
                subprocess.run([*STREAMS[kind][0], raw], stdout=file, check=True)
            decoder = [*STREAMS[kind][1], image]
        if is_right(search, raw, image):
            turns = Turns({"decoder": Contender(decoder), kind: search.contender(image)}, rounds)
            print(f"  {kind}: {image.stat().st_size / size:.2f} of the size")
            turns.show("decoder")
        image.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=2048, help="MiB of the raw image")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="plain,compressed")
    parser.add_argument("--only", default="", help="only kinds with this in their name")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    print(f"{datetime.date.today()}: {machine()}")
    raw, patterns = make(asked.folder, asked.size)
    search = Search(asked.program.resolve(), patterns)
    for part, measure in (("plain", plain), ("compressed", compressed)):
        if part in asked.parts.split(","):
            measure(search, raw, asked.folder, asked.rounds, asked.only)
    print(machine())


if __name__ == "__main__":
    main()
