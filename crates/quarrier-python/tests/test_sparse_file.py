"""SparseFile, one call at a time."""

from __future__ import annotations

import array
import copy
import gc
import mmap
import pickle
import weakref

import numpy as np
import pytest

import quarrier
from quarrier import SparseFile

END = 2**64 - 1


def test_written_bytes_are_held_read_and_not_needed() -> None:
    file = SparseFile("id")
    assert file.write(10, b"hello") == 5
    assert file.write(12, b"llo, you") == 5
    assert file.has(10, 10) and not file.has(9, 2)
    assert file.read(11, 9) == b"ello, you"
    assert file.need(0, 30) == [(0, 10), (20, 10)]
    assert file.blocks() == [(10, 10)]
    assert (file.num_bytes(), file.num_blocks()) == (10, 1)
    assert 10 in file and 20 not in file
    assert repr(file) == '<quarrier.SparseFile "id": 10 bytes in 1 blocks>'


def test_a_block_written_last_joins_both_neighbours() -> None:
    file = SparseFile()
    for offset, data in [(0, b"A"), (3, b"D"), (2, b"C")]:
        file.write(offset, data)
    assert file.blocks() == [(0, 1), (2, 2)]
    assert file.need(2, 2) == []
    assert file.read(2, 2) == b"CD"


def test_a_write_that_differs_after_its_first_byte_is_a_conflict() -> None:
    file = SparseFile()
    file.write(100, b"abcdef")
    with pytest.raises(quarrier.ConflictError) as caught:
        file.write(98, b"--abcXef--")
    error = caught.value
    assert (error.offset, error.held, error.given) == (103, ord("d"), ord("X"))
    assert isinstance(error, ValueError)


def test_a_write_that_fails_loses_and_adds_nothing() -> None:
    file = SparseFile()
    file.write(0, b"aaaa")
    file.write(8, b"bbbb")
    with pytest.raises(quarrier.ConflictError):
        file.write(2, b"aa1234bX")
    assert file.blocks() == [(0, 4), (8, 4)]
    assert (file.read(0, 4), file.read(8, 4)) == (b"aaaa", b"bbbb")


def test_conflicts_are_replaced_on_request() -> None:
    file = SparseFile(on_conflict="replace")
    file.write(0, b"aaaa")
    assert file.write(2, b"XYZ") == 1
    assert file.read(0, 5) == b"aaXYZ"
    assert file.on_conflict == "replace"
    with pytest.raises(ValueError):
        SparseFile(on_conflict="panic")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [-1, 2**64, -(2**70), 2**80])
def test_numbers_that_are_no_offsets_do_not_wrap(number: int) -> None:
    file = SparseFile()
    file.write(0, b"x")
    buffer = bytearray(1)
    calls = [
        lambda: file.write(number, b"x"),
        lambda: file.read(number, 1),
        lambda: file.read(0, number),
        lambda: file.read_into(number, buffer),
        lambda: file.has(number, 1),
        lambda: file.has(0, number),
        lambda: file.need(number, 1),
        lambda: file.need(0, 1, number),
        lambda: file.need_many([(number, 1)]),
        lambda: file.erase(number, 1),
        lambda: file.evict(number),
        lambda: file.pin(number, 1),
        lambda: number in file,
        lambda: SparseFile(length=number),
    ]
    for call in calls:
        with pytest.raises(quarrier.OffsetOverflowError) as caught:
            call()
        assert isinstance(caught.value, OverflowError)
        assert caught.value.offset == number
    assert file.blocks() == [(0, 1)]


def test_the_greatest_offsets_work_and_beyond_them_is_an_error() -> None:
    file = SparseFile()
    file.write(END - 3, b"abc")
    assert file.read(END - 3, 3) == b"abc"
    assert file.need(END - 4, 4) == [(END - 4, 1)]
    with pytest.raises(quarrier.OffsetOverflowError) as caught:
        file.write(END - 1, b"abc")
    assert (caught.value.offset, caught.value.length) == (END - 1, 3)
    with pytest.raises(quarrier.OffsetOverflowError):
        file.need(END, END)
    assert not file.has(END, 1)


def test_reading_missing_bytes_is_an_error_that_names_them() -> None:
    file = SparseFile()
    file.write(0, b"abc")
    with pytest.raises(quarrier.NotHeldError) as caught:
        file.read(1, 10)
    assert (caught.value.offset, caught.value.length, caught.value.missing) == (1, 10, (3, 8))
    assert isinstance(caught.value, LookupError)
    with pytest.raises(quarrier.NotHeldError):
        file.read(0, 2**62)
    with pytest.raises(quarrier.NotHeldError):
        file.read_into(1, bytearray(10))
    assert file.counters()["misses"] == 3


