"""`reduce`, and arrays passed by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quarrier
from quarrier import parallel

MODES = pytest.mark.parametrize("mode", ["process", "thread"])


@MODES
@settings(max_examples=10)
@given(
    length=st.integers(0, 300),
    chunk=st.none() | st.integers(1, 320),
    halo=st.integers(0, 5),
    workers=st.integers(1, 3),
)
def test_reduce_combines_in_order_of_the_indices(
    mode: Any, length: int, chunk: int | None, halo: int, workers: int
) -> None:
    values = np.arange(length)
    options: Any = {"workers": workers, "chunk": chunk, "mode": mode}
    found = parallel.reduce(lambda x, y: list(zip(x, y)), list.__add__, values, -values, **options)  # noqa: B905
    assert found == (list(zip(values, -values, strict=True)) or None)

    def sum_of_own(lead: int, part: Any) -> int:
        """The sum without the neighbours."""
        return int(part[lead : lead + chunk].sum())

    if halo and length and chunk:
        found = parallel.reduce(sum_of_own, int.__add__, values, halo=halo, **options)
        assert found == values.sum()


@MODES
def test_reduce_fails_as_map_does(mode: Any) -> None:
    def fail(values: Any) -> int:
        if 55 in values:
            raise OverflowError("55")
        return 0

    with pytest.raises(OverflowError) as raised:
        parallel.reduce(fail, int.__add__, np.arange(100), chunk=10, workers=2, mode=mode)
    assert raised.value.quarrier_range == (50, 60)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="reduce takes at least one array"):
        parallel.reduce(fail, int.__add__)
    with pytest.raises(ValueError, match="differ in length: 2, 3"):
        parallel.reduce(fail, int.__add__, b"ab", b"abc")
    with pytest.raises(ValueError, match="masked values"):
        parallel.reduce(fail, int.__add__, np.ma.array([1], mask=[True]))


def double(out: Any, values: Any) -> None:
    out[:] = 2 * values


class Tensor:
    """An array that exports only DLPack, like those of other libraries."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@MODES
def test_arrays_go_in_and_out_by_dlpack_without_a_copy(mode: Any) -> None:
    values = parallel.empty((100, 3), "f4")
    values[:] = np.arange(300).reshape(100, 3)
    options: Any = {"workers": 2, "mode": mode}
    found = parallel.map(double, Tensor(values), **options)
    assert (found == 2 * values).all()
    assert parallel.reduce(lambda part: float(part.sum()), float.__add__, Tensor(values)) == 44_850
    again = np.from_dlpack(found)
    assert np.shares_memory(again, found)
    blurred = parallel.stencil(double, Tensor(values), 0, worker_mode=mode, workers=2)
    assert (blurred == 2 * values).all()
    for target in [np.zeros((100, 3), "f4"), parallel.empty((100, 3), "f4")]:
        tensor = Tensor(target)
        assert parallel.map(double, values, out=tensor, **options) is tensor
        assert (target == 2 * values).all()
        # It overlaps the array, and neighbours are seen.
        target[:] = values
        other = Tensor(target)
        parallel.map(
            lambda out, lead, rows: double(out, rows[lead : lead + len(out)]),
            target,
            out=other,
            halo=1,
            **options,
        )
        assert (target == 2 * values).all()
    with pytest.raises(quarrier.BufferLayoutError, match="writable"):
        frozen = np.zeros((100, 3), "f4")
        frozen.flags.writeable = False
        parallel.map(double, values, out=Tensor(frozen), **options)
    arrow = pyarrow.array([1.5, 2.5])
    assert parallel.map(double, Tensor(arrow), **options).tolist() == [3, 5]
