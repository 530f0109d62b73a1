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
import base64
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
from functools import cache
from itertools import accumulate, repeat
from pathlib import Path

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


def seven_zip(text: bytes) -> bytes:
    """A 7z archive of two files: one packed by LZMA2, one stored."""
    packed = lzma.compress(text, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 1}])
    folders, files = [(packed, b"\x01\x21\x21\x01\x16", text), (png(), b"\x01\x01\x00", png())], b""

    def number(value: int) -> bytes:
        return b"\xff" + value.to_bytes(8, "little")

    for name in ["invoice.txt", "picture.png"]:
        files += name.encode("utf-16-le") + b"\0\0"
    sizes = b"".join(number(len(data)) for data, _, _ in folders)
    unpacked = b"".join(number(len(plain)) for _, _, plain in folders)
    sums = b"".join(struct.pack("<I", zlib.crc32(plain)) for _, _, plain in folders)
    coders = b"".join(coder for _, coder, _ in folders)
    header = b"\x01\x04"
    header += b"\x06" + number(0) + b"\x02\x09" + sizes + b"\x00"
    header += b"\x07\x0b\x02\x00" + coders + b"\x0c" + unpacked + b"\x0a\x01" + sums + b"\x00"
    header += b"\x00\x05\x02\x11" + number(len(files) + 1) + b"\x00" + files + b"\x00\x00"
    data = b"".join(data for data, _, _ in folders)
    start = struct.pack("<QQI", len(data), len(header), zlib.crc32(header))
    return b"7z\xbc\xaf\x27\x1c\x00\x04" + struct.pack("<I", zlib.crc32(start)) + start + data + header


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
        "7z": seven_zip(text),
        "tar": packed.getvalue(),
        "png": png(),
        "wav": sound.getvalue(),
        "sqlite": database,
        "pdf": pdf,
    }


# For each file system, the size of its image in KiB, and the commands that create it and copy a folder to it.
FILE_SYSTEMS = {
    "fat": (256, ["mkfs.vfat DISK", "mcopy -s -i DISK FROM/a ::"]),
    "exfat": (2048, ["mkfs.exfat -c 512 -b 4k DISK"]),
    "ntfs": (1040, ["mkfs.ntfs -F -q -c 512 -s 512 DISK", "ntfscp -f DISK FROM/invoice.txt invoice.txt"]),
    "ext": (512, ["mke2fs -q -F -t ext4 -b 1024 -N 64 -d FROM DISK"]),
    "xfs": (16 << 10, ["mkfs.xfs --unsupported -q -f -p LIST DISK"]),
    "btrfs": (16 << 10, ["mkfs.btrfs -q -f -M --rootdir FROM DISK"]),
    "hfs": (0, ["xorriso -as mkisofs -quiet -hfsplus -o DISK FROM"]),
    "iso": (0, ["genisoimage -quiet -J -R -o DISK FROM"]),
}
# The commands that make a disk image.
IMAGES = {
    "qcow2": "qemu-img convert -f raw -O qcow2 -c -o cluster_size=4k DISK IMAGE",
    "vmdk": "qemu-img convert -f raw -O vmdk -o subformat=streamOptimized DISK IMAGE",
    "vhd": "qemu-img convert -f raw -O vpc DISK IMAGE",
    "vhdx": "qemu-img convert -f raw -O vhdx -o log_size=1M,block_size=1M DISK IMAGE",
    "vdi": "qemu-img convert -f raw -O vdi DISK IMAGE",
    "parallels": "qemu-img convert -f raw -O parallels -o cluster_size=64k DISK IMAGE",
    "zst": "zstd -q DISK -o IMAGE",
    "e01": "ewfacquire -q -u -f encase6 -c deflate:fast -C 1 -D 1 -E 1 -e 1 -N 1 -m fixed -M physical "
    "-b 64 -S 2GiB -t STEM DISK",
}


