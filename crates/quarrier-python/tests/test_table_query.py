"""quarrier.query: one statement over files, tables and data frames."""

from __future__ import annotations

import importlib.util
import os
import pathlib
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import quarrier

ORDERS = b"""{"id":1,"Symbol":"A","qty":10}
{"id":2,"Symbol":"B","qty":20}
{"id":3,"Symbol":"A","qty":30}
"""
FIRMS = {"Symbol": ["A", "B"], "firm": ["Alpha", "Beta"]}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "some orders.ndjson"
    path.write_bytes(ORDERS)
    return path


@pytest.fixture
def no_datafusion(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name == "datafusion" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


def test_a_file_is_a_table_by_its_path_in_quotes(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [{"id": 3}, {"id": 1}]
    sql = "SELECT id FROM '{}' AS o WHERE o.Symbol = 'A' ORDER BY id DESC"
    assert quarrier.query(sql.format(path)).to_pylist() == expected
    monkeypatch.chdir(path.parent)
    assert quarrier.query(sql.format(path.name)).to_pylist() == expected
    with pytest.raises(FileNotFoundError):
        quarrier.query("SELECT * FROM 'none.ndjson'")


def test_tables_are_paths_tables_and_arrow_data(path: pathlib.Path) -> None:
    held = quarrier.Table.from_messages(path)
    shown = pa.table(held)
    for table in (path, os.fspath(path), ORDERS, held, shown, shown.to_batches()[0]):
        found = quarrier.query("SELECT COUNT(*) AS n FROM orders WHERE qty >= 20", orders=table)
        assert isinstance(found, quarrier.Table)
        assert found.to_pylist() == [{"n": 2}]
    assert quarrier.query("SELECT id FROM ORDERS LIMIT 1", orders=path).to_pylist() == [{"id": 1}]
    with pytest.raises(TypeError, match="not 'int'"):
        quarrier.query("SELECT id FROM orders", orders=7)


def test_data_frames_are_tables() -> None:
    for table in (pandas.DataFrame(FIRMS), polars.DataFrame(FIRMS)):
        found = quarrier.query("SELECT firm FROM firms WHERE Symbol = 'B'", firms=table)
        assert found.to_pylist() == [{"firm": "Beta"}]


def test_a_table_that_is_not_there_says_how_to_name_one() -> None:
    with pytest.raises(quarrier.QuarrierError, match=r"no table 'orders'.*FROM 'orders.ndjson'"):
        quarrier.query("SELECT * FROM orders", order=ORDERS)


@pytest.mark.usefixtures("no_datafusion")
def test_what_a_table_does_not_answer_says_what_to_install() -> None:
    for sql in (
        "SELECT Symbol, COUNT(*) FROM o GROUP BY Symbol",
        "SELECT SUM(qty) FROM o",
        "SELECT a.id FROM o AS a JOIN o AS b ON a.id = b.id",
        "SELECT id FROM o WHERE qty = (SELECT MAX(qty) FROM o)",
    ):
        with pytest.raises(quarrier.QuarrierError, match=r"pip install quarrier\[sql\]") as told:
            quarrier.query(sql, o=ORDERS)
        assert isinstance(told.value.__cause__, quarrier.QueryError)


def test_a_column_that_is_not_there_is_told_with_its_place() -> None:
    with pytest.raises(
        quarrier.UnknownColumnError, match="no column 'qyt'; there are: qty"
    ) as told:
        quarrier.query("SELECT id FROM o\nWHERE qyt > 1", o=ORDERS)
    assert (told.value.line, told.value.column) == (2, 7)


def test_everything_else_of_sql_is_answered_by_datafusion(path: pathlib.Path) -> None:
    firms = pa.table(FIRMS)
    grouped = quarrier.query(
        f"SELECT f.firm, SUM(o.qty) AS qty FROM '{path}' AS o JOIN firms AS f "
        "ON o.Symbol = f.Symbol GROUP BY f.firm ORDER BY qty DESC, firm",
        firms=firms,
    )
    assert grouped.to_pylist() == [{"firm": "Alpha", "qty": 40}, {"firm": "Beta", "qty": 20}]
    above = quarrier.query(
        "SELECT id FROM o WHERE qty > (SELECT AVG(qty) FROM o)",
        o=quarrier.Table.from_messages(path),
    )
    assert above.to_pylist() == [{"id": 3}]
    with pytest.raises(quarrier.QueryError, match="DataFusion"):
        quarrier.query("SELECT nothing FROM o GROUP BY nothing", o=ORDERS)
