"""`quarrier.compat.obstore`: a store in the shape of obstore's."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import pickle
import random
from pathlib import Path
from typing import Any

import obspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from range_server import RangeServer

from quarrier.compat.obstore import Store, _date_of

DATA = random.Random(5).randbytes(300_000)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("objects")
    (root / "folder").mkdir()
    (root / "folder" / "object").write_bytes(DATA)
    (root / "empty").write_bytes(b"")
    with RangeServer({"folder/object": DATA, "empty": b""}) as server:
        yield lambda: [Store(root), Store(server.url(""), memory="3M")]


def test_the_methods_are_those_of_obspec() -> None:
    names = ["Get", "GetAsync", "GetRange", "GetRangeAsync", "GetRanges", "GetRangesAsync"]
    for protocol in [*names, "Head", "HeadAsync"]:
        spec = getattr(obspec, protocol)
        (name,) = (name for name in vars(spec) if name.startswith(("get", "head")))
        ours = inspect.signature(getattr(Store, name)).parameters
        for parameter in inspect.signature(getattr(spec, name)).parameters.values():
            assert ours[parameter.name].kind == parameter.kind
            assert ours[parameter.name].default == parameter.default
        assert inspect.iscoroutinefunction(getattr(Store, name)) == name.endswith("_async")
    for protocol in ["GetResult", "GetResultAsync"]:
        wanted = {name for name in vars(getattr(obspec, protocol)) if name[0] != "_"}
        result = Store(Path(__file__).parent).get(Path(__file__).name) if wanted else None
        assert all(hasattr(result, name) for name in wanted)


@given(ranges=st.lists(st.tuples(st.integers(0, 299_999), st.integers(1, 400_000)), max_size=10))
def test_ranges_have_the_bytes_of_plain_reads(stores: Any, ranges: list[tuple[int, int]]) -> None:
    path = "folder/object"
    starts, lengths = [start for start, _ in ranges], [length for _, length in ranges]
    ends = [start + length for start, length in ranges]
    expected = [DATA[start:end] for start, end in zip(starts, ends, strict=True)]

    async def read(store: Store) -> None:
        assert await store.get_ranges_async(path, starts=starts, ends=ends) == expected
        for start, end, data in zip(starts, ends, expected, strict=True):
            assert await store.get_range_async(path, start=start, end=end) == data

    for store in stores():
        assert store.get_ranges(path, starts=starts, ends=ends) == expected
        assert store.get_ranges(path, starts=starts, lengths=lengths) == expected
        for (start, length), data in zip(ranges, expected, strict=True):
            assert store.get_range(path, start=start, length=length) == data
            found = store.get(path, options={"range": (start, start + length)})
            assert (found.range, found.bytes()) == ((start, start + len(data)), data)
            assert store.get(path, options={"range": {"offset": start}}).buffer() == DATA[start:]
            suffix = store.get(path, options={"range": {"suffix": length}})
            assert suffix.bytes() == DATA[-length:]
        asyncio.run(read(store))


def test_an_object_is_read_whole_and_in_parts(stores: Any) -> None:
    async def parts(found: Any) -> list[bytes]:
        return [part async for part in found.stream_async(100_001)]

    for store in stores():
        found = store.get("folder/object")
        assert (found.range, found.bytes(), found.attributes) == ((0, len(DATA)), DATA, {})
        assert b"".join(found) == DATA
        assert [len(part) for part in found.stream(100_001)] == [100_001, 100_001, 99_998]
        again = asyncio.run(store.get_async("folder/object"))
        assert b"".join(asyncio.run(parts(again))) == DATA
        assert asyncio.run(again.buffer_async()) == DATA
        assert store.get("empty").bytes() == b""
        head = store.head("folder/object")
        assert head == found.meta == asyncio.run(store.head_async("folder/object"))
        assert (head["path"], head["size"]) == ("folder/object", len(DATA))
        assert head["last_modified"].tzinfo is datetime.UTC
        for name in ["missing", "folder/missing"]:
            with pytest.raises(FileNotFoundError):
                store.head(name)
        with pytest.raises(OSError):
            store.get("folder")


def test_ranges_that_are_empty_or_outside_are_errors(stores: Any) -> None:
    for store in stores():
        for start, end in [(5, 5), (7, 5), (-1, 5), (300_000, 300_001)]:
            with pytest.raises(ValueError, match="range"):
                store.get_range("folder/object", start=start, end=end)
            with pytest.raises(ValueError, match="range"):
                store.get("folder/object", options={"range": (start, end)})
        for options in [{"starts": [1]}, {"starts": [1], "ends": [2], "lengths": [1]}]:
            with pytest.raises(ValueError, match="either the end"):
                store.get_ranges("folder/object", **options)
        with pytest.raises(ValueError, match="as many"):
            store.get_ranges("folder/object", starts=[1, 2], ends=[3])
        with pytest.raises(ValueError, match="'if_match' is not supported"):
            store.get("folder/object", options={"if_match": "a"})
        assert pickle.loads(pickle.dumps(store)) == store


def test_the_properties_are_those_of_the_server_and_cost_one_request() -> None:
    dates = ["Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:28:00 -0000", None, "no date"]
    unknown = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    known = datetime.datetime(2015, 10, 21, 7, 28, tzinfo=datetime.UTC)
    assert [_date_of(date) for date in dates] == [known, known, unknown, unknown]
    with RangeServer({"object": DATA}) as server:
        store = Store(server.url("?secret=1"), memory="4M")
        server.files["object?secret=1"] = server.files["object"]
        head = store.head("object")
        assert head["e_tag"] == f'"{len(DATA):x}"'
        assert head["last_modified"].year == 1970
        assert server.take_tally().requests == 1
        assert "secret" not in repr(store)
        ranges = [(at, at + 50) for at in range(100_000, 200_000, 500)]
        starts, ends = (list(bounds) for bounds in zip(*ranges, strict=True))
        assert store.get_ranges("object", starts=starts, ends=ends) == [
            DATA[start:end] for start, end in ranges
        ]
        assert server.take_tally().requests == 1