def is_run(line: str, **places: Path) -> bool:
    """Runs a command line with paths put in for words; false if the program is missing or fails."""
    for name, place in places.items():
        line = line.replace(name.upper(), str(place))
    words = line.split()
    if not shutil.which(words[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        return False
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "MTOOLS_SKIP_CHECK": "1"}
    return subprocess.run(words, env=environment, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0


def disk_seeds() -> dict[str, bytes]:
    """File systems with files, and images of one of them, as far as the programs for them are installed."""
    seeds: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = folder / "files"
        (files / "a" / "b").mkdir(parents=True)
        text = b"".join(b"invoice %d price %d\n" % (n, n * 7) for n in range(2000))
        for path in ["invoice.txt", "a/another name that is long.txt", "a/b/small.txt"]:
            (files / path).write_bytes(text[: 60 if "small" in path else len(text)])
        (files / "a" / "picture.png").write_bytes(png())
        # Prototypes of mkfs.xfs have absolute or relative names of the files.
        proto = "/\n0 0\nd--755 0 0\ninvoice.txt ---644 0 0 FROM/invoice.txt\na d--755 0 0\n"
        proto += "picture.png ---644 0 0 FROM/a/picture.png\n$\nlink l--777 0 0 a/picture.png\n$\n"
        (folder / "list").write_text(proto.replace("FROM", str(files)))
        for kind, (size_kib, lines) in FILE_SYSTEMS.items():
            disk = folder / f"disk.{kind}"
            if size_kib:
                with disk.open("wb") as file:
                    file.truncate(size_kib << 10)
            if all([is_run(line, disk=disk, list=folder / "list", FROM=files) for line in lines]):
                seeds[kind] = apple_partition(disk.read_bytes()) if kind == "hfs" else disk.read_bytes()
            else:
                print(f"no seed of {kind}", file=sys.stderr)
        if "ext" in seeds:
            for kind, line in IMAGES.items():
                image = folder / ("image.E01" if kind == "e01" else f"image.{kind}")
                if is_run(line, disk=folder / "disk.ext", image=image, stem=folder / "image"):
                    seeds[kind] = image.read_bytes()
                else:
                    print(f"no seed of {kind}", file=sys.stderr)
            seeds["dmg"] = dmg(seeds["ext"])
            seeds["ex01"] = ex01(seeds["ext"])
            seeds["aff4"] = aff4(seeds["ext"])
    return seeds


def apple_partition(disc: bytes) -> bytes:
    """The HFS+ partition of a disc with an Apple partition map that has an entry in each sector."""
    (sector_bytes,) = struct.unpack_from(">H", disc, 2)
    for at in range(sector_bytes, 16 * sector_bytes, sector_bytes):
        if disc[at : at + 2] == b"PM" and disc[at + 48 :].startswith(b"Apple_HFS\0"):
            start, sectors = struct.unpack_from(">II", disc, at + 8)
            return disc[start * sector_bytes : (start + sectors) * sector_bytes]
    return disc


def dmg(disk: bytes) -> bytes:
    """An Apple disk image with chunks of 64 KiB, packed by zlib or bzip2 or stored."""
    packed, entries = b"", b""
    sectors = len(disk) // 512
    for number, at in enumerate(range(0, len(disk), 1 << 16)):
        chunk = disk[at : at + (1 << 16)]
        kind, data = [(1, chunk), (0x80000005, zlib.compress(chunk)), (0x80000006, bz2.compress(chunk))][
            number % 3
        ]
        entries += struct.pack(">IIQQQQ", kind, 0, at // 512, len(chunk) // 512, len(packed), len(data))
        packed += data
    entries += struct.pack(">IIQQQQ", 0xFFFFFFFF, 0, sectors, 0, len(packed), 0)
    head = bytearray(204)
    head[:8] = b"mish\0\0\0\x01"
    struct.pack_into(">QQ", head, 8, 0, sectors)
    struct.pack_into(">I", head, 200, len(entries) // 40)
    table = base64.b64encode(bytes(head) + entries).decode()
    listed = f"<dict><key>Data</key><data>{table}</data></dict>"
    plist = (
        '<?xml version="1.0"?><plist version="1.0"><dict><key>resource-fork</key><dict>'
        f"<key>blkx</key><array>{listed}</array></dict></dict></plist>"
    ).encode()
    trailer = bytearray(512)
    trailer[:12] = b"koly\0\0\0\x04\0\0\x02\0"
    struct.pack_into(">Q", trailer, 32, len(packed))
    struct.pack_into(">QQ", trailer, 216, len(packed), len(plist))
    struct.pack_into(">Q", trailer, 492, sectors)
    return packed + plist + bytes(trailer)


def ex01(disk: bytes) -> bytes:
    """An EnCase 2 image with chunks of 32 KiB: packed, stored, and as a pattern."""
    file = bytearray(b"EVF2\x0d\x0a\x81\x00\x01\x00\x01\x00\x01\x00\x00\x00".ljust(32, b"\0"))
    before = 0

    def summed(data: bytes) -> bytes:
        return data + zlib.adler32(data).to_bytes(4, "little")

    def section(kind: int, data: bytes) -> None:
        nonlocal before
        file.extend(data)
        descriptor = struct.pack("<B7xQQI", kind, before, len(data), 64).ljust(60, b"\0")
        before = len(file)
        file.extend(summed(descriptor))

    for kind, text in [
        (1, f"\ufeff1\nmain\nsn\tts\tbp\n\t{len(disk) // 512}\t512\n\n"),
        (2, "\ufeff1\nmain\nnm\tsb\nx\t64\n\n"),
    ]:
        section(kind, zlib.compress(text.encode("utf-16-le")))
    data, entries = b"", b""
    for number, at in enumerate(range(0, len(disk), 1 << 15)):
        chunk = disk[at : at + (1 << 15)]
        if chunk == chunk[:8] * (len(chunk) // 8):
            entries += chunk[:8] + struct.pack("<II", 0, 4)
            continue
        packed, flags = (zlib.compress(chunk), 1) if number % 2 == 0 else (summed(chunk), 2)
        entries += struct.pack("<QII", len(file) + len(data), len(packed), flags)
        data += packed
    section(3, data)
    head = summed(struct.pack("<QI4x", 0, len(entries) // 16)).ljust(32, b"\0")
    section(4, head + summed(entries) + bytes(12))
    section(15, b"")
    return bytes(file)


def aff4(disk: bytes) -> bytes:
    """An AFF4 image with chunks of 32 KiB: a map in which zeros are a symbolic stream, and a stream."""
    names = [f"aff4://00000000-0000-4000-8000-00000000000{number}" for number in range(4)]
    volume, image, map_name, stream_name = names
    chunk_bytes, chunks = 1 << 15, 4
    stream, entries = b"", b""
    for at in range(0, len(disk), 1 << 14):
        block = disk[at : at + (1 << 14)]
        is_zero = not any(block)
        entries += struct.pack("<QQQI", at, len(block), 0 if is_zero else len(stream), int(is_zero))
        stream += b"" if is_zero else block
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.comment = volume.encode()

        def put(owner: str, name: str, data: bytes) -> None:
            archive.writestr(f"aff4%3A%2F%2F{owner[7:]}/{name}", data)

        archive.writestr("container.description", volume)
        archive.writestr("version.txt", "major=1\nminor=0\ntool=test\n")
        for number, at in enumerate(range(0, len(stream), chunks * chunk_bytes)):
            data, index = b"", b""
            end = min(len(stream), at + chunks * chunk_bytes)
            for chunk_at in range(at, end, chunk_bytes):
                packed = zlib.compress(stream[chunk_at : min(end, chunk_at + chunk_bytes)])
                index += struct.pack("<QI", len(data), len(packed))
                data += packed
            put(stream_name, f"{number:08}", data)
            put(stream_name, f"{number:08}.index", index)
        put(map_name, "map", entries)
        put(map_name, "idx", f"{stream_name}\nhttp://aff4.org/Schema#Zero\n".encode())
        archive.writestr(
            "information.turtle",
            "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n@prefix aff4: <http://aff4.org/Schema#> .\n"
            f"<{volume}> a aff4:ZipVolume .\n"
            f"<{image}> a aff4:DiskImage, aff4:Image ;\n  aff4:dataStream <{map_name}> ;\n"
            f'  aff4:size "{len(disk)}"^^xsd:long .\n'
            f"<{map_name}> a aff4:Map ;\n  aff4:dependentStream <{stream_name}> ;\n"
            f'  aff4:mapGapDefaultStream aff4:Zero ;\n  aff4:size "{len(disk)}"^^xsd:long .\n'
            f"<{stream_name}> a aff4:ImageStream ;\n  aff4:chunkSize {chunk_bytes} ;\n"
            f"  aff4:chunksInSegment {chunks} ;\n"
            "  aff4:compressionMethod <https://www.ietf.org/rfc/rfc1950.txt> ;\n"
            f'  aff4:size "{len(stream)}"^^xsd:long .\n',
        )
    return file.getvalue()


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
        # A command that failed lists nothing: a single line gives the reason.
        if run.returncode != 2 and FILE_SYSTEM_WORDS.intersection(arguments):
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
            if run.returncode > 1:
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
