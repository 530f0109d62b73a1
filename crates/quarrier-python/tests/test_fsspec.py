"""`quarrier.compat.fsspec`: sparse files as a cache of fsspec."""

from __future__ import annotations

import gzip
import io
import pickle
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import fsspec
import pytest
from range_server import RangeServer

import quarrier

DATA = random.Random(5).randbytes(3_000_000)


def test_a_file_of_fsspec_reads_through_the_cache() -> None:
    with RangeServer({"file": DATA}) as server:
        # With a learned cost model, the figures would differ from run to run.
        cost = {"cost": quarrier.CostModel(latency=0.001)}
        url = server.url("file")
        with fsspec.open(url, cache_type="quarrier", cache_options=cost) as file:
            rng = random.Random(1)
            for _ in range(200):
                offset, size = rng.randrange(len(DATA)), rng.choice([1, 100, 50_000])
                file.seek(offset)
                assert file.read(size) == DATA[offset : offset + size]
        # Few bytes were fetched twice: only those between missing ranges.
        assert server.take_tally().body_bytes <= 1.25 * len(DATA)


@pytest.mark.parametrize(
    "imports",
    [
        "import quarrier",
        "import quarrier, fsspec.caching",
        "import fsspec, quarrier",
        "from quarrier.compat.fsspec import SparseCache",
    ],
)
def test_the_cache_is_registered_in_any_order_of_imports(imports: str) -> None:
    script = f"""
import sys
{imports}
assert ("fsspec" in sys.modules) == ("fsspec" in "{imports}")
import fsspec.caching
assert fsspec.caching.caches["quarrier"].__module__ == "quarrier.compat.fsspec"
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_directory_of_an_archive_costs_little() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        for i in range(500):
            members.writestr(f"member {i}", random.Random(i).randbytes(10_000))
    data = archive.getvalue()
    with RangeServer({"a.zip": data}) as server:
        with fsspec.open(server.url("a.zip"), cache_type="quarrier") as file:
            assert len(zipfile.ZipFile(file).namelist()) == 500
        tally = server.take_tally()
        # One request for the length, one for the tail.
        assert (tally.requests, tally.body_bytes) == (2, 64 << 10)


def test_any_fetcher_works_and_a_short_result_is_an_error() -> None:
    from quarrier.compat.fsspec import SparseCache

    cost = quarrier.CostModel(latency=0.05)
    cache = SparseCache(4096, lambda start, end: DATA[start:end], len(DATA), cost=cost)
    assert cache._fetch(10, 20) == DATA[10:20]
    assert cache._fetch(2_999_990, 4_000_000) == DATA[2_999_990:]
    assert cache._fetch(5, 5) == b""
    assert cache._fetch(None, None) == DATA
    assert cache.total_requested_bytes <= 1.25 * len(DATA)
    short = SparseCache(4096, lambda start, end: b"x", 100)
    with pytest.raises(OSError, match="got 1 of 100 bytes"):
        short._fetch(0, 10)


def test_memory_is_limited_on_request() -> None:
    from quarrier.compat.fsspec import SparseCache

    cache = SparseCache(4096, lambda start, end: DATA[start:end], len(DATA), bytes_max=500_000)
    for offset in range(0, len(DATA) - 10, 50_000):
        assert cache._fetch(offset, offset + 10) == DATA[offset : offset + 10]
        assert cache._file.num_bytes() <= 500_000


def test_a_pickled_cache_starts_empty() -> None:
    from quarrier.compat.fsspec import SparseCache

    cache = SparseCache(4096, bytes, 100)
    assert pickle.loads(pickle.dumps(cache)).size == 100


def test_the_file_system_reads_urls_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(DATA)
    with RangeServer({"file": DATA}) as server:
        for name in (server.url("file"), str(path)):
            with fsspec.open(f"quarrier://{name}") as file:
                assert isinstance(file, quarrier.SourceFile)
                file.seek(1_000)
                assert file.read(10) == DATA[1_000:1_010]
            files, found = fsspec.core.url_to_fs(f"quarrier://{name}")
            assert found == name
            assert files.info(name) == {"name": name, "size": len(DATA), "type": "file"}
            assert files.cat_file(name, 5, 15) == DATA[5:15]
            assert files.cat_file(name, -10) == DATA[-10:]
            assert files.cat_file(name, 15, 5) == b""
            assert files.ls(name, detail=False) == [name]
            assert files.exists(name) and not files.exists(f"{name}.no")
            assert pickle.loads(pickle.dumps(files)).size(name) == len(DATA)
            with pytest.raises(FileNotFoundError):
                files.open(f"{name}.no")
            with pytest.raises(ValueError, match="only read"):
                files.open(name, "wb")
    files = fsspec.filesystem("quarrier")
    assert files.ls(tmp_path) == [{"name": str(path.parent), "size": 0, "type": "directory"}]
    assert files.find(f"quarrier://{tmp_path}") == [str(path)]
    assert files.glob(f"{tmp_path}/*/f*") == [str(path)]


def test_the_file_system_reads_many_ranges_with_few_requests() -> None:
    ranges = [(number * 1_000, number * 1_000 + 100) for number in range(2_000, 0, -20)]
    starts, ends = (list(bounds) for bounds in zip(*ranges, strict=True))
    with RangeServer({"file": DATA, "other": DATA[::-1]}, latency_seconds=0.02) as server:
        files = fsspec.filesystem("quarrier", memory="64M")
        one, other, none = (server.url(name) for name in ("file", "other", "none"))
        for url, data in [(one, DATA), (other, DATA[::-1])]:
            found = files.cat_ranges([url] * len(ranges), starts, ends)
            assert found == [data[start:end] for start, end in ranges]
            assert server.take_tally().requests < len(ranges) / 2
            # It is still open.
            assert files.cat_file(url, *ranges[0]) == found[0]
            assert server.take_tally().requests == 0
        found = files.cat_ranges([one, none, other], 0, [5, 5, -len(DATA) + 5])
        assert (found[0], found[2]) == (DATA[:5], DATA[::-1][:5])
        assert isinstance(found[1], FileNotFoundError)
        with pytest.raises(FileNotFoundError):
            files.cat_ranges([none], 0, 5, on_error="raise")
        with pytest.raises(ValueError, match="2 paths, 1 starts"):
            files.cat_ranges([one, other], [0], 5)


def test_a_changed_object_is_opened_again() -> None:
    with RangeServer({"file": DATA}) as server:
        files = fsspec.filesystem("quarrier", memory="32M")
        assert files.cat_file(server.url("file"), 2_000_000, 2_000_010) == DATA[2_000_000:2_000_010]
        server.files["file"] = memoryview(DATA[:-5])
        assert files.cat_file(server.url("file"), 1_000_000, 1_000_010) == DATA[1_000_000:1_000_010]
        assert files.size(server.url("file")) == len(DATA) - 5


def test_the_file_system_reads_raw_bytes_on_request(tmp_path: Path) -> None:
    packed = gzip.compress(b"an invoice")
    (tmp_path / "a.gz").write_bytes(packed)
    name = str(tmp_path / "a.gz")
    assert fsspec.filesystem("quarrier").cat_file(name) == b"an invoice"
    files = fsspec.filesystem("quarrier", raw=True)
    assert files.cat_file(name) == packed
    with files.open(name) as file:
        assert file.read() == packed


def test_fsspec_finds_the_file_system_by_itself() -> None:
    script = """
import fsspec, sys
assert "quarrier" not in sys.modules
assert fsspec.get_filesystem_class("quarrier").__module__ == "quarrier.compat.filesystem"
assert fsspec.caching.caches["quarrier"].__module__ == "quarrier.compat.fsspec"
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
