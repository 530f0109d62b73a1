#!/usr/bin/env python3
"""Runs the real commands on mutants of real files: `campaign.py --program target/release/quarrier`.

The fuzz targets call functions; this program runs the commands, as they would meet a stranger's file. Each
mutant is passed to each command that reads its format, with at most 1 GiB of memory and a time limit. The
command must end by itself, with an exit status of 0 to 3 and at most one line on standard error, which must not
be a panic's. Other mutants are kept in the folder of findings, with the command that failed.

The program makes seeds of every format that Python's standard library writes; with pyarrow also Arrow and
Parquet; with mkfs and qemu-img also file systems and images. `--corpus FOLDER` adds the files of a folder, whose
extensions name their formats: for APFS and small volumes of the other file systems, those that
`cargo run --manifest-path fuzz/Cargo.toml -- --write FOLDER` writes.
"""

import argparse
import os
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, repeat
from pathlib import Path

from seed_files import column_seeds, disk_seeds, file_seeds, message_seeds

MEMORY_BYTES = 1 << 30
# Threads reserve more address space than they use.
ADDRESS_SPACE_BYTES = 8 << 30
SEED_BYTES_MAX = 1 << 20
# An empty VHDX has a log and a table of 1 MiB each.
IMAGE_BYTES_MAX = 16 << 20

# A mutant replaces FILE. Starting a program takes longer than reading most mutants, so commands that accept
# several files get BATCH of them at once, and each of them alone if that fails.
BATCH = 16
SEARCHES = [
    ["search", "-q", "-e", "invoice", "-e", "price", "-E", "[a-z]{3,9}[0-9]+", "--format", "json", "FILE"],
]
CARVES = [["carve", "-q", "FILE", "-o", "FOLDER"]]
FILES = [
    ["files", "-q", "FILE"],
    ["files", "-q", "FILE", "--extract", "-o", "FOLDER"],
    ["search", "-q", "-e", "invoice", "--where", "--format", "json", "FILE"],
    ["carve", "-q", "--unallocated", "FILE", "-o", "FOLDER"],
]
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
FILE_SYSTEM_KINDS = {"fat", "exfat", "ntfs", "ext", "xfs", "btrfs", "apfs", "hfs", "iso"}
IMAGE_KINDS = {"qcow2", "vmdk", "vhd", "vhdx", "vdi", "parallels", "dmg", "e01", "ex01", "aff4", "zst"}
ARCHIVE_KINDS = {"zip", "7z", "tar", "gz", "xz", "bz2"}
# RULES is a file with this text.
MEMBERS = [["search", "-q", "--rules", "RULES", "--scopes", "all", "--format", "json", "FILE"]]
RULES_TEXT = 'rule invoices { strings: $a = "invoice" $b = /price [0-9]+/ condition: $a and #b > 1 }\n'


def commands_for(kind: str) -> list[list[str]]:
    if kind in COLUMN_KINDS:
        return [*QUERIES, EXPLAIN]
    if kind == "fix":
        return [[in_fix(word) for word in command] for command in [*MESSAGES, *QUERIES]]
    if kind in FILE_SYSTEM_KINDS | IMAGE_KINDS:
        return [*SEARCHES, *CARVES, *FILES]
    if kind in ARCHIVE_KINDS:
        return [*SEARCHES, *CARVES, *MEMBERS]
    return [*MESSAGES, *QUERIES] if kind in MESSAGE_KINDS else [*SEARCHES, *CARVES]


def in_fix(word: str) -> str:
    """The query, with FIX's names for its columns."""
    for name, tag in {"name": "Symbol", "price": "Price", "qty": "OrderQty"}.items():
        word = word.replace(name, tag)
    return word


