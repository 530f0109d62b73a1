"""`quarrier.compat.zarr`: a store of zarr."""

from __future__ import annotations

import asyncio
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from range_server import RangeServer
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

import quarrier
from quarrier.compat.zarr import Store

# A group without a format of its own, and consolidated metadata of version 3.
pytestmark = pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")

VALUES = np.random.default_rng(5).integers(0, 1000, (300, 40, 50)).astype("i4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group that zarr wrote, with arrays in all ways of storing them."""
    root = tmp_path_factory.mktemp("zarr") / "group name.zarr"
    group = zarr.create_group(root)
    arrays: dict[str, dict[str, Any]] = {
        "zstd": {"chunks": (100, 20, 50)},
        "plain": {"chunks": (100, 20, 50), "compressors": None},
        # A chunk by itself is a gzip file, which must not be unpacked.
        "gzip": {"chunks": (60, 40, 50), "compressors": zarr.codecs.GzipCodec()},
        "sharded": {"chunks": (10, 10, 10), "shards": (100, 40, 50)},
    }
    for name, options in arrays.items():
        array = group.create_array(f"below/{name}", shape=VALUES.shape, dtype="i4", **options)
        array[...] = VALUES
    sparse = group.create_array("sparse", shape=(100,), chunks=(10,), dtype="f8", fill_value=-1)
    sparse[20:30] = 5
    # The names of its chunks, such as 0.001, are those of the parts of a split image.
    old = zarr.create_array(
        root / "old", shape=(2000,), chunks=(1,), dtype="u1", zarr_format=2, compressors=None
    )
    old[:1200] = np.arange(1200).astype("u1")
    zarr.consolidate_metadata(root)
    return root


def files_of(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {f"a/{path.relative_to(folder)}": path.read_bytes() for path in paths}


@pytest.fixture(params=["folder", "url"])
def store(request: pytest.FixtureRequest, folder: Path) -> Any:
    if request.param == "folder":
        yield Store(folder)
        return
    with RangeServer(files_of(folder)) as server:
        yield Store(server.url("a/"), memory="64M")


def test_arrays_have_the_values_that_zarr_wrote(store: Store) -> None:
    group = zarr.open_group(store, mode="r")
    rng = random.Random(3)
    for name in ["zstd", "plain", "gzip", "sharded"]:
        array = group[f"below/{name}"]
        assert isinstance(array, zarr.Array)
        for _ in range(20):
            part = tuple(
                slice(*sorted(rng.sample(range(size + 1), 2)), rng.choice([1, 1, 3]))
                for size in VALUES.shape
            )
            np.testing.assert_array_equal(array[part], VALUES[part])
        np.testing.assert_array_equal(array[...], VALUES)
    sparse = zarr.open_array(store, path="sparse", mode="r")
    assert sparse[15:35].tolist() == [-1] * 5 + [5] * 10 + [-1] * 5
    old = zarr.open_array(store, path="old", mode="r")
    assert old[:1300].tolist() == [number % 256 for number in range(1200)] + [0] * 100


def test_a_folder_is_listed_as_by_zarr_and_a_url_is_not(folder: Path) -> None:
    async def keys(listed: Any) -> list[str]:
        return sorted([key async for key in listed])

    ours, theirs = Store(folder), zarr.storage.LocalStore(folder)
    assert ours.supports_listing
    for prefix in ["", "below", "below/zstd/", "none"]:
        for name in ["list_prefix", "list_dir"]:
            found = asyncio.run(keys(getattr(ours, name)(prefix)))
            assert found == asyncio.run(keys(getattr(theirs, name)(prefix)))
    assert asyncio.run(keys(ours.list())) == asyncio.run(keys(theirs.list()))
    assert asyncio.run(ours.getsize_prefix("below")) == asyncio.run(theirs.getsize_prefix("below"))
    # Without consolidated metadata.
    opened = zarr.open_group(ours, mode="r", use_consolidated=False)
    assert sorted(name for name, _ in opened.members()) == ["below", "sparse"]
    far = Store("https://example.org/a.zarr?secret=1")
    assert not far.supports_listing and "secret" not in repr(far)
    with pytest.raises(NotImplementedError, match=r"example\.org/a\.zarr.*cannot be listed"):
        asyncio.run(keys(far.list()))


KEYS = {"one": random.Random(5).randbytes(100_000), "a/b c/%": b"0123456789", "none/of/it": b""}
REQUESTS = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 120_000), st.integers(0, 120_000)).map(
        lambda bounds: RangeByteRequest(*sorted(bounds))
    ),
    st.integers(0, 120_000).map(OffsetByteRequest),
    st.integers(0, 120_000).map(SuffixByteRequest),
)


