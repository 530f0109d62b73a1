"""Reads of metadata over HTTP: quarrier compared with the caches of fsspec.

The program makes files, serves them on the loopback by a server that waits 20 ms before each answer, and reads
them by tifffile, zipfile and pyarrow through a file object of each contender. It counts the requests (including
those for the length) and the bytes of their bodies, and compares what was read with a read of the file itself.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tifffile

import quarrier

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates/quarrier-python/tests"))
from range_server import RangeServer

LATENCY_SECONDS = 0.02
RIVALS = ("readahead", "blockcache", "bytes")
SLACK_BYTES = 64 << 10

Reader = Callable[[Any], Any]


def tiff_tags(file: Any) -> Any:
    """The shape and the number of tags of each page."""
    with tifffile.TiffFile(file) as tiff:
        return [(page.shape, len(page.tags)) for page in tiff.pages]


def tiff_overview(file: Any) -> Any:
    """All levels, and the pixels of the smallest."""
    with tifffile.TiffFile(file) as tiff:
        levels = tiff.series[0].levels
        return [level.shape for level in levels], int(levels[-1].asarray().sum())


def zip_names(file: Any) -> Any:
    """The names of all members."""
    return zipfile.ZipFile(file).namelist()


def zip_three(file: Any) -> Any:
    """An early member, the middle one and the last."""
    archive = zipfile.ZipFile(file)
    names = archive.namelist()
    return [hash(archive.read(names[i])) for i in (3, len(names) // 2, -1)]


def parquet_schema(file: Any) -> Any:
    """Rows and columns."""
    metadata = pq.read_metadata(file)
    return metadata.num_rows, metadata.num_columns


def parquet_column(file: Any) -> Any:
    """One column of all row groups."""
    return pq.ParquetFile(file).read(columns=["c3"]).num_rows


def parquet_group(file: Any) -> Any:
    """Two columns of one row group."""
    return pq.ParquetFile(file).read_row_group(3, columns=["c1", "c4"]).nbytes


def make_tiffs(rng: np.random.Generator) -> dict[str, bytes]:
    """A large page in strips; 60 pages of 1 MiB; 12 of 10 MB; a pyramid of tiles."""

    def noise(*shape: int) -> np.ndarray[Any, Any]:
        return rng.integers(0, 255, shape, dtype=np.uint8)

    one, pages, big, pyramid = (io.BytesIO() for _ in range(4))
    tifffile.imwrite(one, noise(6000, 8000), rowsperstrip=16)
    with tifffile.TiffWriter(pages) as tiff:
        for _ in range(60):
            tiff.write(noise(1024, 1024), contiguous=False, metadata=None)
    with tifffile.TiffWriter(big, bigtiff=True) as tiff:
        for _ in range(12):
            tiff.write(noise(2500, 4000), contiguous=False, metadata=None)
    with tifffile.TiffWriter(pyramid, bigtiff=True) as tiff:
        pixels = noise(6144, 6144)
        tiff.write(pixels, subifds=4, tile=(256, 256))
        for level in range(1, 5):
            tiff.write(pixels[:: 2**level, :: 2**level], subfiletype=1, tile=(256, 256))
    names = ("one.tif", "pages.tif", "big_pages.tif", "pyramid.tif")
    return {name: file.getvalue() for name, file in zip(names, (one, pages, big, pyramid), strict=True)}


def make_zip(rng: np.random.Generator, members: int, member_bytes: int) -> bytes:
    """An archive of members that do not compress."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(members):
            archive.writestr(f"folder/some_file_{i:05d}.bin", rng.bytes(member_bytes))
    return file.getvalue()


def make_parquet(rng: np.random.Generator, rows: int, columns: int, group_rows: int) -> bytes:
    """A table of random numbers."""
    file = io.BytesIO()
    table = pa.table({f"c{i}": rng.random(rows) for i in range(columns)})
    pq.write_table(table, file, row_group_size=group_rows)
    return file.getvalue()


