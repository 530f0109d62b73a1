#!/usr/bin/env python3
"""Mutants of real files through the real commands: `campaign.py --program target/release/quarrier`.

The fuzz targets call functions; this calls programs, as a stranger's file would meet them. Each mutant goes
through each command that reads its kind, in at most 1 GiB of memory and a time limit.
It must end by itself with an exit status of 0 to 3 and at most one line on standard error that is not a panic's.
Mutants that do not are left in the folder of findings with the command that failed.

Seeds are made here, of every format that Python's standard library writes and, where pyarrow is installed,
Arrow and Parquet; `--corpus FOLDER` adds the files of a folder, told apart by their endings.
"""

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import re
import resource
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import wave
import zipfile
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

MEMORY_BYTES = 1 << 30
# Threads reserve more than they use.
ADDRESS_SPACE_BYTES = 8 << 30
SEED_BYTES_MAX = 1 << 20

# A mutant stands in the place of FILE. To start a program costs more than most mutants, so commands that
# take several files get BATCH of them at once, and one by one where that ends badly.
BATCH = 16
SEARCHES = [
    ["search", "-q", "-e", "invoice", "-e", "price", "-E", "[a-z]{3,9}[0-9]+", "--format", "json", "FILE"],
]
CARVES = [["carve", "-q", "FILE", "-o", "FOLDER"]]
EXPLAIN = ["explain", "-q", "price > 5", "FILE"]
MESSAGES = [
    ["filter", "-q", "price > 5 AND name LIKE '%a%'", "FILE"],
    ["filter", "-q", "qty > 1 OR price IS NULL", "FILE", "--format", "csv"],
    EXPLAIN,
]
QUERIES = [
    ["query", "-q", "SELECT * FROM 'FILE' ORDER BY 1 LIMIT 5"],
    ["query", "-q", "SELECT name, count(*), sum(qty), max(price) FROM 'FILE' GROUP BY name"],
    ["query", "-q", "SELECT count(*) FROM 'FILE' WHERE price > 5 AND name LIKE '%a%'"],
]
MESSAGE_KINDS = {"ndjson", "ndjson.gz", "jsonl", "csv", "fix", "nvfix", "xml"}
COLUMN_KINDS = {"arrow", "arrows", "parquet"}


def commands_for(kind: str) -> list[list[str]]:
    if kind in COLUMN_KINDS:
        return [*QUERIES, EXPLAIN]
    if kind == "fix":
        return [[in_fix(word) for word in command] for command in [*MESSAGES, *QUERIES]]
    return [*MESSAGES, *QUERIES] if kind in MESSAGE_KINDS else [*SEARCHES, *CARVES]


def in_fix(word: str) -> str:
    """What is asked, with the names that FIX gives to columns."""
    for name, tag in {"name": "Symbol", "price": "Price", "qty": "OrderQty"}.items():
        word = word.replace(name, tag)
    return word


def rows() -> list[dict]:
    draw = random.Random(5)
    return [
        {
            "id": number,
            "name": draw.choice(["anna", "bert", "carla", "ünï"]) + str(number % 7),
            "price": round(draw.uniform(0, 10), 3) if number % 5 else None,
            "qty": draw.randrange(9),
            "ok": number % 3 == 0,
            "day": f"20{number % 30:02}-0{1 + number % 9}-11",
        }
        for number in range(60)
    ]


def fix_message(row: dict) -> bytes:
    order = {35: "D", 34: row["id"], 55: row["name"], 44: row["price"] or 1, 38: row["qty"]}
    body = "".join(f"{tag}={value}\x01" for tag, value in order.items()).encode()
    message = b"8=FIX.4.4\x019=%d\x01%s" % (len(body), body)
    return message + b"10=%03d\x01\n" % (sum(message) % 256)


def message_seeds() -> dict[str, bytes]:
    table = rows()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    tags = "".join(
        "<row>"
        + "".join(f"<{name}>{value}</{name}>" for name, value in row.items() if value is not None)
        + "</row>\n"
        for row in table
    )
    named = "".join(
        "".join(f"{name}={value}\x01" for name, value in row.items() if value is not None) + "\n" for row in table
    )
    lines = "".join(json.dumps(row) + "\n" for row in table).encode()
    return {
        "ndjson": lines,
        "ndjson.gz": gzip.compress(lines, mtime=0),
        "nvfix": named.encode(),
        "csv": text.getvalue().encode(),
        "fix": b"".join(map(fix_message, table)),
        "xml": f"<rows>\n{tags}</rows>\n".encode(),
    }


