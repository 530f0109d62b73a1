"""All of SQL, by quarrier-sql: Python gives the same answers as `quarrier query`."""

from __future__ import annotations

import datetime
import decimal
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import quarrier

pytestmark = pytest.mark.sql

REPOSITORY = pathlib.Path(__file__).parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"

ORDERS = b"""{"id":1,"Symbol":"A","qty":10,"price":1.5}
{"id":2,"Symbol":"B","qty":20,"price":2.25}
{"id":3,"Symbol":"A","qty":30,"price":2.5}
{"id":4,"Symbol":null,"qty":null,"price":-3.75}
"""
FIRMS = {"Symbol": ["A", "B"], "firm": ["Alpha", "Beta"]}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "orders.ndjson"
    path.write_bytes(ORDERS)
    return path


@pytest.fixture
def orders() -> quarrier.Table:
    return quarrier.Table.from_messages(ORDERS)


def by_the_program(sql: str, *options: str) -> pa.Table:
    arguments = [str(TARGET / "quarrier-sql"), "--format", "arrow", *options, sql]
    done = subprocess.run(arguments, capture_output=True, check=True)
    return pa.ipc.open_stream(done.stdout).read_all()


def rows(table: pa.Table | quarrier.Table) -> list[tuple[Any, ...]]:
    """All rows in a canonical order, because statements need not fix one."""
    columns = [column.to_pylist() for column in pa.table(table).columns]
    return sorted(zip(*columns, strict=True), key=str)


