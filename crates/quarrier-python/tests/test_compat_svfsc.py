"""Code written for svfsc 0.4.1 runs on quarrier.compat.svfsc."""

from __future__ import annotations

import datetime
import importlib.util
import json
import pathlib
import pickle
import threading

import pytest

import quarrier
import quarrier.compat.svfsc as svfsc

GOLDEN = pathlib.Path(__file__).parent / "golden"


def golden_answer():
    spec = importlib.util.spec_from_file_location("golden_svfsc", GOLDEN / "record.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.answer


RUNS = [json.loads(line) for line in (GOLDEN / "svfsc.json").read_text().splitlines()]


@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_random_calls_are_answered_as_svfsc_does(run) -> None:
    answer = golden_answer()
    svf = svfsc.cSVF("x", 1.5, False, run["compare_for_diff"])
    for call, expected in run["calls"]:
        assert answer(svf, call) == expected, call


def test_the_names_of_the_module_are_those_of_svfsc() -> None:
    assert sorted(svfsc.__all__) == [
        "PY_THREAD_SAFE",
        "SVFS_CPP_VERSION",
        "SVFS_CPP_VERSION_MAJOR",
        "SVFS_CPP_VERSION_MINOR",
        "SVFS_CPP_VERSION_PATCH",
        "SVFS_CPP_VERSION_SUFFIX",
        "SVFS_THREAD_SAFE",
        "SVF_THREAD_SAFE",
        "cSVF",
        "cSVFS",
    ]
    assert svfsc.SVFS_CPP_VERSION == "0.4.1"
    assert public(svfsc.cSVF) == (
        "block_touch block_touches blocks blocks_erased blocks_punted bytes_erased bytes_punted "
        "bytes_read bytes_write clear config count_read count_write erase file_mod_time "
        "file_mod_time_matches has_data id last_file_position lru_punt need need_many num_blocks "
        "num_bytes read size_of time_read time_write write"
    )
    assert public(svfsc.cSVFS) == (
        "block_touches blocks bytes_read bytes_write config count_read count_write erase "
        "file_mod_time file_mod_time_matches has has_data insert keys lru_punt lru_punt_all need "
        "need_many num_blocks num_bytes read remove size_of time_read time_write total_blocks "
        "total_bytes total_size_of write"
    )


def public(kind: type) -> str:
    return " ".join(name for name in sorted(dir(kind)) if not name.startswith("_"))


def test_the_example_of_the_documentation_runs() -> None:
    svf = svfsc.cSVF("some ID")
    svf.write(12, b"ABCD")
    assert svf.read(13, 2) == b"BC"
    assert svf.need(10, 12) == [(10, 2), (16, 6)]
    with pytest.raises(OSError):
        svf.read(1024, 18)


def test_keywords_are_those_of_svfsc() -> None:
    svf = svfsc.cSVF(id="x", mod_time=2, overwrite_on_exit=True, compare_for_diff=False)
    assert svf.config() == {"compare_for_diff": False, "overwrite_on_exit": True}
    svf.write(file_position=0, data=b"abc")
    assert svf.has_data(file_position=0, length=3)
    assert svf.read(file_position=0, length=3) == b"abc"
    assert svf.need(file_position=0, length=5, greedy_length=8) == [(3, 8)]
    assert svf.need_many(seek_reads=[(0, 5)], greedy_length=8) == [(3, 8)]
    assert svf.file_mod_time_matches(file_mod_time=2.0)
    assert svf.lru_punt(cache_size_upper_bound=0) == 0
    svf.erase(file_position=0)
    svfs = svfsc.cSVFS(overwrite_on_exit=True, compare_for_diff=False)
    svfs.insert(id="a", mod_time=1.0)
    svfs.write(id="a", file_position=0, data=b"abc")
    assert svfs.read(id="a", file_position=1, length=1) == b"b"
    assert svfs.file_mod_time_matches(id="a", file_mod_time=1.0)


def test_wrong_types_are_type_errors() -> None:
    svf = svfsc.cSVF("x")
    for wrong in (
        lambda: svfsc.cSVF(),
        lambda: svfsc.cSVF(1),
        lambda: svf.write("a", b""),
        lambda: svf.write(1.0, b""),
        lambda: svf.write(0, bytearray(b"a")),
        lambda: svf.write(0, "text"),
        lambda: svf.need_many(((0, 5),)),
        lambda: svf.need_many([[0, 5]]),
        lambda: svf.need_many([(0,)]),
        lambda: svf.need_many([("a", 1)]),
        lambda: svfsc.cSVFS().insert("a"),
        lambda: svfsc.cSVFS().has(1),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_times_are_datetimes_or_none() -> None:
    svf = svfsc.cSVF("x")
    assert svf.time_read() is svf.time_write() is None
    svf.write(0, b"a")
    svf.read(0, 1)
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    for time in (svf.time_read(), svf.time_write()):
        assert time is not None and time.tzinfo is None
        assert abs(now - time) < datetime.timedelta(minutes=1)
    svf.clear()
    assert svf.time_write() is None


def test_a_pickle_has_the_contents_of_one_of_svfsc() -> None:
    svf = svfsc.cSVF("x", 1.5)
    svf.write(10, b"abc")
    assert svf.__getstate__() == {
        "id": "x",
        "file_mod_time": 1.5,
        "blocks": ((10, b"abc"),),
        "pickle_version": 1,
    }
    again = pickle.loads(pickle.dumps(svf))
    assert (again.id(), again.file_mod_time(), again.blocks()) == ("x", 1.5, ((10, 3),))
    for wrong in (
        {"id": "x", "file_mod_time": 1.5, "blocks": (), "pickle_version": 2},
        {"id": "x", "file_mod_time": 1.5, "blocks": ()},
        {"id": "x", "file_mod_time": 1, "blocks": (), "pickle_version": 1},
        [],
    ):
        with pytest.raises((ValueError, KeyError, TypeError)):
            svfsc.cSVF("y").__setstate__(wrong)  # type: ignore[arg-type]


def test_a_file_system_holds_files_by_name() -> None:
    svfs = svfsc.cSVFS()
    assert (len(svfs), svfs.keys(), svfs.has("a")) == (0, [], False)
    for name in "ab":
        svfs.insert(name, 3.5)
    with pytest.raises(RuntimeError, match='can not insert "a"'):
        svfs.insert("a", 1.0)
    svfs.write("a", 0, b"abc")
    svfs.write("a", 10, b"d")
    svfs.write("b", 5, b"efgh")
    with pytest.raises(OSError, match=r'svf_write: .* id = "a" as the given data is different'):
        svfs.write("a", 0, b"xbc")
    with pytest.raises(OSError, match='svf_read: Can not read from a SVF id= "a"'):
        svfs.read("a", 0, 9)
    with pytest.raises(OSError, match="Can not erase block"):
        svfs.erase("a", 1)
    assert svfs.need("a", 0, 12) == [(3, 7), (11, 1)]
    assert svfs.need_many("a", [(0, 4), (5, 1)], 4) == [(3, 4)]
    assert (svfs.blocks("a"), svfs.num_blocks("a"), svfs.num_bytes("a")) == (
        ((0, 3), (10, 1)),
        2,
        4,
    )
    assert (svfs.total_bytes(), svfs.total_blocks(), svfs.file_mod_time("b")) == (8, 3, 3.5)
    assert svfs.total_size_of() > 0 and svfs.size_of("a") > 0
    assert (svfs.count_read("a"), svfs.count_write("a")) == (0, 2)
    assert (svfs.bytes_read("a"), svfs.bytes_write("a")) == (0, 4)
    assert svfs.block_touches("a") == {0: 0, 1: 10}
    assert svfs.time_read("a") is None and svfs.time_write("a") is not None
    assert svfs.lru_punt("b", 0) == 0
    assert svfs.lru_punt_all(0) == 3
    assert svfs.blocks("a") == ((10, 1),)
    svfs.remove("a")
    assert svfs.keys() == ["b"]


def test_an_unknown_name_is_an_index_error() -> None:
    svfs = svfsc.cSVFS()
    names = public(svfsc.cSVFS).split()
    others = {"config", "has", "insert", "keys", "lru_punt_all"}
    others |= {name for name in names if name.startswith("total_")}
    rest = {
        "has_data": (0, 1),
        "write": (0, b"a"),
        "read": (0, 1),
        "erase": (0,),
        "need": (0, 1),
        "need_many": ([],),
        "lru_punt": (0,),
        "file_mod_time_matches": (0.0,),
    }
    for name in set(names) - others:
        with pytest.raises(IndexError, match='"z"'):
            getattr(svfs, name)("z", *rest.get(name, ()))


def test_calls_that_svfsc_gets_wrong_are_right() -> None:
    svf = svfsc.cSVF("x")
    for offset, data in [(0, b"A"), (3, b"D"), (2, b"C")]:
        svf.write(offset, data)
    assert svf.blocks() == ((0, 1), (2, 2))
    assert svf.read(2, 2) == b"CD"
    with pytest.raises(OSError, match="Difference at position 3"):
        svf.write(2, b"Cd")
    with pytest.raises(OSError, match="Difference at position 2"):
        svf.write(0, b"A-c-more")
    assert svf.blocks() == ((0, 1), (2, 2))
    for wrong in (-1, 2**64):
        for call in (
            lambda wrong=wrong: svf.read(wrong, 1),
            lambda wrong=wrong: svf.write(wrong, b"a"),
            lambda wrong=wrong: svf.need(wrong, 1),
            lambda wrong=wrong: svf.has_data(0, wrong),
        ):
            with pytest.raises(quarrier.OffsetOverflowError):
                call()


def test_touches_are_remembered_in_bounded_memory() -> None:
    svf = svfsc.cSVF("x")
    svf.write(0, bytes(100_000))
    svf.write(200_000, b"a")
    for at in range(50_000):
        svf.read(at, 1)
    assert len(svf._touches) < 10_000
    assert svf.block_touches() == {1: 200_000, 50_001: 0}


def test_threads_count_every_call() -> None:
    svf = svfsc.cSVF("x")
    svf.write(0, b"abc")

    def read() -> None:
        for _ in range(2000):
            svf.read(0, 3)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (svf.count_read(), svf.bytes_read()) == (8000, 24000)
