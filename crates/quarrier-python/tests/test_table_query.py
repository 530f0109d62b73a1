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


WORDS = {"w": ["a\\b", "a_b", "axb", None], "p": ["a\\b", "a_b", "a%", "a"], "n": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (r"w LIKE 'a\b'", [1]),
        (r"w LIKE '%\%'", [1]),
        ("w LIKE 'a!_b' ESCAPE '!'", [2]),
        ("'ü' = 'ü' AND -- a comment\n w LIKE 'a!_b'\n ESCAPE '!' AND n < 9", [2]),
        (r"w NOT LIKE 'a\_b' ESCAPE '\'", [1, 3]),
        ("w LIKE 'a_b'", [1, 2, 3]),
        ("w LIKE p", [1, 2, 3]),
        ('t.w LIKE t."p"', [1, 2, 3]),
        ("0.1 + 0.2 = 0.3 AND w LIKE 'axb'", [3]),
        ("n NOT IN (SELECT n FROM t WHERE n > 2)", [1, 2]),
    ],
)
def test_datafusion_answers_what_sql_92_means(condition: str, expected: list[int]) -> None:
    found = quarrier.query(f"SELECT DISTINCT n FROM t WHERE {condition} ORDER BY n", t=_words())
    assert [row["n"] for row in found.to_pylist()] == expected


def _words() -> pa.Table:
    return pa.table(WORDS)


@pytest.mark.parametrize(
    "condition",
    [
        "w SIMILAR TO 'a.b'",
        "w LIKE p ESCAPE '!'",
        "w LIKE UPPER(p)",
        "(n, n) = (1, NULL)",
        "(w, n) IS NULL",
        "n BETWEEN SYMMETRIC 3 AND 1",
        "CAST(w AS CHAR(3)) = 'a'",
        "n = 1 OR n NOT IN (SELECT n FROM t)",
        "EXTRACT(SECOND FROM CURRENT_TIMESTAMP) = 1",
    ],
)
def test_what_datafusion_would_answer_otherwise_is_refused(condition: str) -> None:
    sql = f"SELECT DISTINCT n FROM t WHERE {condition}"
    with pytest.raises(quarrier.UnansweredError, match="`quarrier query` answers it"):
        quarrier.query(sql, t=_words())


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT n FROM t WHERE w < 9", "do not compare|compare"),
        ("SELECT n FROM t WHERE", "expected an expression"),
        ("SELECT n FROM t WHERE (n", "expected"),
        ("SELECT n FROM t WHERE NOSUCH(n) = 1", "no function NOSUCH"),
        ("SELECT DISTINCT n FROM t WHERE", "expected|Expected"),
    ],
)
def test_what_is_wrong_is_not_handed_to_datafusion(sql: str, told: str) -> None:
    with pytest.raises(quarrier.QueryError, match=told) as error:
        quarrier.query(sql, t=_words())
    assert not isinstance(error.value, quarrier.UnansweredError)
    assert "DataFusion" not in str(error.value)


def test_a_glob_is_one_table_of_all_its_files(path: pathlib.Path) -> None:
    (path.parent / "some more.ndjson").write_bytes(b'{"id":4,"Symbol":"A","qty":5}\n')
    glob = path.parent / "some *.ndjson"
    assert len(quarrier.Table.from_messages(glob, workers="auto")) == 4
    found = quarrier.query(f"SELECT id FROM '{glob}' WHERE qty < 15 ORDER BY id")
    assert found.to_pylist() == [{"id": 1}, {"id": 4}]
    grouped = quarrier.query(f"SELECT SUM(qty) AS qty FROM '{glob}'")
    assert grouped.to_pylist() == [{"qty": 65}]