STATEMENTS = [
    'SELECT "Symbol", count(*), sum(qty) FROM m GROUP BY "Symbol"',
    "SELECT count(*) FROM m",
    "SELECT Count(*) FROM m WHERE qty > 10",
    "SELECT * FROM m ORDER BY price DESC",
    "SELECT id, qty * 2, price * price, price / 3, qty / 3, qty / 7.0, -price FROM m",
    "SELECT id FROM m WHERE qty / 3.0 > 3.3333",
    "SELECT id FROM m WHERE price / 3 = 0.75",
    'SELECT avg(qty), avg(price), sum(price), min("Symbol") FROM m',
    "SELECT DISTINCT Symbol FROM m",
    "SELECT a.id, b.id AS other FROM m AS a JOIN m AS b ON a.qty < b.qty",
    "SELECT id, rank() OVER (ORDER BY qty DESC) FROM m",
    "SELECT id FROM m WHERE qty = (SELECT max(qty) FROM m)",
    "SELECT id, id FROM m EXCEPT ALL SELECT 1, 1",
    "WITH t AS (SELECT qty + 1 AS q FROM m) SELECT q, q IS NULL FROM t",
    "SELECT upper(Symbol) || '!', coalesce(qty, 0) FROM m WHERE Symbol LIKE 'a!_b' ESCAPE '!'",
    "SELECT CASE WHEN qty > 15 THEN 'much' END FROM m LIMIT 3",
    "VALUES (1, 'x'), (2, NULL)",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_python_has_the_answers_of_the_program(
    sql: str, path: pathlib.Path, orders: quarrier.Table
) -> None:
    expected = by_the_program(sql, "--table", f"m={path}")
    for found in (orders.query(sql), quarrier.query(sql, m=path), quarrier.query(sql, m=orders)):
        assert rows(found) == rows(expected)
        assert list(found.schema) == expected.column_names
        assert len(found) == expected.num_rows


def test_the_example_of_the_manual(orders: quarrier.Table) -> None:
    found = orders.query("SELECT Symbol, count(*), sum(qty) FROM m GROUP BY Symbol ORDER BY Symbol")
    assert found.to_pylist() == [
        {"Symbol": "A", "count(*)": 2, "sum(qty)": 40},
        {"Symbol": "B", "count(*)": 1, "sum(qty)": 20},
        {"Symbol": None, "count(*)": 1, "sum(qty)": None},
    ]
    assert found.schema == {"Symbol": "VARCHAR", "count(*)": "BIGINT", "sum(qty)": "BIGINT"}
    # An answer is also a table.
    assert found.query('SELECT sum("sum(qty)") AS s FROM m').to_pylist() == [{"s": 60}]
    assert orders.query("SELECT max(id) AS x FROM o", name="o").to_pylist() == [{"x": 4}]


def test_columns_with_the_same_name_are_distinct(orders: quarrier.Table) -> None:
    found = orders.query("SELECT a.id, b.id FROM m a JOIN m b ON a.id + 3 = b.id")
    assert found.to_pylist() == [{"id": 1, "id (2)": 4}]


def test_files_tables_and_frames_are_joined(path: pathlib.Path) -> None:
    firms = pa.table(FIRMS)
    grouped = quarrier.query(
        f"SELECT f.firm, SUM(o.qty) AS qty FROM '{path}' AS o JOIN firms AS f "
        "ON o.Symbol = f.Symbol GROUP BY f.firm ORDER BY qty DESC, firm",
        firms=firms,
    )
    assert grouped.to_pylist() == [{"firm": "Alpha", "qty": 40}, {"firm": "Beta", "qty": 20}]
    tables = {"o": quarrier.Table.from_messages(path), "never loaded": 7}
    above = quarrier.query("SELECT id FROM o WHERE qty > (SELECT AVG(qty) FROM o)", **tables)
    assert above.to_pylist() == [{"id": 3}]


def test_a_glob_has_a_column_for_the_name_of_the_file(path: pathlib.Path) -> None:
    (path.parent / "orders2.ndjson").write_bytes(b'{"id":5,"Symbol":"A","qty":5}\n')
    glob = path.parent / "orders*.ndjson"
    sql = f"SELECT filename, count(*) AS n FROM '{glob}' GROUP BY filename ORDER BY n"
    expected = [
        {"filename": str(path.parent / "orders2.ndjson"), "n": 1},
        {"filename": str(path), "n": 4},
    ]
    assert quarrier.query(sql).to_pylist() == expected


def test_parquet_is_read_by_its_columns(path: pathlib.Path) -> None:
    held = pa.table({"a": list(range(1_000)), "b": [[1]] * 1_000})
    parquet.write_table(held, path)
    found = quarrier.query(f"SELECT sum(a) AS s FROM '{path}' WHERE a < 10")
    assert found.to_pylist() == [{"s": 45}]


def test_findings_in_images_are_tables(tmp_path: pathlib.Path) -> None:
    image = tmp_path / "disk.img"
    gif = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
    image.write_bytes(bytes(4096) + gif + bytes(4096) + b"word")
    for sql in (
        f"SELECT * FROM search('{image}', 'w = word')",
        f"SELECT * FROM carve('{image}')",
        f"SELECT type, count(*) FROM carve('{image}') GROUP BY type",
    ):
        found, expected = quarrier.query(sql), by_the_program(sql)
        assert list(found.schema) == expected.column_names
        assert rows(found) == rows(expected)
        assert len(found) == 1
    (carved,) = quarrier.query(f"SELECT * FROM carve('{image}')").to_pylist()
    assert carved["extents"] == [[4096, len(gif)]]
    # No row, so nothing is measured.
    sql = "SELECT * FROM gauge('memory') LIMIT 0"
    assert list(quarrier.query(sql).schema) == by_the_program(sql).column_names


def test_rows_that_packed_columns_cannot_hold_are_answered() -> None:
    table = quarrier.Table.from_messages(ORDERS)
    found = table.query(
        "SELECT array_agg(id ORDER BY id) AS ids, CAST('x' AS BYTEA) AS b, TIME '10:00:01.5' AS t, "
        "INTERVAL '1' DAY AS d, array_agg(Symbol ORDER BY id) AS s, NULL AS n FROM m"
    )
    assert found.to_pylist() == [
        {
            "ids": [1, 2, 3, 4],
            "b": b"x",
            "t": datetime.time(10, 0, 1, 500_000),
            "d": datetime.timedelta(days=1),
            "s": ["A", "B", "A", None],
            "n": None,
        }
    ]
    assert found.schema["ids"] == "BIGINT ARRAY"
    assert found.schema["b"] == "VARBINARY"
    assert pa.table(found).column("ids").to_pylist() == [[1, 2, 3, 4]]
    assert pa.schema(found).names == ["ids", "b", "t", "d", "s", "n"]
    assert (len(found), found.nbytes > 0, found.rounded) == (1, True, {})
    assert repr(found) == "<quarrier.Table: 1 rows, 6 columns>"
    again = found.query("SELECT t FROM m")
    assert again.to_pylist() == [{"t": datetime.time(10, 0, 1, 500_000)}]
    months = table.query("SELECT INTERVAL '1' MONTH AS m FROM m LIMIT 1")
    with pytest.raises(quarrier.ArrowColumnError, match="months"):
        months.to_pylist()


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
        ("w SIMILAR TO 'a.b'", []),
        ("w SIMILAR TO 'a_b'", [1, 2, 3]),
        ("w LIKE p ESCAPE '!'", [1, 2, 3]),
        ("w LIKE LOWER(p)", [1, 2, 3]),
        ("(n, n) = (1, NULL)", []),
        ("(w, n) IS NULL", []),
        ("n BETWEEN SYMMETRIC 3 AND 1", [1, 2, 3]),
        ("CAST('a' AS CHAR(3)) = 'a  ' AND n = 1", [1]),
        ("n = 1 OR n NOT IN (SELECT n FROM t)", [1]),
        ("EXTRACT(SECOND FROM TIMESTAMP '2024-01-01 00:00:01.5') = 1.5 AND n = 2", [2]),
    ],
)
def test_conditions_have_the_meaning_of_sql_92(condition: str, expected: list[int]) -> None:
    found = quarrier.query(
        f"SELECT DISTINCT n FROM t WHERE {condition} ORDER BY n", t=pa.table(WORDS)
    )
    assert [row["n"] for row in found.to_pylist()] == expected


