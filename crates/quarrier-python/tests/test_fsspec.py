"""`quarrier.compat.fsspec`: sparse files as a cache of fsspec."""

from __future__ import annotations

import io
import pickle
import random
import subprocess
import sys
import zipfile

import fsspec
import pytest
from range_server import RangeServer

import quarrier

DATA = random.Random(5).randbytes(3_000_000)


def test_a_file_of_fsspec_reads_through_the_cache() -> None:
    with RangeServer({"file": DATA}) as server:
        # With what is learned of the server, the figures would differ from run to run.
        cost = {"cost": quarrier.CostModel(latency=0.001)}
        url = server.url("file")
        with fsspec.open(url, cache_type="quarrier", cache_options=cost) as file:
            rng = random.Random(1)
            for _ in range(200):
                offset, size = rng.randrange(len(DATA)), rng.choice([1, 100, 50_000])
                file.seek(offset)
                assert file.read(size) == DATA[offset : offset + size]
        # Hardly anything came twice: only what lay between bytes that were missing.
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
def test_the_cache_is_known_whatever_is_imported_first(imports: str) -> None:
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
        # One for the length, one for the tail.
        assert (tally.requests, tally.body_bytes) == (2, 64 << 10)


def test_any_fetcher_serves_and_one_that_gives_less_is_an_error() -> None:
    from quarrier.compat.fsspec import SparseCache

    cost = quarrier.CostModel(latency=0.05)
    cache = SparseCache(4096, lambda start, end: DATA[start:end], len(DATA), cost=cost)
    assert cache._fetch(10, 20) == DATA[10:20]
    assert cache._fetch(2_999_990, 4_000_000) == DATA[2_999_990:]
    assert cache._fetch(5, 5) == b""
    assert cache._fetch(None, None) == DATA
    assert cache.total_requested_bytes <= 1.25 * len(DATA)
    short = SparseCache(4096, lambda start, end: b"x", 100)
    with pytest.raises(OSError, match="1 bytes came of 100"):
        short._fetch(0, 10)


def test_memory_is_bounded_where_that_is_asked_for() -> None:
    from quarrier.compat.fsspec import SparseCache

    cache = SparseCache(4096, lambda start, end: DATA[start:end], len(DATA), bytes_max=500_000)
    for offset in range(0, len(DATA) - 10, 50_000):
        assert cache._fetch(offset, offset + 10) == DATA[offset : offset + 10]
        assert cache._file.num_bytes() <= 500_000


def test_a_pickled_cache_begins_anew() -> None:
    from quarrier.compat.fsspec import SparseCache

    cache = SparseCache(4096, bytes, 100)
    assert pickle.loads(pickle.dumps(cache)).size == 100
