"""`out=`: files filled in place, several arrays at once, and dtypes with fields."""

from __future__ import annotations

import mmap
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest

import quarrier
from quarrier import parallel
from quarrier.parallel import _outs

WAYS = ["forked", "pooled", "clean", "thread"]
BOTH = pytest.mark.parametrize("length", [500, 50_000])


@pytest.fixture(params=WAYS)
def options(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The options of a call with workers of this kind."""
    if request.param == "pooled":
        with parallel.pool(workers=2):
            yield {"workers": 2}
    elif request.param == "clean":
        ended = threading.Event()
        thread = threading.Thread(target=ended.wait)
        thread.start()
        yield {"workers": 2}
        ended.set()
        thread.join()
    else:
        mode = "thread" if request.param == "thread" else "process"
        yield {"workers": 2, "mode": mode}


@pytest.fixture
def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a second array was made")

    monkeypatch.setattr(_outs, "empty", refuse)


def number(out: Any, start: int) -> None:
    out[:] = np.arange(start, start + len(out))


def double(out: Any, values: Any) -> None:
    out[:] = 2 * values


def split(out: Any, values: Any) -> None:
    quotients, rests = out
    rests[:, 0] = rests[:, 1] = values % 7
    quotients[:] = values // 7


@BOTH
@pytest.mark.usefixtures("no_copy")
def test_a_file_is_filled_in_place(
    options: dict[str, Any], length: int, tmp_path: pathlib.Path
) -> None:
    values = np.arange(length)
    for offset, part in [(0, slice(None)), (24, slice(None, None, -2)), (8, slice(3, -3))]:
        out = np.memmap(tmp_path / "out", "i8", "w+", offset, length)[part]
        assert parallel.map(double, values[part], out=out, **options) is out
        found = np.fromfile(tmp_path / "out", "i8", offset=offset)[part]
        assert (found == 2 * values[part]).all()
    out = np.memmap(tmp_path / "out", "i8", "w+", shape=length)
    assert parallel.init(length, "i8", number, out=out, **options) is out
    assert (np.fromfile(tmp_path / "out", "i8") == values).all()


@pytest.mark.usefixtures("no_copy")
def test_halves_of_one_file_are_filled_from_each_other_in_place(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "both"
    np.arange(2_000).tofile(path)
    first = np.memmap(path, "i8", "r", shape=1_000)
    second = np.memmap(path, "i8", "r+", offset=8_000)
    parallel.map(double, first, out=second, workers=2)
    assert (np.fromfile(path, "i8")[1_000:] == 2 * np.arange(1_000)).all()


def test_a_file_is_written_out(tmp_path: pathlib.Path) -> None:
    class Counted(mmap.mmap):
        flushes = 0

        def flush(self, *_: Any) -> None:
            Counted.flushes += 1

    with (tmp_path / "out").open("wb+") as file:
        file.truncate(8_000)
        mapped = Counted(file.fileno(), 0)
    parallel.init(1_000, "i8", number, out=np.frombuffer(mapped, "i8"), workers=2)
    assert Counted.flushes == 1
    assert (np.fromfile(tmp_path / "out", "i8") == np.arange(1_000)).all()


@pytest.mark.parametrize("kind", ["copy on write", "removed", "anonymous"])
def test_a_mapping_that_workers_cannot_reach_is_filled_at_the_end(
    options: dict[str, Any], kind: str, tmp_path: pathlib.Path
) -> None:
    out: Any
    if kind == "anonymous":
        out = np.frombuffer(mmap.mmap(-1, 8_000), "i8")
    else:
        np.zeros(1_000, "i8").tofile(tmp_path / "out")
        out = np.memmap(tmp_path / "out", "i8", "c" if kind == "copy on write" else "r+")
        if kind == "removed":
            (tmp_path / "out").unlink()
    parallel.init(1_000, "i8", number, out=out, **options)
    assert (out == np.arange(1_000)).all()
    if kind == "copy on write":
        assert not np.fromfile(tmp_path / "out", "i8").any()


def test_a_failed_call_leaves_a_file_partly_filled(tmp_path: pathlib.Path) -> None:
    def fail(out: Any, start: int) -> None:
        number(out, start)
        if start == 900:
            raise OSError

    out = np.memmap(tmp_path / "out", "i8", "w+", shape=1_000)
    with pytest.raises(OSError):
        parallel.init(1_000, "i8", fail, workers=1, chunk=100, out=out)
    assert out[899] == 899


def several(kind: str, folder: pathlib.Path) -> list[Any]:
    if kind == "shared":
        return [parallel.empty(1_000, "i8"), parallel.empty((1_000, 2), "u1")]
    if kind == "private":
        return [np.zeros(1_000, "i8"), np.zeros((1_000, 2), "u1")]
    if kind == "files":
        return [
            np.memmap(folder / "first", "i8", "w+", shape=1_000),
            np.memmap(folder / "second", "u1", "w+", shape=(1_000, 2)),
        ]
    return [np.zeros(1_000, "i8"), np.memmap(folder / "second", "u1", "w+", shape=(1_000, 2))]


@pytest.mark.parametrize("kind", ["shared", "private", "files", "mixed"])
def test_several_results_are_filled_at_once(
    options: dict[str, Any], kind: str, tmp_path: pathlib.Path
) -> None:
    outs = several(kind, tmp_path)
    values = np.arange(1_000)
    assert parallel.map(split, values, out=outs, chunk=30, **options) is outs
    assert (outs[0] == values // 7).all()
    assert (outs[1] == (values % 7)[:, None]).all()

    def both(out: Any, start: int) -> Any:
        number(out[0], start)
        out[1][:] = 1
        return out

    found = parallel.init(1_000, None, both, out=tuple(outs), chunk=30, **options)
    assert isinstance(found, tuple)
    assert (outs[0] == values).all() and (outs[1] == 1).all()


def test_a_kernel_of_numba_fills_several_results() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def both(out: Any, values: Any) -> None:
        for index in range(len(values)):
            out[0][index] = values[index] // 7
            out[1][index] = values[index] % 7

    values = np.arange(1_000)
    outs = [parallel.empty(1_000, "i8"), parallel.empty(1_000, "u1")]
    parallel.map(both, values, out=outs, workers=2, mode="thread")
    assert (outs[0] == values // 7).all() and (outs[1] == values % 7).all()


def test_one_of_several_results_may_be_an_array_that_is_read() -> None:
    values = parallel.empty(1_000, "i8")
    values[:] = np.arange(1_000)
    rest = np.zeros((1_000, 2), "u1")
    for out in (values, values[::-1]):
        before = values.copy()
        parallel.map(split, values, out=[out, rest], workers=2, chunk=10)
        assert (out == before // 7).all()
        assert (rest[:, 1] == before % 7).all()


def test_results_that_overlap_or_do_not_fit_are_refused(tmp_path: pathlib.Path) -> None:
    out = parallel.empty(10, "i8")
    path = tmp_path / "twice"
    twice = [np.memmap(path, "i8", "w+", shape=10), np.memmap(path, "i8", "r+", shape=10)]
    for outs in ([out, out], [out[:-1], out[1:]], twice):
        with pytest.raises(ValueError, match=r"out\[0\] and out\[1\] overlap"):
            parallel.init(len(outs[0]), None, number, out=outs)
    columns = parallel.empty((10, 2), "i8")
    pair = [columns[:, 0], columns[:, 1]]
    parallel.map(lambda out, x: [double(part, x) for part in out] and None, np.arange(10), out=pair)
    assert (columns == 2 * np.arange(10)[:, None]).all()
    with pytest.raises(ValueError, match="empty list"):
        parallel.init(10, None, number, out=[])
    with pytest.raises(ValueError, match=r"out has the shape \(10,\), not \(11,\)"):
        parallel.init(11, "i8", number, out=out)
    with pytest.raises(ValueError, match="out is of dtype int64, not float64"):
        parallel.init(10, "f8", number, out=out)
    with pytest.raises(ValueError, match=r"out\[1\] has the shape \(9,\)"):
        parallel.init(10, None, number, out=[out, np.zeros(9)])
    with pytest.raises(ValueError, match="the arrays have 9 rows"):
        parallel.map(double, np.arange(9), out=[out])
    with pytest.raises(quarrier.BufferLayoutError):
        parallel.map(double, np.arange(9), out=[np.zeros(9), b"123456789"])  # type: ignore[type-var]
    with pytest.raises(TypeError, match="returned a value"):
        parallel.map(lambda out, x: x, np.arange(10), out=[out])


def test_dtypes_with_fields_are_kept(options: dict[str, Any], tmp_path: pathlib.Path) -> None:
    kind = np.dtype([("at", "<i4"), ("pair", ">f8", (2,)), ("name", "S3")])

    def fill(out: Any, start: int) -> None:
        out["at"] = np.arange(start, start + len(out))
        out["pair"][:, 1] = out["at"] / 2
        out["name"] = b"abc"

    def swap(out: Any, rows: Any) -> None:
        out[:] = rows
        out["pair"] = rows["pair"][:, ::-1]

    made = parallel.init(1_000, kind, fill, chunk=30, **options)
    assert made.dtype == kind
    out = np.memmap(tmp_path / "out", kind, "w+", shape=1_000)
    for found in (
        parallel.map(swap, made, chunk=30, **options),
        parallel.map(swap, made, out=out, chunk=30, **options),
    ):
        assert found.dtype == kind
        assert (found["at"] == np.arange(1_000)).all()
        assert (found["pair"][:, 0] == np.arange(1_000) / 2).all()
        assert not found["pair"][:, 1].any() and (found["name"] == b"abc").all()