def test_types_are_checked_over_several_tables(orders: quarrier.Table) -> None:
    with pytest.raises(quarrier.QueryError, match="cannot be compared"):
        quarrier.query("SELECT 1 FROM a JOIN b ON a.Symbol = b.qty", a=orders, b=orders)


def test_many_statements_of_any_kind_are_answered_together(orders: quarrier.Table) -> None:
    found = orders.query_many(
        [
            "SELECT count(*) AS n FROM m WHERE qty > 10",
            "SELECT sum(qty) AS n FROM m WHERE qty > 10",
            "SELECT max(price) AS n FROM m",
        ],
        workers=2,
    )
    assert [table.to_pylist() for table in found] == [
        [{"n": 2}],
        [{"n": 50}],
        [{"n": decimal.Decimal("2.50")}],
    ]
    with pytest.raises(quarrier.UnknownColumnError):
        orders.query_many(["SELECT sum(qty) FROM m", "SELECT sum(nothing) FROM m"])


def test_each_failed_statement_has_its_exception(
    orders: quarrier.Table, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(quarrier.UnknownColumnError, match="no column 'nothing'"):
        orders.query("SELECT nothing FROM m GROUP BY nothing")
    with pytest.raises(quarrier.QueryError, match="expected") as wrong:
        orders.query("SELECT sum(qty) FROM m\nGROUP qty")
    assert (wrong.value.line, wrong.value.column) == (2, 1)
    with pytest.raises(quarrier.RowError, match="division by zero") as failed:
        orders.query("SELECT sum(1 / (qty - 30)) FROM m")
    assert failed.value.row is None
    with pytest.raises(quarrier.RowError) as failed:
        orders.query("SELECT 1 / (qty - 30) AS x FROM m")
    assert failed.value.row == 2
    with pytest.raises(quarrier.RowError, match="a 64-bit integer out of range"):
        orders.query("SELECT sum(qty * 9000000000000000000) FROM m")
    with pytest.raises(FileNotFoundError):
        quarrier.query("SELECT count(*) FROM 'none.ndjson' UNION ALL SELECT 1")
    with pytest.raises(quarrier.QueryError, match=r"no table 'x'.*query\(sql, NAME=…\)"):
        quarrier.query("SELECT sum(qty) FROM x", m=orders)
    target = tmp_path / "copy.csv"
    with pytest.raises(quarrier.QueryError, match="COPY"):
        orders.query(f"COPY (SELECT * FROM m) TO '{target}'")
    assert not target.exists()
    with pytest.raises(quarrier.QueryError, match="2 statements"):
        orders.query("SELECT sum(qty) FROM m; SELECT sum(qty) FROM m")


def test_rejected_messages_of_a_file_are_listed(path: pathlib.Path) -> None:
    path.write_bytes(ORDERS + b"{broken\n")
    found = quarrier.query(f"SELECT sum(qty) AS s FROM '{path}'")
    assert (found.to_pylist(), found.rejected) == ([{"s": 60}], 1)
    (reject,) = found.rejects
    assert (reject["line"], reject["bytes"]) == (5, b"{broken")


ENDLESS = """
import quarrier
table = quarrier.Table.from_messages(b'{"a":1}\\n' * 3000)
try:
    print("ready", flush=True)
    table.query("SELECT count(*) FROM m a, m b, m c, m d WHERE a.a + b.a + c.a + d.a < 0")
except KeyboardInterrupt:
    print("interrupted")
else:
    print("ended by itself")
"""


def test_a_query_ends_soon_after_ctrl_c() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        seconds = time.monotonic() - start
    assert (said, process.returncode) == ("interrupted\n", 0)
    assert seconds < 20


def test_other_threads_run_while_a_query_does() -> None:
    table = quarrier.Table.from_messages(b'{"a":1}\n' * 2_000)
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    found = table.query("SELECT count(*) AS n FROM m a JOIN m b ON a.a <= b.a")
    ran = counted - before
    done.set()
    thread.join()
    assert found.to_pylist() == [{"n": 4_000_000}]
    assert ran > 10


def test_no_thread_is_left_over(orders: quarrier.Table) -> None:
    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    before = threads()
    orders.query("SELECT sum(qty) FROM m GROUP BY Symbol")
    assert threads() <= before
