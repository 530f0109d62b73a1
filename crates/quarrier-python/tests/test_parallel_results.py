"""`init`, `map` and `scan` equal a plain loop for all workers, chunks and modes."""

from __future__ import annotations

import mmap
import pathlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quarrier
from quarrier import parallel

MODES = pytest.mark.parametrize("mode", ["process", "thread"])
FEW = settings(max_examples=15)
lengths = st.integers(0, 300)
chunks = st.none() | st.integers(1, 320)


def number(out: Any, start: int) -> None:
    out[:] = np.arange(start, start + len(out))


def mean(out: Any, first: Any, second: Any) -> None:
    out[:] = (first & second) + ((first ^ second) >> 1)


def window_means(out: Any, lead: int, *slices: Any) -> None:
    """The mean of two means of up to 11 neighbours, clipped at the ends."""
    for index in range(len(out)):
        at = index + lead
        means = [int(part[max(0, at - 5) : at + 6].mean()) for part in slices]
        out[index] = sum(means) // len(means)


def random_bytes(length: int, seed: int = 1) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, length, np.uint8)


@MODES
@FEW
@given(length=lengths, chunk=chunks, workers=st.integers(1, 3))
def test_init_fills_every_index_once(
    mode: Any, length: int, chunk: int | None, workers: int
) -> None:
    found = parallel.init(length, "i8", number, workers, chunk, mode=mode)
    assert found.tolist() == list(range(length))


@MODES
@FEW
@given(length=lengths, chunk=chunks, halo=st.integers(0, 20), workers=st.integers(1, 3))
def test_map_with_halo_shows_the_neighbours(
    mode: Any, length: int, chunk: int | None, halo: int, workers: int
) -> None:
    data = random_bytes(length)

    def sums(out: Any, lead: int, part: Any) -> None:
        for index in range(len(out)):
            at = index + lead
            out[index] = part[max(0, at - halo) : at + halo + 1].sum()

    def plain(out: Any, part: Any) -> None:
        out[:] = part

    found = parallel.map(
        sums if halo else plain,
        data,
        halo=halo,
        workers=workers,
        chunk=chunk,
        dtype="u8",
        mode=mode,
    )
    wanted = [int(data[max(0, at - halo) : at + halo + 1].sum()) for at in range(length)]
    assert found.tolist() == wanted