@pytest.mark.parametrize(
    "kind",
    [
        bytes,
        bytearray,
        memoryview,
        lambda data: np.frombuffer(data, "u1"),
        lambda data: np.frombuffer(data, "<u4").reshape(2, -1),
        lambda data: array.array("B", data),
        lambda data: type("Bytes", (bytes,), {})(data),
    ],
)
@pytest.mark.parametrize("length", [8, 256 << 10])
def test_any_exporter_of_bytes_can_be_written(kind, length: int) -> None:
    data = bytes(range(256)) * (length // 256) or bytes(range(8))
    file = SparseFile()
    assert file.write(5, kind(data)) == len(data)
    assert file.read(5, len(data)) == data


def test_a_map_can_be_written_and_read_into() -> None:
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:5] = b"hello"
        file = SparseFile()
        file.write(0, mapped)
        mapped[:5] = b"-----"
        assert file.read_into(0, mapped) == 4096
        assert mapped[:5] == b"hello"


def test_objects_without_contiguous_bytes_are_refused() -> None:
    file = SparseFile()
    for wrong in (None, "text", 5, [1, 2], object()):
        with pytest.raises(TypeError, match="bytes-like"):
            file.write(0, wrong)  # type: ignore[arg-type]
    for pieces in (memoryview(b"abcdef")[::2], np.zeros((4, 4), "u1")[:, 0]):
        with pytest.raises(quarrier.BufferLayoutError, match="not contiguous"):
            file.write(0, pieces)
    with pytest.raises(quarrier.BufferLayoutError, match="read-only"):
        file.read_into(0, b"constant")
    for wrong in ("1", 1.0, None):
        with pytest.raises(TypeError):
            file.read(wrong, 1)  # type: ignore[arg-type]
    assert file.num_bytes() == 0


def test_a_buffer_is_released_even_if_the_write_fails() -> None:
    file = SparseFile()
    file.write(0, b"x")
    data = bytearray(b"y")
    with pytest.raises(quarrier.ConflictError):
        file.write(0, data)
    data.extend(b"grows")


def test_integers_of_numpy_and_keywords_are_taken() -> None:
    file = SparseFile()
    file.write(offset=np.uint64(2**63), data=b"abc")
    assert file.read(offset=np.uint64(2**63), length=np.int8(3)) == b"abc"
    assert file.need(offset=0, length=2, greedy=10) == [(0, 10)]
    assert file.has(2**63, True)


