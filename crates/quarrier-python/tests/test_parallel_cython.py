"""Kernels that Cython compiled."""

from __future__ import annotations

import importlib
import pathlib
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from quarrier import parallel

SOURCE = """
# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
cpdef squares(long long[::1] out, long long start):
    cdef Py_ssize_t index
    with nogil:
        for index in range(out.shape[0]):
            out[index] = (start + index) * (start + index)


def spread(double[:, ::1] out, const double[:, :] block):
    cdef Py_ssize_t row, column
    with nogil:
        for row in range(out.shape[0]):
            for column in range(out.shape[1]):
                out[row, column] = (block[row, column + 1] + block[row + 2, column + 1]
                                    + block[row + 1, column] + block[row + 1, column + 2])


def picky(long long[::1] out, const long long[::1] values):
    cdef Py_ssize_t index
    for index in range(out.shape[0]):
        if values[index] == 700:
            raise LookupError("700 is here")
        out[index] = values[index]
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: pathlib.Path = tmp_path_factory.mktemp("cython")
    source, code = folder / "cython_kernels.pyx", folder / "cython_kernels.c"
    source.write_text(SOURCE)
    subprocess.run([sys.executable, "-m", "cython", "-o", code, source], check=True)
    library = folder / f"cython_kernels{sysconfig.get_config_var('EXT_SUFFIX')}"
    headers = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", headers, code, "-o", library], check=True)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("cython_kernels")
    sys.path.remove(str(folder))
    del sys.modules["cython_kernels"]


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_kernel_of_cython_fills_an_array(kernels: Any, mode: Any) -> None:
    found = parallel.init(100_000, "i8", kernels.squares, workers=2, mode=mode)
    assert (found == np.arange(100_000) ** 2).all()


def test_workers_of_a_pool_import_the_kernel(kernels: Any) -> None:
    with parallel.pool(2):
        for count in (1000, 30_000):
            found = parallel.init(count, "i8", kernels.squares, chunk=500)
            assert (found == np.arange(count) ** 2).all()


def test_a_stencil_of_cython_reads_blocks_that_are_read_only(kernels: Any) -> None:
    image = np.random.default_rng(3).random((70, 90))
    around = np.pad(image, 1, mode="edge")
    wanted = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
    found = parallel.stencil(
        kernels.spread, np.ascontiguousarray(image), 1, mode="nearest", tile=(70, 90), workers=2
    )
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_an_exception_of_a_cython_kernel_names_its_range(kernels: Any, mode: Any) -> None:
    values = np.arange(1000)
    with pytest.raises(LookupError, match="700 is here") as caught:
        parallel.map(kernels.picky, values, chunk=100, workers=2, mode=mode)
    assert caught.value.quarrier_range == (700, 800)  # type: ignore[attr-defined]


def test_a_slice_of_another_type_is_refused(kernels: Any) -> None:
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        parallel.init(1000, "f8", kernels.squares, workers=2)