def corpus(folder: Path) -> list[tuple[str, bytes]]:
    def fits(path: Path) -> bool:
        is_image = path.suffix.lstrip(".").lower() in IMAGE_KINDS | FILE_SYSTEM_KINDS
        return path.stat().st_size <= (IMAGE_BYTES_MAX if is_image else SEED_BYTES_MAX)

    paths = sorted(path for path in folder.rglob("*") if path.is_file() and fits(path))
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


BLOCK_BYTES = 4096


@cache
def used_blocks(seed: bytes) -> list[int]:
    """The blocks that are not all zeros: most of a volume is empty."""
    return [at for at in range(0, len(seed), BLOCK_BYTES) if any(seed[at : at + BLOCK_BYTES])] or [0]


def mutate(seed: bytes, draw: random.Random) -> bytes:
    """Makes one to eight changes: bits, bytes, extreme numbers, pieces moved, repeated, zeroed or cut off."""
    data = bytearray(seed)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        if not data:
            break
        at = min(draw.choice(used_blocks(seed)) + draw.randrange(BLOCK_BYTES), len(data) - 1)
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


def fletcher64(block: bytes) -> bytes:
    """The checksum of an object of APFS, which begins with it."""
    words = struct.unpack(f"<{len(block) // 4 - 2}I", block[8:])
    modulus = (1 << 32) - 1
    low, high = sum(words) % modulus, sum(accumulate(words)) % modulus
    first = modulus - (low + high) % modulus
    return struct.pack("<II", first, modulus - (low + first) % modulus)


CRC32C = list(range(256))
for _ in range(8):
    CRC32C = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in CRC32C]


def crc32c(block: bytes) -> bytes:
    """The checksum of a node or superblock of Btrfs, which begins with it, padded to 32 bytes."""
    crc = 0xFFFFFFFF
    for byte in block[32:]:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 0xFF]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


CHECKSUMS = {"apfs": fletcher64, "btrfs": crc32c}


@cache
def summed_blocks(kind: str, seed: bytes) -> list[int]:
    """The blocks of a volume that begin with their checksum."""
    blocks = ((at, seed[at : at + BLOCK_BYTES]) for at in used_blocks(seed))
    return [at for at, block in blocks if block.startswith(CHECKSUMS[kind](block))]


def seal(kind: str, seed: bytes, mutant: bytes) -> bytes:
    """The mutant with correct checksums, without which its changes would not be read."""
    data = bytearray(mutant)
    for at in summed_blocks(kind, seed):
        block = mutant[at : at + BLOCK_BYTES]
        if len(block) == BLOCK_BYTES and block != seed[at : at + BLOCK_BYTES]:
            checksum = CHECKSUMS[kind](block)
            data[at : at + len(checksum)] = checksum
    return bytes(data)


