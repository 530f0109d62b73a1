"""quarrier.query: one statement over files, tables and data frames."""

from __future__ import annotations

import os
import pathlib

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


def test_an_unknown_table_is_an_error_that_explains_names() -> None:
    with pytest.raises(quarrier.QuarrierError, match=r"no table 'orders'.*FROM 'orders.ndjson'"):
        quarrier.query("SELECT * FROM orders", order=ORDERS)


@pytest.mark.light
def test_a_statement_beyond_a_scan_names_the_package_to_install() -> None:
    for sql in (
        "SELECT Symbol, COUNT(*) FROM o GROUP BY Symbol",
        "SELECT SUM(qty) FROM o",
        "SELECT a.id FROM o AS a JOIN o AS b ON a.id = b.id",
        "SELECT id FROM o WHERE qty = (SELECT MAX(qty) FROM o)",
    ):
        with pytest.raises(
            quarrier.NotInstalledError, match=r"pip install 'quarrier\[sql\]'"
        ) as told:
            quarrier.query(sql, o=ORDERS)
        assert isinstance(told.value, quarrier.UnansweredError)
        assert isinstance(told.value, ImportError)
    table = quarrier.Table.from_messages(ORDERS)
    with pytest.raises(quarrier.NotInstalledError):
        table.query("SELECT MAX(id) FROM m")
    with pytest.raises(quarrier.NotInstalledError):
        table.query_many(["SELECT id FROM m", "SELECT MAX(id) FROM m"])


def test_an_unknown_column_is_an_error_with_its_position() -> None:
    with pytest.raises(
        quarrier.UnknownColumnError, match="no column 'qyt'; there are: qty"
    ) as told:
        quarrier.query("SELECT id FROM o\nWHERE qyt > 1", o=ORDERS)
    assert (told.value.line, told.value.column) == (2, 7)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT n FROM t WHERE w < 9", "cannot be compared"),
        ("SELECT n FROM t WHERE", "expected an expression"),
        ("SELECT n FROM t WHERE (n", "expected"),
        ("SELECT n FROM t WHERE NOSUCH(n) = 1", "no function NOSUCH"),
    ],
)
def test_invalid_statements_are_errors_with_reasons(sql: str, told: str) -> None:
    with pytest.raises(quarrier.QueryError, match=told) as error:
        quarrier.query(sql, t=pa.table({"w": ["a"], "n": [1]}))
    assert not isinstance(error.value, quarrier.UnansweredError)


def test_outputs_are_named_as_written() -> None:
    table = quarrier.Table.from_messages(ORDERS)
    assert table.query("SELECT Count(*) FROM m").to_pylist() == [{"Count(*)": 3}]
    found = table.query("SELECT id, qty + 1, qty AS q FROM m LIMIT 1")
    assert list(found.schema) == ["id", "qty + 1", "q"]


@pytest.mark.light
def test_a_glob_is_one_table_of_all_its_files(path: pathlib.Path) -> None:
    (path.parent / "some more.ndjson").write_bytes(b'{"id":4,"Symbol":"A","qty":5}\n')
    glob = path.parent / "some *.ndjson"
    assert len(quarrier.Table.from_messages(glob, workers="auto")) == 4
    found = quarrier.query(f"SELECT id FROM '{glob}' WHERE qty < 15 ORDER BY id")
    assert found.to_pylist() == [{"id": 1}, {"id": 4}]