def workloads() -> tuple[dict[str, bytes], list[tuple[str, Reader]]]:
    """The files, and the reads of each."""
    rng = np.random.default_rng(1)
    files = make_tiffs(rng) | {
        "photos.zip": make_zip(rng, 200, 150_000),
        "many.zip": make_zip(rng, 6000, 5_000),
        "small.zip": make_zip(rng, 20, 3_000),
        "table.parquet": make_parquet(rng, 1_000_000, 12, 100_000),
        "wide.parquet": make_parquet(rng, 20_000, 150, 2_000),
    }
    reads: list[tuple[str, Reader]] = [
        ("one.tif", tiff_tags),
        ("pages.tif", tiff_tags),
        ("big_pages.tif", tiff_tags),
        ("pyramid.tif", tiff_tags),
        ("pyramid.tif", tiff_overview),
        ("photos.zip", zip_names),
        ("photos.zip", zip_three),
        ("many.zip", zip_names),
        ("many.zip", zip_three),
        ("small.zip", zip_names),
        ("small.zip", zip_three),
        ("table.parquet", parquet_schema),
        ("table.parquet", parquet_column),
        ("table.parquet", parquet_group),
        ("wide.parquet", parquet_schema),
        ("wide.parquet", parquet_column),
    ]
    return files, reads


def open_quarrier(url: str) -> BinaryIO:
    """Through `quarrier.open`."""
    return quarrier.open(url)


def open_rival(cache: str) -> Callable[[str], BinaryIO]:
    """Through fsspec, with its default block size."""

    def open_url(url: str) -> BinaryIO:
        fsspec.filesystem("http").invalidate_cache()
        file: BinaryIO = fsspec.filesystem("http", skip_instance_cache=True).open(url, cache_type=cache)
        return file

    return open_url


CONTENDERS: dict[str, Callable[[str], BinaryIO]] = {
    "quarrier": open_quarrier,
    **{f"fsspec {cache}": open_rival(cache) for cache in RIVALS},
    "fsspec quarrier": open_rival("quarrier"),
}


def measure(server: RangeServer, name: str, read: Reader, rounds: int) -> dict[str, Any]:
    """One read by all contenders in turn."""
    expected = read(io.BytesIO(server.files[name]))
    figures: dict[str, Any] = {}
    for _ in range(rounds):
        for contender, open_url in CONTENDERS.items():
            server.take_tally()
            begin = time.perf_counter()
            with open_url(server.url(name)) as file:
                got = read(file)
            seconds = time.perf_counter() - begin
            if got != expected:
                sys.exit(f"WRONG: {contender} reads {got!r} of {name}, expected {expected!r}")
            tally = server.take_tally()
            figure = figures.setdefault(contender, {"seconds": []})
            figure["seconds"].append(seconds)
            figure.update(requests=tally.requests, body_bytes=tally.body_bytes, ranges=tally.ranges)
    for figure in figures.values():
        figure["seconds"] = median(figure["seconds"])
    return figures


def main() -> int:
    """Prints the table; 1 if quarrier exceeds its limits of requests or bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    files, reads = workloads()
    print("| file | read | " + " | ".join(CONTENDERS) + " |")
    print("|---|---|" + "---:|" * len(CONTENDERS))
    records, missed = [], []
    with RangeServer(files, LATENCY_SECONDS) as server:
        for name, read in reads:
            figures = measure(server, name, read, options.rounds)
            cells = [
                f"{f['requests']} / {f['body_bytes'] / 1e3:,.0f} kB / {f['seconds'] * 1e3:.0f} ms"
                for f in figures.values()
            ]
            title = f"{name} ({len(files[name]) / 1e6:.1f} MB)"
            print(f"| {title} | {read.__name__} | " + " | ".join(cells) + " |", flush=True)
            if options.verbose:
                print(figures["quarrier"]["ranges"])
            ours = figures["quarrier"]
            rivals = [figures[f"fsspec {cache}"] for cache in RIVALS]
            if ours["requests"] > min(rival["requests"] for rival in rivals):
                missed.append(f"{name} {read.__name__}: requests")
            if ours["body_bytes"] > min(rival["body_bytes"] for rival in rivals) + SLACK_BYTES:
                missed.append(f"{name} {read.__name__}: bytes")
            record = {"file": name, "read": read.__name__, "file_bytes": len(files[name])}
            for figure in figures.values():
                del figure["ranges"]
            records.append(record | {"contenders": figures})
    if options.json:
        options.json.write_text(json.dumps(records, indent=2) + "\n")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
