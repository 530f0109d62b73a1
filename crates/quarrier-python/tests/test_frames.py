"""Tables and findings as data frames, in notebooks, and by iteration."""

from __future__ import annotations

import datetime
import decimal
import pathlib
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import quarrier

LINES = (
    b'{"side":"B","price":1.25,"qty":1152921504606846977}\n{"side":"<b>\\u202e","price":2.50}\n'
    b'{"side":"S","price":0.75,"qty":3}\n'
)


@pytest.fixture
def table() -> quarrier.Table:
    return quarrier.Table.from_messages(LINES)


def test_a_table_is_a_data_frame_in_one_call(table: quarrier.Table) -> None:
    assert table.columns == ["side", "price", "qty"]
    frame = table.to_pandas()
    assert (frame["price"] * 2).tolist() == [2.5, 5.0, 1.5]
    assert frame["price"].quantile(0.5) == 1.25
    # Integers stay exact although one value is missing.
    assert frame["qty"].tolist() == [1152921504606846977, pd.NA, 3]
    assert table.to_pandas(exact=True)["price"][0] == decimal.Decimal("1.25")
    assert table.to_polars()["price"].dtype == pl.Float64
    assert table.to_polars(exact=True)["price"].sum() == decimal.Decimal("4.50")
    assert table.to_arrow().column("qty").to_pylist() == [1152921504606846977, None, 3]


def test_rows_are_indexed_sliced_and_iterated(table: quarrier.Table) -> None:
    rows = table.to_pylist()
    assert list(table) == rows
    assert [table[0], table[-1]] == [rows[0], rows[2]]
    assert table[1:].to_pylist() == rows[1:]
    assert table[:-2].to_pylist() == rows[:1]
    assert len(table[5:]) == 0
    for wrong in (3, -4):
        with pytest.raises(IndexError, match=f"row {wrong} of 3"):
            table[wrong]
    with pytest.raises(ValueError, match="cannot have a step"):
        table[::2]
    with pytest.raises(TypeError):
        table["side"]  # type: ignore[call-overload]
    large = quarrier.Table.from_arrow(pa.table({"a": range(10_000)}))
    assert [row["a"] for row in large] == list(range(10_000))
    assert [row["a"] for row in large[4_000:9_000]] == list(range(4_000, 9_000))


def test_a_table_is_pickled_with_its_rows(table: quarrier.Table) -> None:
    again = pickle.loads(pickle.dumps(table))
    assert again.to_pylist() == table.to_pylist()
    assert again.schema == table.schema


def test_a_notebook_shows_rows_and_never_their_markup(table: quarrier.Table) -> None:
    shown = table._repr_html_()
    assert "<th>side</th>" in shown
    assert "&lt;b&gt;\\u202e" in shown
    assert "<b>" not in shown
    assert "3 rows" in shown
    many = quarrier.Table.from_arrow(pa.table({"a": range(5_000)}))
    assert "5,000 rows (10 shown)" in many._repr_html_()


def test_findings_are_sliced_and_framed() -> None:
    found = quarrier.search(b"a<b>a<b>a", ["a", "<b>"])
    assert found[1:3] == list(found)[1:3]
    assert found[::-1] == list(found)[::-1]
    assert found.to_pandas()["offset"].tolist() == [0, 1, 4, 5, 8]
    assert found.to_polars()["length"].to_list() == [1, 3, 1, 3, 1]
    assert found.to_arrow().num_rows == 5
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_compiled_expressions_are_patterns() -> None:
    data = b"key=1\nKEY=2\n"
    for given in (re.compile(rb"^key=\d", re.I | re.M), re.compile("key=[0-9]", re.IGNORECASE)):
        for patterns in (given, [given], {"k": given}):
            assert [found.match for found in quarrier.search(data, patterns)] == [
                b"key=1",
                b"KEY=2",
            ]
        assert len(quarrier.search(data, quarrier.regex(given))) == 2
    with pytest.raises(quarrier.PatternError):
        quarrier.search(data, re.compile(rb"(.)\1"))


@pytest.mark.parametrize(
    ("where", "params", "expected"),
    [
        ("side = ?", ["B"], 1),
        ("side = ?", ["x' OR 'y' = 'y"], 0),
        ("side = $1 OR price > $2 OR side = $1", ["S", 2], 2),
        ("price = ?", [decimal.Decimal("1.25")], 1),
        ("price = ?", [1.25], 1),
        ("qty = ?", [1152921504606846977], 1),
        ("qty = ?", [np.int64(3)], 1),
        ("qty = ?", [None], 0),
        ("price - ? > 5", [-4], 2),
    ],
)
def test_parameters_are_only_values(
    table: quarrier.Table, where: str, params: list[object], expected: int
) -> None:
    sql = f"SELECT side FROM m WHERE {where}"
    assert len(table.query(sql, params=params)) == expected
    assert len(quarrier.query(sql, params=params, m=table)) == expected


def test_dates_and_times_are_parameters() -> None:
    noon = datetime.datetime(2026, 1, 1, 12, 0, 0, 250_000)
    times = quarrier.Table.from_arrow(pa.table({"d": [noon.date()], "t": [noon]}))
    in_zone = noon.replace(tzinfo=datetime.UTC).astimezone(
        datetime.timezone(datetime.timedelta(hours=2))
    )
    for params in ([noon.date(), noon], [noon.date(), in_zone]):
        assert len(times.query("SELECT d FROM m WHERE d = ? AND t = ?", params=params)) == 1


def test_parameters_that_do_not_fit_are_refused(table: quarrier.Table) -> None:
    for params in ([], ["B", "S"]):
        with pytest.raises(quarrier.QuarrierError, match="parameter"):
            table.query("SELECT side FROM m WHERE side = ?", params=params)
    for wrong in ("B", [object()], [b"B"], {"side": "B"}):
        with pytest.raises(TypeError):
            table.query("SELECT side FROM m WHERE side = ?", params=wrong)  # type: ignore[arg-type]


def test_a_missing_package_is_named(
    table: quarrier.Table, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("quarrier._frames.importlib.import_module", absent)
    with pytest.raises(ImportError, match="pip install polars"):
        table.to_polars()