def seed_of(seeds: list[bytes], number: int) -> bytes:
    """The seeds take turns, but large ones, which take long, only once in a batch if there are others."""
    small = [seed for seed in seeds if len(seed) <= SEED_BYTES_MAX]
    large = [seed for seed in seeds if len(seed) > SEED_BYTES_MAX]
    if large and (not small or number % BATCH == 0):
        return large[number // BATCH % len(large)] if small else large[number % len(large)]
    return small[number % len(small)]


def write_sparse(path: Path, data: bytes) -> None:
    """Writes a file with holes for its large empty parts, which take no time to read."""
    step = 1 << 16
    with path.open("wb") as file:
        for at in range(0, len(data), step):
            piece = data[at : at + step]
            if piece != bytes(len(piece)):
                file.seek(at)
                file.write(piece)
        file.truncate(len(data))


# Lines that are not complaints: ranges and messages that every run lists.
LISTED = re.compile(rb": (bytes \d+\.\.\d+ could not be read|\d+ of \d+ messages were left out)")
# Damaged places of a file system, and its files there, listed by commands that read file systems.
LISTED_PLACE = re.compile(
    rb"(, at byte \d+|: its (bytes would|blocks) lie beyond the end of the volume|: \d+ more places are damaged)"
    rb"(; it is not written|; the bytes of files that .* count as unallocated)?$|"
    rb": cannot read [^:]+ at byte \d+: |"
    rb": it has more blocks than the volume"
)
# Scopes of rules that could not be unpacked.
LISTED_SCOPE = re.compile(rb": its rules are not evaluated: ")
FILE_SYSTEM_WORDS = {"files", "--where", "--unallocated"}


def read_until(descriptor: int, end: float) -> bytes | None:
    """Reads until the other side closes; None if that takes until after `end`."""
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
    """Limits this process; its children inherit the limits."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass
class Campaign:
    program: Path
    seconds: float
    findings: Path
    folder: Path

    def complaint(self, arguments: list[str], files: int = 1) -> str | None:
        """The fault in how the command ended, if any; it may print one line for each of `files`."""
        # Without preexec_fn, which makes Python fork its whole process: the limits apply to this process.
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
        # A command that failed lists nothing: a single line gives the reason. Of several files, it lists others.
        if (run.returncode != 2 or files > 1) and FILE_SYSTEM_WORDS.intersection(arguments):
            lines = [line for line in lines if not LISTED_PLACE.search(line)]
        if "--rules" in arguments:
            lines = [line for line in lines if not LISTED_SCOPE.search(line)]
        if len(lines) > files or b"panick" in said:
            return f"says {said[:300]!r}"
        return None

    def check_seed(self, kind: str, seed: bytes) -> None:
        """Ends the campaign if a command refuses a sound file, because it would refuse all mutants too."""
        path = self.folder / f"seed.{kind}"
        path.write_bytes(seed)
        for command in commands_for(kind):
            words = [self.word(word, path) for word in command]
            run = subprocess.run([self.program, *words], capture_output=True)
            shutil.rmtree(self.out(path), ignore_errors=True)
            # 3 lists what could not be read, as an encrypted volume beside others.
            if run.returncode not in (0, 1, 3):
                sys.exit(f"a sound {kind}: {' '.join(command)}: {run.stderr.decode()}")
        path.unlink()

    def out(self, path: Path) -> Path:
        return path.with_name(f"{path.name}-out")

    def word(self, word: str, path: Path) -> str:
        word = word.replace("FILE", str(path)).replace("FOLDER", str(self.out(path)))
        return str(self.rules()) if word == "RULES" else word

    def rules(self) -> Path:
        return self.folder / "rules.yar"

    def try_batch(self, kind: str, seeds: list[bytes], numbers: range) -> list[str]:
        """The faults of the commands on the mutants with these numbers."""
        paths = []
        for number in numbers:
            draw = random.Random(f"{kind} {number}")
            paths.append(self.folder / f"{kind}-{number}.{kind}")
            seed = seed_of(seeds, number)
            mutant = mutate(seed, draw)
            is_sealed = kind in CHECKSUMS and draw.randrange(4) > 0
            write_sparse(paths[-1], seal(kind, seed, mutant) if is_sealed else mutant)
        found = []
        for place, command in enumerate(commands_for(kind)):
            at_once = self.at_once(command, paths)
            complaint = self.complaint(at_once, len(paths)) if at_once else ""
            shutil.rmtree(self.out(paths[0]), ignore_errors=True)
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
        """The command for all files at once, if it takes several."""
        if command[0] in ("search", "carve"):
            at = command.index("FILE")
            before, after = (
                [self.word(word, paths[0]) for word in part] for part in (command[:at], command[at + 1 :])
            )
            return [*before, *map(str, paths), *after]
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
    parser.add_argument("--kinds", help="only these, separated by commas")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    chosen = parser.parse_args()

    seeds: dict[str, list[bytes]] = {}
    made = {**message_seeds(), **column_seeds(), **file_seeds(), **disk_seeds()}
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
        campaign.rules().write_text(RULES_TEXT)
        for kind, of_kind in seeds.items():
            for seed in of_kind:
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
