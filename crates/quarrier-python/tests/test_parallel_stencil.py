"""`stencil` equals scipy.ndimage at every edge, for all axes, halos, dtypes and tiles."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import quarrier
from quarrier import parallel
from quarrier.parallel import _outs
from quarrier.parallel._tiles import Budget, Tiles, plan

MODES: list[Any] = ["reflect", "mirror", "nearest", "wrap", "constant"]
EVERY_MODE = pytest.mark.parametrize("mode", MODES)
DTYPES = ["?", *"bBhHiIlLfdFD", ">i4", ">f8"]
# The maximum elements and neighbours of an axis, by the number of axes: halos may exceed arrays.
SIZE_MAX = {1: 30, 2: 9, 3: 6, 4: 4}
HALO_MAX = {1: 40, 2: 5, 3: 2, 4: 1}


def weights_for(halos: Any) -> npt.NDArray[Any]:
    """A different weight for each neighbour, so that a mix-up shows."""
    shape = [2 * halo + 1 for halo in halos]
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape)


def correlating(weights: npt.NDArray[Any]) -> Any:
    def correlate(out: Any, block: Any) -> None:
        out[...] = 0
        for offset, weight in np.ndenumerate(weights):
            part = tuple(slice(at, at + n) for at, n in zip(offset, out.shape, strict=True))
            out += weight * block[part]

    return correlate


def numbers(shape: Any, dtype: str = "f8", seed: int = 0) -> npt.NDArray[Any]:
    """Whole numbers, so that every sum is exact."""
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def wanted(array: Any, halos: Any, mode: Any, cval: Any = 0) -> Any:
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    native = array.astype(array.dtype.newbyteorder("="))
    return ndimage.correlate(native, weights_for(halos), kind, mode, cval)


@EVERY_MODE
@settings(max_examples=60)
@given(data=st.data(), ndim=st.integers(1, 4), dtype=st.sampled_from(DTYPES))
def test_every_edge_is_that_of_scipy(mode: Any, data: st.DataObject, ndim: int, dtype: str) -> None:
    def one_each(least: int, most: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(least, most)) for _ in range(ndim))

    shape, halos = one_each(1, SIZE_MAX[ndim]), one_each(0, HALO_MAX[ndim])
    array = numbers(shape, dtype)
    cval = data.draw(st.sampled_from([0, 1, True]) if dtype == "?" else st.integers(0, 100))
    expected = wanted(array, halos, mode, cval)
    found = parallel.stencil(
        correlating(weights_for(halos)),
        array,
        halos,
        mode,
        cval,
        dtype=expected.dtype,
        tile=data.draw(st.none() | st.just(one_each(1, 10))),
        workers=data.draw(st.integers(1, 2)),
        worker_mode="thread",
    )
    assert (found == expected).all()


@EVERY_MODE
@pytest.mark.parametrize("way", ["forked", "pooled", "clean"])
def test_processes_give_the_same(mode: Any, way: str) -> None:
    array = numbers((37, 53, 11))
    halos = (1, 2, 0)
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    if way == "clean":
        thread.start()
    try:
        kernel = correlating(weights_for(halos))
        if way == "pooled":
            with parallel.pool(workers=2):
                found = parallel.stencil(kernel, array, halos, mode, 7, tile=(8, 10, 11))
        else:
            found = parallel.stencil(kernel, array, halos, mode, 7, workers=2, tile=(8, 10, 11))
    finally:
        ended.set()
        if way == "clean":
            thread.join()
    assert isinstance(found, parallel.SharedArray)
    assert (found == wanted(array, halos, mode, 7)).all()


@pytest.mark.parametrize("shape", [(300_001,), (701, 503), (61, 83, 71), (13, 17, 19, 21)])
def test_tiles_of_any_size_give_the_same(shape: tuple[int, ...]) -> None:
    array = numbers(shape, "i4")

    def largest(out: Any, block: Any) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(block, (3,) * block.ndim)
        out[...] = windows.max(axis=tuple(range(block.ndim, 2 * block.ndim)))

    found = parallel.stencil(largest, array, 1, workers=2)
    assert found.dtype == np.int32
    assert (found == ndimage.maximum_filter(array, 3)).all()


@settings(max_examples=200)
@given(data=st.data(), ndim=st.integers(1, 4), tile_bytes=st.integers(1, 1 << 16))
def test_tiles_cover_every_element_once(data: st.DataObject, ndim: int, tile_bytes: int) -> None:
    shape = tuple(data.draw(st.integers(1, [2_000, 50, 12, 7][ndim - 1])) for _ in range(ndim))
    halos = [data.draw(st.integers(0, 60)) for _ in range(ndim)]
    tiles = Tiles(shape, plan(shape, halos, Budget(tile_bytes, 4, 16)))
    covered = np.zeros(shape, int)
    for index in range(len(tiles)):
        covered[tuple(slice(*axis) for axis in tiles.region(index))] += 1
    assert (covered == 1).all()


def test_each_axis_may_have_its_own_mode() -> None:
    array = numbers((5, 6, 7))
    modes = ["wrap", "constant", "mirror"]
    padded = np.pad(array, ((2, 2), (0, 0), (0, 0)), "wrap")
    padded = np.pad(padded, ((0, 0), (1, 1), (0, 0)), "constant", constant_values=9)
    padded = np.pad(padded, ((0, 0), (0, 0), (3, 3)), "reflect")

    def corners(out: Any, block: Any) -> None:
        out[...] = block[:-4, :-2, :-6] + 1_000 * block[4:, 2:, 6:]

    expected = np.zeros_like(array)
    corners(expected, padded)
    # Beyond two edges at once, a constant axis wins, as with np.pad in this order.
    found = parallel.stencil(corners, array, (2, 1, 3), modes, 9, tile=(2, 3, 3), workers=2)
    assert (found == expected).all()


@pytest.mark.parametrize("layout", ["Fortran", "reversed", "every second", "read-only", "shared"])
def test_every_layout_of_memory_is_taken(layout: str) -> None:
    array = numbers((40, 30))
    if layout == "Fortran":
        array = np.asfortranarray(array)
    elif layout == "reversed":
        array = array[::-1, ::-1]
    elif layout == "every second":
        array = array[::2, 1::2]
    elif layout == "read-only":
        array.flags.writeable = False
    else:
        shared = parallel.empty(array.shape)
        shared[:] = array
        array = shared
    found = parallel.stencil(correlating(weights_for((1, 1))), array, 1, tile=7, workers=2)
    assert (found == wanted(array, (1, 1), "reflect")).all()


def test_dtypes_without_arithmetic_are_kept() -> None:
    def shift(out: Any, block: Any) -> None:
        out[:] = block[:-2]

    days = np.array(["2026-01-01", "2026-01-02", "NaT"], "M8[D]")
    found = parallel.stencil(shift, days, 1, "constant", np.datetime64("2000-01-01"), workers=1)
    assert found.tolist() == [np.datetime64("2000-01-01").item(), *days[:2].tolist()]
    rows = np.array([(1, 0.5), (2, 1.5)], [("a", "i4"), ("b", "f8")])
    found = parallel.stencil(shift, rows, 1, "constant", (7, 2.5), workers=1)
    assert found.dtype == rows.dtype and found.tolist() == [(7, 2.5), (1, 0.5)]
    found = parallel.stencil(shift, np.array([b"ab", b"cd"]), 1, "wrap", workers=1)
    assert found.tolist() == [b"cd", b"ab"]


def test_a_file_is_filled_in_place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a second array was made")

    monkeypatch.setattr(_outs, "empty", refuse)
    array = numbers((60, 50))
    out = np.memmap(tmp_path / "out", "f8", "w+", shape=array.shape)
    kernel = correlating(weights_for((2, 2)))
    assert parallel.stencil(kernel, array, 2, out=out, tile=11, workers=2) is out
    found = np.fromfile(tmp_path / "out", "f8").reshape(array.shape)
    assert (found == wanted(array, (2, 2), "reflect")).all()


def slopes(out: Any, block: Any) -> None:
    rows, both = out
    rows[:] = block[2:, 1:-1] - block[:-2, 1:-1]
    both[..., 0] = rows
    both[..., 1] = block[1:-1, 2:] - block[1:-1, :-2]


def test_several_results_and_further_axes_are_filled_at_once() -> None:
    array = numbers((40, 30))
    outs = [np.zeros((40, 30)), parallel.empty((40, 30, 2), "f4")]
    assert parallel.stencil(slopes, array, 1, "nearest", out=outs, tile=9, workers=2) is outs
    padded = np.pad(array, 1, "edge")
    down, right = padded[2:, 1:-1] - padded[:-2, 1:-1], padded[1:-1, 2:] - padded[1:-1, :-2]
    assert (outs[0] == down).all()
    assert (outs[1] == np.stack([down, right], -1)).all()


@pytest.mark.parametrize("worker_mode", ["process", "thread"])
@pytest.mark.parametrize("kind", ["shared", "private", "file"])
def test_an_out_that_overlaps_the_array_is_right(
    kind: str, worker_mode: Any, tmp_path: pathlib.Path
) -> None:
    before = numbers((41, 30))
    array: Any
    if kind == "shared":
        array = parallel.empty(before.shape)
    elif kind == "private":
        array = np.zeros(before.shape)
    else:
        array = np.memmap(tmp_path / "array", "f8", "w+", shape=before.shape)
    kernel = correlating(weights_for((1, 1)))
    for source, target in [(slice(None), slice(None)), (slice(-1), slice(1, None))]:
        array[:] = before
        parallel.stencil(
            kernel, array[source], 1, out=array[target], tile=5, workers=2, worker_mode=worker_mode
        )
        assert (array[target] == wanted(before[source], (1, 1), "reflect")).all()


@pytest.mark.parametrize("worker_mode", ["process", "thread"])
def test_a_kernel_that_returns_something_or_writes_to_its_block_fails(worker_mode: Any) -> None:
    options: Any = {"workers": 2, "worker_mode": worker_mode, "tile": 3}
    array = numbers((9, 9))

    def write(out: Any, block: Any) -> None:
        block[0] = 1

    with pytest.raises(TypeError, match="returned a value"):
        parallel.stencil(lambda out, block: block[1:-1, 1:-1], array, 1, **options)
    with pytest.raises(ValueError, match="read-only"):
        parallel.stencil(write, array, 1, **options)
    found = parallel.stencil(
        lambda out, block: np.add(block[1:-1, 1:-1], 1, out=out), array, 1, **options
    )
    assert (found == array + 1).all()


def test_a_failure_names_its_tile() -> None:
    array = np.arange(100.0).reshape(10, 10)

    def fail(out: Any, block: Any) -> None:
        if (block == 57).any():
            raise OverflowError("too much")

    def die(out: Any, block: Any) -> None:
        if (block == 57).any():
            os.kill(os.getpid(), signal.SIGKILL)

    where = ((5, 10), (6, 9))
    with pytest.raises(OverflowError, match="too much") as raised:
        parallel.stencil(fail, array, 0, tile=(5, 3), workers=2)
    assert raised.value.quarrier_range == where  # type: ignore[attr-defined]
    assert raised.value.__notes__ == ["quarrier.parallel: in the kernel at [5:10, 6:9]"]
    with pytest.raises(quarrier.WorkerDiedError, match=r"SIGKILL.* at \[5:10, 6:9\]") as died:
        parallel.stencil(die, array, 0, tile=(5, 3), workers=2)
    assert died.value.range == where


def test_a_tile_that_failed_is_tried_again(tmp_path: pathlib.Path) -> None:
    array = numbers((10, 10))
    mark = tmp_path / "failed"

    def fail_once(out: Any, block: Any) -> None:
        out[:] = block
        if not mark.exists():
            mark.touch()
            raise OSError

    found = parallel.stencil(fail_once, array, 0, tile=3, workers=2, on_error="retry")
    assert (found == array).all()


def test_progress_counts_elements() -> None:
    seen: list[tuple[int, int]] = []
    parallel.stencil(
        lambda out, block: None,
        numbers((10, 11)),
        1,
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1] == (110, 110)


def test_a_kernel_of_numba_gets_blocks_of_one_layout() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def blur(out: Any, block: Any) -> None:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = block[i : i + 3, j : j + 3].sum()

    array = numbers((30, 40))
    found = parallel.stencil(blur, array, 1, tile=(7, 40), workers=2, worker_mode="thread")
    assert (found == ndimage.correlate(array, np.ones((3, 3)))).all()
    assert len(blur.signatures) == 1


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0, 3)])
def test_an_array_without_elements_runs_no_kernel(shape: Any) -> None:
    def fail(out: Any, block: Any) -> None:
        raise AssertionError("called")

    assert parallel.stencil(fail, np.zeros(shape), 3).shape == shape


def test_masks_and_nulls_are_refused() -> None:
    with pytest.raises(ValueError, match="masked values"):
        parallel.stencil(correlating(np.ones(3)), np.ma.array([1, 2], mask=[True, False]), 1)
    with pytest.raises(ValueError, match="NULLs"):
        parallel.stencil(correlating(np.ones(3)), pyarrow.array([1, None]), 1)
    found = parallel.stencil(correlating(np.ones(3)), pyarrow.array([1, 2]), 1, dtype="f8")
    assert found.tolist() == [4, 5]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"halo": -1}, quarrier.PlanError, "halo is -1"),
        ({"halo": (1, 2, 3)}, ValueError, "halo has 3 numbers for 2 axes"),
        ({"halo": 1.5}, TypeError, "integer"),
        ({"tile": 0}, quarrier.PlanError, "tile is 0"),
        ({"mode": "edge"}, ValueError, "the modes of edges are reflect, mirror"),
        ({"mode": "process"}, ValueError, "the modes of edges are reflect, mirror"),
        ({"mode": ["wrap"]}, ValueError, "1 modes for 2 axes"),
        ({"mode": "constant", "cval": 256}, ValueError, "256 is not a value of dtype uint8"),
        ({"mode": "constant", "cval": 0.5}, ValueError, "0.5 is not a value of dtype uint8"),
        ({"mode": "constant", "cval": np.nan}, ValueError, "nan is not a value of dtype uint8"),
        ({"mode": "constant", "cval": [1, 2]}, ValueError, "one value"),
        ({"worker_mode": "fibre"}, quarrier.PlanError, "fibre"),
        ({"out": np.zeros((3, 4))}, ValueError, r"the shape \(3, 4\), the array \(4, 3\)"),
        ({"out": np.zeros((4, 3)), "dtype": "u1"}, ValueError, "float64, not uint8"),
        ({"out": np.ma.zeros((4, 3))}, TypeError, "mask"),
    ],
)
def test_invalid_arguments_are_refused(options: Any, error: Any, said: str) -> None:
    array = np.zeros((4, 3), np.uint8)
    with pytest.raises(error, match=said):
        parallel.stencil(lambda out, block: None, array, **{"halo": 1, "workers": 1, **options})
    with pytest.raises(ValueError, match="without an axis"):
        parallel.stencil(lambda out, block: None, np.float64(1), 1)


def test_the_constant_may_be_rounded_to_a_float_dtype() -> None:
    for dtype, cval in [("f4", 0.1), ("f4", np.nan), ("f8", np.inf), ("c8", 1 + 2j), ("f8", True)]:
        array = np.zeros(1, dtype)
        kernel = lambda out, block: np.copyto(out, block[:1])  # noqa: E731
        found = parallel.stencil(kernel, array, 1, "constant", cval, workers=1)
        assert np.array_equal(found, np.full(1, cval, dtype), equal_nan=True)
    for dtype, cval in [("f4", 1e300), ("f8", 1j)]:
        with pytest.raises(ValueError, match="not a value"):
            parallel.stencil(lambda out, block: None, np.zeros(1, dtype), 1, "constant", cval)
