"""Shared arrays: ordinary arrays that are passed on by handle."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from parallel_faults import descriptors, nothing_left

import quarrier
from quarrier import parallel


@pytest.fixture(autouse=True)
def _warmed() -> None:
    parallel.empty(4 << 20, "u1")
    parallel.init(1, "u1", lambda out, start: None)


def test_a_new_array_is_zero_writable_and_gone_with_its_last_view() -> None:
    with nothing_left():
        array = parallel.empty((3, 4), "f8")
        part = array[1:]
        assert (array == 0).all()
        array += 1
        del array
        assert part.sum() == 8
        del part


def test_slices_are_shared_and_results_are_not() -> None:
    array = parallel.empty(10, "i4")
    assert type(array[2:5]) is parallel.SharedArray
    for plain in (array + 1, array.copy(), copy.copy(array), copy.deepcopy(array), array[[1, 2]]):
        assert type(plain) is np.ndarray
    assert isinstance(array.sum(), np.int32 | np.int64)


def test_unpickled_in_the_same_process_it_is_the_same_memory() -> None:
    array = parallel.empty((4, 5), "i4")
    for part in (array, array[1:], array[::2, ::-1], array.T):
        again = pickle.loads(pickle.dumps(part))
        part[...] = np.arange(part.size).reshape(part.shape)
        assert np.shares_memory(again, part)
        assert (again == part).all()
    assert len(pickle.dumps(parallel.empty(1 << 20, "u1"))) < 1000


def test_results_computed_from_it_are_pickled_by_value() -> None:
    array = parallel.empty(10, "i4")
    again = pickle.loads(pickle.dumps(array + 1))
    assert (again == 1).all()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_writes_to_it(method: Any) -> None:
    array = parallel.empty(10, "i4")
    process = multiprocessing.get_context(method).Process(target=np.copyto, args=(array[5:], 7))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert array.tolist() == [0] * 5 + [7] * 5


READER = """
import pickle, sys
array = pickle.loads(bytes.fromhex(sys.stdin.readline()))
print(array.sum(), flush=True)
array[0] = 5
"""


def test_another_process_maps_it_and_keeps_it() -> None:
    array = parallel.empty(1 << 20, "u1")
    array[:] = 1
    handle = pickle.dumps(array).hex()
    done = subprocess.run(
        [sys.executable, "-c", READER], input=handle, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{1 << 20}\n"
    assert array[0] == 5


OWNER = """
import pickle
from quarrier import parallel
array = parallel.empty(100, "u1")
print(pickle.dumps(array).hex(), flush=True)
input()
"""


def test_a_handle_whose_owner_is_gone_is_a_clear_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        handle = bytes.fromhex(owner.stdout.readline())
        living = pickle.loads(handle)
        owner.kill()
    assert living.sum() == 0
    del living
    with pytest.raises(quarrier.RegionGoneError, match=f"process {owner.pid}") as caught:
        pickle.loads(handle)
    assert caught.value.pid == owner.pid


def test_a_handle_of_an_array_that_its_owner_dropped_is_a_clear_error() -> None:
    array = parallel.empty(100, "u1")
    handle = pickle.dumps(array)
    del array
    other = os.open("/dev/null", os.O_RDONLY)
    try:
        with pytest.raises(quarrier.RegionGoneError, match="dropped it"):
            pickle.loads(handle)
    finally:
        os.close(other)


def test_a_worker_returns_a_shared_array() -> None:
    def kernel(part: Any, offset: int) -> Any:
        array = parallel.empty(1000, "u1")
        array[:] = offset
        return array

    with nothing_left():
        found = parallel.scan(b"abc", kernel, 1, workers=2)
        assert [int(array[-1]) for array in found] == [0, 1, 2]
        del found


def test_a_kernel_writes_to_shared_arrays_that_it_captures() -> None:
    counts = parallel.empty(4, "i8")

    def kernel(out: Any, start: int) -> None:
        counts[start] = os.getpid()

    parallel.init(4, "u1", kernel, workers=2, chunk=1)
    assert (counts > 0).all()
    counts[:] = 0
    with parallel.pool(workers=2):
        parallel.init(4, "u1", kernel, chunk=1)
    assert (counts > 0).all()


def test_arrays_made_and_dropped_leave_no_descriptor() -> None:
    before = descriptors()
    for _ in range(300):
        parallel.empty(5000, "u1")
    assert descriptors() == before
