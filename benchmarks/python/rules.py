#!/usr/bin/env python3
"""YARA rules over an image and over a folder, by quarrier, by YARA-X and by the program yara:
rules.py PROGRAM FOLDER [--size MiB] [--rules N] [--rounds N] [--seed N] [--yara-x PYTHON]

Makes in FOLDER, from the seed: rules.yar (literals with all modifiers, hex strings, regexes, and conditions like
those of published rules), a folder of files, some of which contain strings of rules, and disk.img, all their
bytes. It compares the matching rules of each file, and of the image, in every round, before it prints a time: the
median of the rounds, in which all take turns. YARA-X is the package yara-x of the interpreter PYTHON (by default
this one), once with all matches and once with its fast scan. It has one thread for the image, as yara has, and two
processes for the folder.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from turns import Contender, Turns, machine

FILE_BYTES = 256 << 10
# One of so many files contains strings of rules.
PLANTED_ONE_IN = 20


def word(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789_-.", k=draw.randint(6, 20)))


def string(draw: random.Random) -> tuple[str, bytes]:
    """The declaration of a string, and bytes that match it."""
    text = word(draw)
    raw = text.encode()
    kind = draw.random()
    if kind < 0.5:
        modifier = draw.choice(["", " ascii", " nocase", " fullword"])
        return f'"{text}"{modifier}', b" " + raw + b" "
    if kind < 0.65:
        return f'"{text}" wide', bytes(b for c in raw for b in (c, 0))
    if kind < 0.7:
        return f'"{text}" xor(1-16)', bytes(c ^ 7 for c in raw)
    if kind < 0.9:
        raw = draw.randbytes(draw.randint(8, 24))
        digits = [f"{c:02X}" for c in raw]
        digits[3] = "??"
        return f"{{ {' '.join(digits)} }}", raw
    return f"/{text.replace('.', '[.]').replace('-', '[-]')}[0-9]{{2,6}}/", raw + b"1234"


def rules(draw: random.Random, count: int) -> tuple[str, list[bytes]]:
    """The text of the rules, and for each rule bytes that match all its strings."""
    declarations, planted = [], []
    for number in range(count):
        strings = [string(draw) for _ in range(draw.randint(2, 6))]
        condition = draw.choice(
            [
                "any of them",
                "all of them",
                "2 of them",
                "uint16(0) == 0x5A4D and any of them",
                "filesize < 1MB and 2 of them",
                "#s0 > 0 and $s1 in (0..filesize) and any of them",
            ]
        )
        lines = "".join(f"    $s{place} = {text}\n" for place, (text, _) in enumerate(strings))
        declarations.append(f"rule r{number} {{\n  strings:\n{lines}  condition:\n    {condition}\n}}\n")
        planted.append(b"\n".join(raw for _, raw in strings))
    return "".join(declarations), planted


def make(folder: Path, size_mib: int, count: int, seed: int) -> None:
    draw = random.Random(seed)
    text, planted = rules(draw, count)
    (folder / "rules.yar").write_text(text)
    (folder / "files").mkdir(parents=True, exist_ok=True)
    vocabulary = [word(draw) for _ in range(5000)]
    with (folder / "disk.img").open("wb") as image:
        for number in range(size_mib * (1 << 20) // FILE_BYTES):
            kind = number % 3
            if kind == 0:
                data = bytearray(draw.randbytes(FILE_BYTES))
            elif kind == 1:
                data = bytearray(" ".join(draw.choices(vocabulary, k=FILE_BYTES // 8)).encode()[:FILE_BYTES])
            else:
                data = bytearray(FILE_BYTES)
            data[:2] = b"MZ" if number % 4 == 0 else bytes(data[:2])
            if number % PLANTED_ONE_IN == 0:
                for raw in draw.choices(planted, k=3):
                    at = draw.randrange(2, len(data) - len(raw))
                    data[at : at + len(raw)] = raw
            (folder / "files" / f"{number:06}").write_bytes(data)
            image.write(data)


def of_lines(output: bytes) -> set[tuple[str, str]]:
    pairs = (line.split(" ", 1) for line in output.decode().splitlines())
    return {(rule, path) for rule, path in pairs}


def of_quarrier(output: bytes) -> set[tuple[str, str]]:
    rows = map(json.loads, output.splitlines())
    return {(row["rule"], row["source"]) for row in rows}


def contenders(asked: argparse.Namespace, what: str) -> dict[str, Contender]:
    rules = asked.folder / "rules.yar"
    source = asked.folder / ("disk.img" if what == "image" else "files")
    yara = ["yara", "-w", *(["-r", "-p", "2"] if what == "folder" else []), rules, source]
    script = Path(__file__).with_name("rules_yara_x.py")
    processes = "2" if what == "folder" else "1"
    yara_x = [asked.yara_x, script, "--processes", processes, rules, source]
    quarrier = [asked.program.resolve(), "search", "--rules", rules, "--format", "json", "-q", source]
    return {
        "quarrier": Contender(quarrier, of_quarrier, (0, 1)),
        "YARA-X": Contender(yara_x, of_lines),
        "YARA-X, fast scan": Contender([*yara_x, "--fast"], of_lines),
        "yara": Contender(yara, of_lines),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=1024, help="MiB of all files")
    parser.add_argument("--rules", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--yara-x", type=Path, default=Path(sys.executable), help="Python with the package yara-x")
    asked = parser.parse_args()
    asked.folder = asked.folder.resolve()
    asked.folder.mkdir(parents=True, exist_ok=True)
    make(asked.folder, asked.size, asked.rules, asked.seed)
    print(machine())
    for what in ("image", "folder"):
        turns = Turns(contenders(asked, what), asked.rounds)
        print(f"{what}: {asked.size} MiB, {asked.rules} rules, {len(turns.answer)} hold")
        turns.show("quarrier")


if __name__ == "__main__":
    main()