def column_seeds() -> dict[str, bytes]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        print("no pyarrow: no seeds of Arrow and Parquet", file=sys.stderr)
        return {}
    table = pa.Table.from_pylist(rows())
    table = table.set_column(1, "name", table["name"].dictionary_encode())
    file, stream, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=20)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, parquet, row_group_size=20)
    return {"arrow": file.getvalue(), "arrows": stream.getvalue(), "parquet": parquet.getvalue()}


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\x00" + bytes(range(48)) for _ in range(16))
    header = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    )


def file_seeds() -> dict[str, bytes]:
    text = b"".join(b"invoice %d price %d\n" % (n, n * 7) for n in range(200))
    archive, packed, sound = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a/invoice.txt", text)
        file.writestr("b.png", png())
    with tarfile.open(fileobj=packed, mode="w") as file:
        entry = tarfile.TarInfo("invoice.txt")
        entry.size = len(text)
        file.addfile(entry, io.BytesIO(text))
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.sqlite")
        base = sqlite3.connect(path)
        base.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"invoice {n}") for n in range(300)])
        base.commit()
        base.close()
        database = path.read_bytes()
    pdf = (
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
        b"2 0 obj\n<< /Type /Pages /Kids [] /Count 0 >>\nendobj\nxref\n0 3\n0000000000 65535 f \n"
        b"0000000009 00000 n \n0000000058 00000 n \ntrailer\n<< /Size 3 /Root 1 0 R >>\nstartxref\n108\n%%EOF\n"
    )
    return {
        "gz": gzip.compress(text, mtime=0),
        "bz2": bz2.compress(text),
        "xz": lzma.compress(text),
        "zip": archive.getvalue(),
        "tar": packed.getvalue(),
        "png": png(),
        "wav": sound.getvalue(),
        "sqlite": database,
        "pdf": pdf,
    }


def corpus(folder: Path) -> list[tuple[str, bytes]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size <= SEED_BYTES_MAX)
    return [(path.suffix.lstrip(".").lower(), path.read_bytes()) for path in paths if path.suffix]


EXTREMES = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
]


def mutate(seed: bytes, draw: random.Random) -> bytes:
    """One to eight changes: bits, bytes, numbers at their ends, pieces moved, repeated, zeroed, cut off."""
    data = bytearray(seed)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        at = draw.randrange(len(data))
        end = min(len(data), at + draw.choice([1, 2, 4, 8, 64, 512]))
        match draw.randrange(9):
            case 0:
                data[at] ^= 1 << draw.randrange(8)
            case 1:
                data[at] = draw.randrange(256)
            case 2 | 3:
                width = draw.choice([2, 4, 8])
                at = at // width * width
                value = draw.choice(EXTREMES) % (1 << 8 * width)
                data[at : at + width] = value.to_bytes(width, draw.choice(["little", "big"]))
            case 4:
                del data[at:end]
            case 5:
                data[at:at] = data[at:end]
            case 6:
                data[at:end] = bytes(end - at)
            case 7:
                to = draw.randrange(len(data))
                data[to : to + end - at] = data[at:end]
            case 8:
                del data[at + 1 :]
    return bytes(data)


# What is not a complaint: ranges and messages that every run lists.
LISTED = re.compile(rb": (bytes \d+\.\.\d+ could not be read|\d+ of \d+ messages were left out)")


def read_until(descriptor: int, end: float) -> bytes | None:
    """All that comes until the other side closes, or nothing where that is not before `end`."""
    said = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while (left := end - time.monotonic()) > 0 and poll.poll(left * 1000):
        more = os.read(descriptor, 1 << 16)
        if not more:
            return said
        said += more[: (1 << 16) - len(said)]
    return None