@MODES
@FEW
@given(
    length=lengths, chunk=st.integers(1, 320), overlap=st.integers(0, 40), workers=st.integers(1, 3)
)
def test_scan_shows_every_chunk_with_its_overlap(
    mode: Any,
    length: int,
    chunk: int,
    overlap: int,
    workers: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = random_bytes(length).tobytes()
    path = tmp_path_factory.getbasetemp() / f"{length}.bin"
    path.write_bytes(data)

    def seen(part: Any, offset: int) -> tuple[int, bytes]:
        return offset, part.tobytes()

    wanted = [(at, data[at : at + chunk + overlap]) for at in range(0, length, chunk)]
    for source in (data, path, str(path)):
        found = parallel.scan(source, seen, chunk, overlap, workers=workers, mode=mode)
        assert found == wanted


def test_the_two_reference_kernels_equal_numpy() -> None:
    first, second = random_bytes(300_001, 1), random_bytes(300_001, 2)
    found = parallel.map(mean, first, second, workers=2)
    assert (found == ((first.astype("u2") + second) // 2).astype("u1")).all()
    first, second = first[:5000], second[:5000]
    found = parallel.map(window_means, first, second, halo=5, workers=2, chunk=333)
    wanted = np.zeros(5000, np.uint8)
    window_means(wanted, 0, first, second)
    assert (found == wanted).all()


def test_rows_of_several_axes_stay_together() -> None:
    def fill(out: Any, start: int) -> None:
        out[:] = np.arange(start, start + len(out))[:, None, None]

    found = parallel.init((50, 3, 2), "f4", fill, workers=2, chunk=7)
    assert (found == np.arange(50)[:, None, None]).all()
    assert (found.shape, found.dtype) == ((50, 3, 2), np.float32)


@pytest.mark.parametrize("shape", [0, (0, 5), (5, 0)])
def test_an_array_without_elements_runs_no_kernel(shape: Any) -> None:
    def fill(out: Any, start: int) -> None:
        raise AssertionError("called")

    assert parallel.init(shape, "u1", fill).size == 0


@MODES
@pytest.mark.parametrize("kind", ["private", "shared", "a part of shared", "memmap"])
def test_map_fills_the_out_it_is_given(mode: Any, kind: str, tmp_path: pathlib.Path) -> None:
    data = random_bytes(1000)
    out: Any
    if kind == "private":
        out = np.zeros(1000, np.uint8)
    elif kind == "shared":
        out = parallel.empty(1000, "u1")
    elif kind == "a part of shared":
        out = parallel.empty((1000, 3), "u1")[:, 1]
    else:
        out = np.memmap(tmp_path / "out", np.uint8, "w+", shape=1000)
    found = parallel.map(mean, data, data, out=out, workers=2, chunk=10, mode=mode)
    assert found is out
    assert (out == data).all()


def test_a_private_out_is_unchanged_if_the_call_fails() -> None:
    def fail(out: Any, part: Any) -> None:
        out[:] = part
        if part[0] == 90:
            raise ValueError

    out = np.full(100, 7, np.uint8)
    with pytest.raises(ValueError):
        parallel.map(fail, np.arange(100, dtype=np.uint8), out=out, workers=2, chunk=10)
    assert (out == 7).all()


def inputs(kind: str, data: npt.NDArray[np.uint8], folder: pathlib.Path) -> Any:
    if kind == "shared":
        shared = parallel.empty(len(data), "u1")
        shared[:] = data
        return shared
    if kind == "memmap":
        data.tofile(folder / "data")
        return np.memmap(folder / "data", np.uint8, "r")
    if kind == "part of a memmap":
        np.concatenate([data[:5000], data]).tofile(folder / "data")
        return np.memmap(folder / "data", np.uint8, "r", offset=4999)[1:]
    if kind == "mmap":
        data.tofile(folder / "data")
        with open(folder / "data", "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if kind == "reversed":
        return data[::-1].copy()[::-1]
    if kind == "arrow":
        return pyarrow.array(data)
    return {"numpy": data, "bytes": data.tobytes(), "memoryview": memoryview(data.tobytes())}[kind]


KINDS = [
    "numpy", "bytes", "memoryview", "shared", "memmap", "part of a memmap", "mmap", "reversed",
    "arrow",
]  # fmt: skip


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_map_takes_any_exporter_of_memory(kind: str, pooled: bool, tmp_path: pathlib.Path) -> None:
    data = random_bytes(100_000)
    given_as = inputs(kind, data, tmp_path)
    if pooled:
        with parallel.pool(workers=2):
            found = parallel.map(mean, given_as, given_as)
    else:
        found = parallel.map(mean, given_as, given_as, workers=2)
    assert (found == data).all()


@MODES
def test_scan_reduces_in_order_of_offset(mode: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(random_bytes(10_000).tobytes())

    def join(before: str, value: str) -> str:
        return f"{before} {value}"

    for source in (path, path.read_bytes()):
        found = parallel.scan(
            source, lambda part, offset: str(offset), 100, reduce=join, workers=3, mode=mode
        )
        assert found == " ".join(str(offset) for offset in range(0, 10_000, 100))


@MODES
@pytest.mark.parametrize("shared", [False, True])
def test_scan_fills_a_row_for_each_chunk(mode: Any, shared: bool, tmp_path: pathlib.Path) -> None:
    data = random_bytes(10_000)
    path = tmp_path / "data"
    data.tofile(path)

    def histogram(part: Any, offset: int) -> Any:
        return np.bincount(part, minlength=256)

    for source in (path, data):
        out = parallel.empty((10, 256), "i8") if shared else np.zeros((10, 256), np.int64)
        found = parallel.scan(source, histogram, 1000, out=out, workers=2, mode=mode)
        assert found is out
        assert all((row == np.bincount(data[at : at + 1000], minlength=256)).all()
                   for at, row in zip(range(0, 10_000, 1000), out, strict=True))  # fmt: skip


def test_scan_reads_every_source(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc" * 1000)
    with quarrier.open(path) as file:
        assert parallel.scan(file, lambda part, offset: len(part), 1000) == [1000] * 3


def test_a_chunk_of_a_scan_is_read_only(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc")

    def write(part: Any, offset: int) -> None:
        part[0] = 1

    for source in (path, b"abc"):
        with pytest.raises(ValueError, match="read-only"):
            parallel.scan(source, write)


@pytest.mark.parametrize(
    "call",
    [
        lambda: parallel.init(5, "u1", number, workers=-1),
        lambda: parallel.init(5, "u1", number, chunk=0),
        lambda: parallel.init(5, "u1", number, timeout=0),
        lambda: parallel.init(5, "u1", number, mode="fibre"),  # type: ignore[arg-type]
        lambda: parallel.init(5, "u1", number, on_error="ignore"),  # type: ignore[arg-type]
        lambda: parallel.map(mean, b"a", b"a", halo=-1),
        lambda: parallel.scan(b"abc", len, overlap=-1),  # type: ignore[arg-type]
    ],
)
def test_invalid_options_are_refused(call: Any) -> None:
    with pytest.raises(quarrier.PlanError):
        call()


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in length: 2, 3"):
        parallel.map(mean, b"ab", b"abc")
    with pytest.raises(TypeError, match="Python objects"):
        parallel.init(3, object, number)
    with pytest.raises(ValueError, match="3 chunks"):
        parallel.scan(b"abc", lambda part, offset: 1, 1, out=np.zeros(2))
    with pytest.raises(ValueError, match=r"shape is \(\)"):
        parallel.init((), "u1", number)


def test_a_request_beyond_the_machines_memory_is_refused_at_once() -> None:
    with pytest.raises(quarrier.NoRoomError):
        parallel.init(1 << 50, "u1", number)


def add_one(out: Any, values: Any) -> None:
    out[:] = values + 1


def sum_of_neighbours(out: Any, lead: int, values: Any) -> None:
    padded = np.concatenate([values, [0, 0]])
    out[:] = padded[lead : lead + len(out)] + padded[lead + 1 : lead + 1 + len(out)]


@MODES
@pytest.mark.parametrize("on_error", ["raise", "retry"])
@pytest.mark.parametrize("kind", ["shared", "plain", "memmap", "mapped twice"])
def test_out_that_overlaps_an_array_is_right(
    tmp_path: pathlib.Path, mode: Any, on_error: Any, kind: str
) -> None:
    def array() -> Any:
        if kind == "shared":
            made: Any = parallel.empty(1_001, "i8")
        elif kind == "plain":
            made = np.zeros(1_001, "i8")
        else:
            made = np.memmap(tmp_path / "array", "i8", "w+", shape=1_001)
        made[:] = np.arange(1_001)
        return made

    def again(made: Any) -> Any:
        return np.memmap(tmp_path / "array", "i8", "r+") if kind == "mapped twice" else made

    options: Any = {"mode": mode, "on_error": on_error, "workers": 2, "chunk": 10}
    before = np.arange(1_001)
    for out, source in [(slice(1, None), slice(-1)), (slice(-1), slice(1, None))]:
        x = array()
        parallel.map(add_one, x[source], out=again(x)[out], **options)
        assert x[out].tolist() == (before[source] + 1).tolist()
    x = array()
    parallel.map(add_one, x, out=again(x), **options)
    assert x.tolist() == (before + 1).tolist()
    x = array()
    parallel.map(add_one, x[::-1], out=again(x), **options)
    assert x.tolist() == (before[::-1] + 1).tolist()
    x = array()
    parallel.map(sum_of_neighbours, x, out=again(x), halo=1, **options)
    assert x[:-1].tolist() == (before[:-1] + before[1:]).tolist()


def test_masks_and_nulls_are_refused_and_never_lost() -> None:
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(ValueError, match="masked values"):
        parallel.map(add_one, masked)
    with pytest.raises(ValueError, match="masked values"):
        parallel.scan(masked, lambda chunk, offset: len(chunk))
    with pytest.raises(ValueError, match="NULLs"):
        parallel.map(add_one, pyarrow.array([1, None, 3]))
    with pytest.raises(TypeError, match="mask"):
        parallel.map(add_one, np.arange(3), out=np.ma.array([1, 2, 3]))
    for whole in [np.ma.array([1, 2, 3]), pyarrow.array([1, 2, 3])]:
        assert parallel.map(add_one, whole, workers=2).tolist() == [2, 3, 4]


@MODES
def test_a_kernel_that_returns_something_is_a_type_error(mode: Any) -> None:
    with pytest.raises(TypeError, match="returned a value"):
        parallel.map(lambda out, values: values + 1, np.arange(9), mode=mode)
    with pytest.raises(TypeError, match="returned a value"):
        parallel.map(lambda out, lead, values: 0, np.arange(9), halo=1, mode=mode)
    with pytest.raises(TypeError, match="returned a value"):
        parallel.init(9, "i8", lambda out, start: start, mode=mode)
    found = parallel.map(lambda out, values: np.add(values, 1, out=out), np.arange(9), mode=mode)
    assert found.tolist() == list(range(1, 10))