def plain(data: bytes | None, wanted: Any) -> bytes | None:
    """The bytes that a request selects."""
    match wanted:
        case _ if data is None:
            return None
        case None:
            return data
        case RangeByteRequest(start, end):
            return data[start:end]
        case OffsetByteRequest(offset):
            return data[offset:]
        case _:
            return data[max(0, len(data) - wanted.suffix) :]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same values behind a path and behind a URL, each read with and without what was held."""
    root = tmp_path_factory.mktemp("keys")
    for key, data in KEYS.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)
    with RangeServer({f"{key.replace(' ', '%20')}?s=1": data for key, data in KEYS.items()}) as own:
        own.files["a/b%20c/%25?s=1"] = own.files.pop("a/b%20c/%?s=1")
        held = Store(own.url("?s=1"), memory="2M")
        yield lambda: [Store(root), held, Store(own.url("?s=1"), memory="1M")]


@given(
    wanted=st.lists(
        st.tuples(st.sampled_from([*KEYS, "missing", "a", "one/below"]), REQUESTS), max_size=8
    )
)
def test_every_range_has_the_bytes_of_a_plain_read(stores: Any, wanted: list[Any]) -> None:
    expected = [plain(KEYS.get(key), each) for key, each in wanted]

    def data_of(found: list[Any]) -> list[bytes | None]:
        return [None if each is None else each.to_bytes() for each in found]

    async def read(store: Store) -> None:
        kind = default_buffer_prototype()
        assert data_of(await store.get_partial_values(kind, wanted)) == expected
        one_by_one = [store.get(key, kind, each) for key, each in wanted]
        assert data_of(await asyncio.gather(*one_by_one)) == expected
        for key, _ in wanted:
            assert await store.exists(key) == (key in KEYS)
            if key in KEYS:
                assert await store.getsize(key) == len(KEYS[key])

    for store in stores():
        asyncio.run(read(store))


def test_a_chunk_costs_one_request(folder: Path) -> None:
    with RangeServer(files_of(folder), latency_seconds=0.01) as server:
        array = zarr.open_array(Store(server.url("a"), memory="65M"), path="below/plain", mode="r")
        server.take_tally()
        # 400,000 bytes each.
        np.testing.assert_array_equal(array[...], VALUES)
        assert server.take_tally().requests == 6
        missing = zarr.open_array(Store(server.url("a"), memory="66M"), path="sparse", mode="r")
        server.take_tally()
        assert missing[...].sum() == -40
        assert server.take_tally().requests == 10


def test_parts_of_a_shard_cost_few_requests(folder: Path) -> None:
    with RangeServer(files_of(folder), latency_seconds=0.01) as server:
        store = Store(server.url("a"), memory="67M")
        array = zarr.open_array(store, path="below/sharded", mode="r")
        server.take_tally()
        np.testing.assert_array_equal(array[:10, :10, :20], VALUES[:10, :10, :20])
        tally = server.take_tally()
        # The index at the end, then the chunks.
        assert tally.requests <= 3, tally.ranges
        shard = next(data for key, data in server.files.items() if "sharded/c" in key)
        ranges = [RangeByteRequest(at, at + 100) for at in range(0, 200_000, 1_000)]
        kind = default_buffer_prototype()
        wanted = [("below/sharded/c/1/0/0", each) for each in reversed(ranges)]
        server.take_tally()
        found = asyncio.run(store.get_partial_values(kind, wanted))
        assert len(shard) > 200_000
        assert [each.to_bytes() for each in found if each is not None] == [
            bytes(server.files["a/below/sharded/c/1/0/0"][each.start : each.end])
            for each in reversed(ranges)
        ]
        assert server.take_tally().requests <= 4


def test_many_readers_of_a_new_object_open_it_once() -> None:
    data = random.Random(1).randbytes(500_000)
    with RangeServer({"object": data}, latency_seconds=0.05) as server:
        store = Store(server.url(""), memory="68M")

        async def read() -> None:
            kind = default_buffer_prototype()
            wanted = [RangeByteRequest(at, at + 10) for at in range(0, 500_000, 50_000)]
            found = await asyncio.gather(*(store.get("object", kind, each) for each in wanted))
            assert [each.to_bytes() for each in found if each is not None] == [
                data[each.start : each.end] for each in wanted
            ]

        asyncio.run(read())
        ranges = server.take_tally().ranges
        assert len([each for each in ranges if "bytes=0-" in each]) <= 1


def test_a_changed_value_is_read_anew() -> None:
    data = random.Random(1).randbytes(500_000)
    with RangeServer({"object": data}) as server:
        store, kind = Store(server.url(""), memory="69M"), default_buffer_prototype()
        assert asyncio.run(store.getsize("object")) == 500_000
        server.files["object"] = memoryview(data[:-1])
        found = asyncio.run(store.get("object", kind))
        assert found is not None and found.to_bytes() == data[:-1]


def test_a_store_is_only_read_and_pickled_and_compared(folder: Path) -> None:
    store = Store(folder)
    again = pickle.loads(pickle.dumps(store))
    assert again == store and again.read_only and store.with_read_only(True) == store
    assert store != Store(folder, memory="1M") and store != Store(folder / "below")
    np.testing.assert_array_equal(zarr.open_array(again, path="below/gzip")[...], VALUES)
    with pytest.raises(ValueError, match="read-only"):
        zarr.open_group(store, mode="w")
    with pytest.raises(ValueError, match="only reads"):
        store.with_read_only(False)
    for call in [
        store.set("a", default_buffer_prototype().buffer.from_bytes(b"")),
        store.delete("a"),
    ]:
        with pytest.raises(ValueError, match="read-only"):
            asyncio.run(call)
    for root in ["file:///a", "ftp://example.org/a"]:
        with pytest.raises(ValueError, match="neither a folder nor a URL"):
            Store(root)


@pytest.mark.parametrize("key", ["../secret", "a/../../secret", "/etc/passwd", "a//b", "./a", ""])
def test_a_key_does_not_lead_out_of_the_root(key: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "root" / "a").mkdir(parents=True)
    for root in [str(tmp_path / "root"), "http://127.0.0.1:9/root"]:
        with pytest.raises(ValueError, match="has an empty part"):
            asyncio.run(Store(root).get(key, default_buffer_prototype()))


def test_failures_of_a_server_are_not_missing_values() -> None:
    with RangeServer({}) as server:
        url = server.url("")
    with pytest.raises(quarrier.RemoteError):
        asyncio.run(Store(url).get("zarr.json", default_buffer_prototype()))


def test_zarr_is_imported_only_with_the_store() -> None:
    script = """
import sys, quarrier
assert "zarr" not in sys.modules and "asyncio" not in sys.modules
import quarrier.compat.zarr
assert "zarr" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_forked_child_reads_from_the_store_of_its_parent() -> None:
    script = """
import asyncio, os, sys
from zarr.core.buffer import default_buffer_prototype
from quarrier.compat.zarr import Store
store = Store(sys.argv[1])
def read(key):
    return asyncio.run(store.get(key, default_buffer_prototype())).to_bytes()
assert read("one") == b"1" * 100_000
child = os.fork()
assert read("one") == b"1" * 100_000 and read("two") == b"2"
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    with RangeServer({"one": b"1" * 100_000, "two": b"2"}) as server:
        command = [sys.executable, "-W", "ignore", "-c", script, server.url("")]
        subprocess.run(command, check=True, timeout=60)
