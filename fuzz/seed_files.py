"""The seeds of `campaign.py`: sound files of every format, made by Python and by installed programs."""

import base64
import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile
import wave
import zipfile
import zlib
from pathlib import Path


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
