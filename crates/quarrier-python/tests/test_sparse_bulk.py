"""read_many, write_many, need_many_arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import quarrier
from quarrier import SparseFile


def filled() -> SparseFile:
    file = SparseFile()
    assert file.write_many([0, 10, 20], [3, 3, 3], b"abcdefghi") == 9
    return file


def test_many_are_written_and_read_in_the_order_given() -> None:
    file = filled()
    assert file.blocks() == [(0, 3), (10, 3), (20, 3)]
    data, starts = file.read_many([20, 1, 10, 0], [3, 2, 0, 1])
    assert data.tobytes() == b"ghibca"
    assert (data.dtype, starts.dtype) == (np.uint8, np.int64)
    assert starts.tolist() == [0, 3, 5, 5, 6]
    assert data[starts[1] : starts[2]].tobytes() == b"bc"


def test_read_bytes_are_an_arrow_array_without_a_copy() -> None:
    data, starts = filled().read_many([0, 20], [3, 2])
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_binary(), 2, buffers)
    assert array.to_pylist() == [b"abc", b"gh"]


@pytest.mark.parametrize("dtype", ["u8", "i8", "u4", "i4", "u2", "i1", ">u8", ">i4"])
def test_arrays_of_any_integers_are_accepted(dtype: str) -> None:
    offsets, lengths = np.array([20, 0], dtype), np.array([2, 3], dtype)
    data, _ = filled().read_many(offsets, lengths)
    assert data.tobytes() == b"ghabc"
    strided = np.array([20, 99, 0, 99], dtype)[::2]
    assert filled().read_many(strided, lengths)[0].tobytes() == b"ghabc"


def test_one_length_applies_to_all_offsets() -> None:
    data, starts = filled().read_many([0, 10], 2)
    assert (data.tobytes(), starts.tolist()) == (b"abde", [0, 2, 4])
    file = SparseFile()
    file.write_many(np.arange(0, 20, 2), 1, bytes(10))
    assert file.num_blocks() == 10


def test_no_ranges_read_no_bytes() -> None:
    data, starts = filled().read_many([], [])
    assert (len(data), starts.tolist()) == (0, [0])
    assert filled().write_many([], [], b"") == 0
    offsets, lengths = filled().need_many_arrays([], [])
    assert (len(offsets), len(lengths)) == (0, 0)


def test_needs_are_returned_as_arrays() -> None:
    file = filled()
    for wanted, greedy in [
        ([(0, 25)], 0),
        ([(15, 10), (0, 12)], 0),
        ([(0, 25)], 9),
        ([(0, 3)], 0),
        ([(0, 3)], 5),
    ]:
        offsets, lengths = file.need_many_arrays(*zip(*wanted, strict=True), greedy)
        assert (offsets.dtype, lengths.dtype) == (np.uint64, np.uint64)
        pairs = list(zip(offsets.tolist(), lengths.tolist(), strict=True))
        assert pairs == file.need_many(wanted, greedy)
    far = quarrier.CostModel(latency=1.0)
    assert file.need_many_arrays([0], [25], cost=far)[0].tolist() == [3]


def test_missing_bytes_are_an_error_and_take_no_memory() -> None:
    file = filled()
    with pytest.raises(quarrier.NotHeldError) as caught:
        file.read_many([0, 11, 0], [1, 5, 1])
    assert caught.value.missing == (13, 3)
    for length in (1 << 40, 1 << 62):
        with pytest.raises(quarrier.NotHeldError):
            file.read_many([0, 0, 0, 0], [length] * 4)


def test_numbers_that_are_no_offsets_do_not_wrap() -> None:
    file = filled()
    for dtype in ("i8", "i4", "i1"):
        with pytest.raises(quarrier.OffsetOverflowError) as caught:
            file.read_many(np.array([0, -5], dtype), [1, 1])
        assert caught.value.offset == -5
        with pytest.raises(quarrier.OffsetOverflowError):
            file.need_many_arrays([0], np.array([-1], dtype))
    with pytest.raises(quarrier.OffsetOverflowError):
        file.write_many(np.array([2**64 - 1], "u8"), [2], b"ab")
    for wrong in ([0.5], ["a"], [None], [2**64]):
        with pytest.raises(TypeError):
            file.read_many(wrong, [1])  # type: ignore[list-item]
    assert file.num_bytes() == 9


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    file = filled()
    for call in (
        lambda: file.read_many([0, 1], [1]),
        lambda: file.read_many(np.zeros((2, 2), "u8"), [1]),
        lambda: file.read_many(5, [1]),
        lambda: file.write_many([0], [2], b"abc"),
        lambda: file.write_many([0], [4], b"abc"),
    ):
        with pytest.raises(quarrier.BufferLayoutError):
            call()
    assert file.num_bytes() == 9


def test_a_conflict_writes_nothing() -> None:
    file = filled()
    for offsets, data, at in (
        ([30, 11, 40], b"jjXkk", 11),
        ([40, 30, 30], b"jjXkk", 30),
    ):
        with pytest.raises(quarrier.ConflictError) as caught:
            file.write_many(offsets, [2, 1, 2], data)
        assert caught.value.offset == at
        assert file.blocks() == [(0, 3), (10, 3), (20, 3)]
    with pytest.raises(quarrier.OffsetOverflowError):
        file.write_many(np.array([30, 2**64 - 1], "u8"), [1, 2], b"abc")
    assert file.write_many([40, 30, 31], [2, 2, 1], b"jjXkk") == 4


def test_a_million_isolated_bytes_take_little_memory() -> None:
    offsets = np.arange(0, 2_000_000, 2, dtype="u8")
    data = np.random.default_rng(1).bytes(1_000_000)
    file = SparseFile()
    file.write_many(offsets, 1, data)
    assert file.num_blocks() == 1_000_000
    assert file.memory_bytes() < 11.2 * 1_000_000
    read, starts = file.read_many(offsets[::-1], 1)
    assert read.tobytes() == data[::-1]
    assert starts[-1] == 1_000_000
    missing, lengths = file.need_many_arrays([0], [2_000_000])
    assert (missing == offsets + 1).all() and (lengths == 1).all()


def test_memory_is_reused_only_without_views() -> None:
    file = SparseFile()
    count = 300_000
    file.write_many(np.arange(0, 2 * count, 2), 1, bytes(count))
    expected = np.arange(1, 2 * count, 2, dtype="u8")
    kept = [file.need_many_arrays([0], [2 * count]) for _ in range(3)]
    views = [offsets[10:20] for offsets, _ in kept]
    del kept
    for _ in range(5):
        offsets, lengths = file.need_many_arrays([0], [2 * count])
        assert (offsets == expected).all() and (lengths == 1).all()
        offsets[:] = 7
        _, starts = file.read_many(np.zeros(count, "u8"), 1)
        assert starts.tolist() == list(range(count + 1))
    for view in views:
        assert (view == expected[10:20]).all()