@pytest.mark.parametrize("length", [0, 1, 2, 63, 64 << 10, (64 << 10) - 1, 3 << 20])
def test_reads_of_every_size_give_the_bytes(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    file = SparseFile()
    file.write(7, data)
    assert file.read(7, length) == data
    room = bytearray(length)
    assert file.read_into(7, room) == length
    assert room == data


def test_a_range_of_no_bytes_is_held_and_never_needed() -> None:
    file = SparseFile()
    assert file.write(5, b"") == 0
    assert file.has(5, 0) and file.read(5, 0) == b"" and file.need(5, 0) == []
    assert file.num_blocks() == 0


def test_needs_are_merged_by_least_size_or_cost() -> None:
    file = SparseFile(length=1000)
    file.write(100, b"x" * 10)
    assert file.need(95, 20) == [(95, 5), (110, 5)]
    assert file.need(95, 20, 64) == [(95, 64)]
    assert file.need(990, 50) == [(990, 10)]
    near = quarrier.CostModel(latency=0.0, bytes_per_second=1.0)
    far = quarrier.CostModel(latency=1.0, bytes_per_second=1e9)
    assert file.need(95, 20, cost=near) == [(95, 5), (110, 5)]
    assert file.need(95, 20, cost=far) == [(95, 20)]
    assert file.need_many([(110, 5), (95, 10), (96, 2)]) == [(95, 5), (110, 5)]
    assert file.need_many([(110, 5), (95, 10)], cost=far) == [(95, 20)]
    assert file.need_many(iter([]), 7) == []
    with pytest.raises(quarrier.PlanError):
        quarrier.CostModel(latency=-1.0)
    assert quarrier.CostModel() == quarrier.CostModel(alignment=1)


def test_a_known_length_bounds_writes_and_needs() -> None:
    file = SparseFile(length=10)
    with pytest.raises(quarrier.BeyondLengthError) as caught:
        file.write(8, b"abc")
    assert (caught.value.offset, caught.value.length, caught.value.file_length) == (8, 3, 10)
    file.write(0, b"0123456789")
    with pytest.raises(quarrier.BeyondLengthError):
        file.set_length(9)
    file.set_length(12)
    assert file.length == 12


def test_any_range_is_erased_but_pinned_ones() -> None:
    file = SparseFile()
    file.write(0, b"0123456789")
    assert file.erase(3, 4) == 4
    assert file.blocks() == [(0, 3), (7, 3)]
    file.pin(0, 2)
    with pytest.raises(quarrier.PinnedError):
        file.erase(1, 5)
    assert file.evict(0) == 4
    assert file.blocks() == [(0, 2)]
    with pytest.raises(quarrier.PinnedError):
        file.unpin(0, 1)
    file.unpin(0, 2)
    assert file.clear() == 2
    assert file.num_bytes() == 0


def test_eviction_keeps_within_the_budget_though_one_block_is_huge() -> None:
    file = SparseFile()
    file.write(0, bytes(10 << 20))
    assert file.evict(1 << 20) == 9 << 20
    assert file.num_bytes() == 1 << 20


def test_counters_count() -> None:
    file = SparseFile()
    file.write(0, b"abcd")
    file.write(2, b"cdef")
    file.read(0, 6)
    file.erase(0, 1)
    file.evict(3)
    assert file.counters() == {
        "hits": 1,
        "misses": 0,
        "read_bytes": 6,
        "writes": 2,
        "written_bytes": 8,
        "wasted_bytes": 2,
        "erased_bytes": 1,
        "evicted_bytes": 2,
    }
    assert file.memory_bytes() > 0


@pytest.mark.parametrize(
    "again",
    [
        lambda file: pickle.loads(pickle.dumps(file)),
        lambda file: pickle.loads(pickle.dumps(file, protocol=2)),
        lambda file: SparseFile.from_bytes(file.to_bytes()),
        copy.copy,
        copy.deepcopy,
    ],
)
def test_a_file_survives_being_stored_and_copied(again) -> None:
    file = SparseFile("a/b", 12.5, length=10**9, on_conflict="replace", wipe=True, etag="v1")
    file.write(0, b"abc")
    file.write(500_000_000, b"def")
    other = again(file)
    assert (other.id, other.modified, other.etag, other.length, other.on_conflict) == (
        "a/b",
        12.5,
        "v1",
        10**9,
        "replace",
    )
    assert other.blocks() == file.blocks()
    assert other.read(500_000_000, 3) == b"def"
    other.write(0, b"XYZ")
    assert file.read(0, 3) == b"abc", "the copy is another file"


def test_stored_bytes_that_are_damaged_are_refused() -> None:
    file = SparseFile()
    file.write(0, b"abc")
    stored = file.to_bytes()
    for at in range(len(stored)):
        damaged = bytearray(stored)
        damaged[at] ^= 1
        with pytest.raises(quarrier.CorruptError):
            SparseFile.from_bytes(damaged)
    for length in range(len(stored)):
        with pytest.raises(quarrier.CorruptError):
            SparseFile.from_bytes(stored[:length])


def test_errors_can_be_pickled_with_their_parts() -> None:
    file = SparseFile(length=100)
    file.write(0, b"abc")
    file.pin(0, 1)
    store = quarrier.SparseStore()
    calls = [
        lambda: file.write(-1, b""),
        lambda: file.read(0, 5),
        lambda: file.write(0, b"b"),
        lambda: file.write(99, b"ab"),
        lambda: file.erase(0, 1),
        lambda: SparseFile.from_bytes(b""),
        lambda: store["none"],
    ]
    for call in calls:
        with pytest.raises(quarrier.QuarrierError) as caught:
            call()
        error = caught.value
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_long_lists_leave_the_garbage_collector_unchanged() -> None:
    file = SparseFile()
    for offset in range(0, 4000, 2):
        file.write(offset, b"x")
    assert gc.isenabled()
    assert file.need(0, 4000) == [(offset, 1) for offset in range(1, 4000, 2)]
    assert gc.isenabled()
    gc.disable()
    try:
        assert len(file.blocks()) == 2000
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_file_can_be_weakly_referenced_and_is_freed() -> None:
    file = SparseFile()
    reference = weakref.ref(file)
    assert reference() is file
    del file
    assert reference() is None