def limit_memory() -> None:
    """What this process starts has the same limits."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass
class Campaign:
    program: Path
    seconds: float
    findings: Path
    folder: Path

    def complaint(self, arguments: list[str], files: int = 1) -> str | None:
        """What is wrong with how the command ended, which may say a line of each of so many files."""
        # No preexec_fn, with which Python forks all of itself: the limits are this process's own.
        run = subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert run.stderr is not None
        said = read_until(run.stderr.fileno(), time.monotonic() + self.seconds)
        if said is None:
            os.killpg(run.pid, signal.SIGKILL)
        _, status, used = os.wait4(run.pid, 0)
        run.stderr.close()
        run.returncode = os.waitstatus_to_exitcode(status)
        if said is None:
            return f"runs for more than {self.seconds:g} s"
        if used.ru_maxrss > MEMORY_BYTES >> 10:
            return f"takes {used.ru_maxrss >> 10} MiB"
        if run.returncode not in (0, 1, 2, 3):
            return f"exit status {run.returncode}: {said[-300:]!r}"
        lines = [line for line in said.splitlines() if not LISTED.search(line)]
        if len(lines) > files or b"panick" in said:
            return f"says {said[:300]!r}"
        return None

    def check_seed(self, kind: str, seed: bytes) -> None:
        """Ends the campaign where a command refuses a sound file: it would refuse all mutants, too."""
        path = self.folder / f"seed.{kind}"
        path.write_bytes(seed)
        for command in commands_for(kind):
            words = [self.word(word, path) for word in command]
            run = subprocess.run([self.program, *words], capture_output=True)
            shutil.rmtree(self.out(path), ignore_errors=True)
            if run.returncode > 1:
                sys.exit(f"a sound {kind}: {' '.join(command)}: {run.stderr.decode()}")
        path.unlink()

    def out(self, path: Path) -> Path:
        return path.with_name(f"{path.name}-out")

    def word(self, word: str, path: Path) -> str:
        return word.replace("FILE", str(path)).replace("FOLDER", str(self.out(path)))

    def try_batch(self, kind: str, seeds: list[bytes], numbers: range) -> list[str]:
        """What is wrong with how commands end that read the mutants of these numbers."""
        paths = []
        for number in numbers:
            draw = random.Random(f"{kind} {number}")
            paths.append(self.folder / f"{kind}-{number}.{kind}")
            paths[-1].write_bytes(mutate(seeds[number % len(seeds)], draw))
        found = []
        for place, command in enumerate(commands_for(kind)):
            at_once = self.at_once(command, paths)
            complaint = self.complaint(at_once, len(paths)) if at_once else ""
            if complaint is None:
                continue
            ended = [(path, self.try_one(command, path)) for path in paths]
            for path, one in ended:
                if one:
                    kept = self.findings / f"{place}-{path.name}"
                    shutil.copy(path, kept)
                    found.append(f"{kept}: {' '.join(command)}: {one}")
            if complaint and not any(one for _, one in ended):
                found.append(f"{kind} {numbers}: {' '.join(command)}, only at once: {complaint}")
        for path in paths:
            path.unlink()
        return found

    def at_once(self, command: list[str], paths: list[Path]) -> list[str] | None:
        """The command over all files, if it takes several."""
        if command[0] == "search":
            return [*command[:-1], *map(str, paths)]
        if command[0] == "query":
            statements = paths[0].with_suffix(".sql")
            statements.write_text("".join(self.word(command[-1], path) + ";\n" for path in paths))
            return [*command[:-1], "--concurrent", str(statements)]
        return None

    def try_one(self, command: list[str], path: Path) -> str | None:
        complaint = self.complaint([self.word(word, path) for word in command])
        shutil.rmtree(self.out(path), ignore_errors=True)
        return complaint


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="quarrier, with quarrier-sql beside it")
    parser.add_argument("--mutants", type=int, default=10_000, help="of each format")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--seconds", type=float, default=20, help="a command may take")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="a folder of further seeds")
    parser.add_argument("--kinds", help="only these, with commas between")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    chosen = parser.parse_args()

    seeds: dict[str, list[bytes]] = {}
    made = {**message_seeds(), **column_seeds(), **file_seeds()}
    for kind, seed in [
        *made.items(),
        *(pair for folder in chosen.corpus for pair in corpus(folder)),
    ]:
        if not chosen.kinds or kind in chosen.kinds.split(","):
            seeds.setdefault(kind, []).append(seed)
    chosen.findings.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(chosen.workers, initializer=limit_memory) as pool,
    ):
        campaign = Campaign(chosen.program.resolve(), chosen.seconds, chosen.findings, Path(folder))
        for kind, seed in made.items():
            if kind in seeds:
                campaign.check_seed(kind, seed)
        for kind, of_kind in sorted(seeds.items()):
            end = chosen.first + chosen.mutants
            batches = [range(first, min(first + BATCH, end)) for first in range(chosen.first, end, BATCH)]
            for found in pool.map(campaign.try_batch, repeat(kind), repeat(of_kind), batches):
                for line in found:
                    print(line, flush=True)
                counts[kind] += len(found)
            print(f"{kind}: {chosen.mutants} mutants, {counts[kind]} findings", flush=True)
    return 1 if counts.total() else 0


if __name__ == "__main__":
    sys.exit(main())
