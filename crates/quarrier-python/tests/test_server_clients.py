"""`quarrier serve` with third-party clients: psycopg, asyncpg."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import os
import pathlib
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"

ROWS = 5_000
LINES = "".join(
    f'{{"id":{number},"symbol":"S{number % 3}","price":{number % 100}.25,"open":'
    f"{'true' if number % 2 else 'false'},"
    f'"ts":"2024-01-{1 + number % 28:02}T00:00:{number % 60:02}Z"'
    + (f',"note":"n {number}"' if number % 5 else "")
    + "}\n"
    for number in range(ROWS)
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    binary = TARGET / "quarrier-sql"
    if not binary.exists():
        pytest.skip(f"there is no {binary}")
    folder = tmp_path_factory.mktemp("served")
    (folder / "orders.ndjson").write_text(LINES)
    command = [str(binary), "serve", "--table", "orders=orders.ndjson"]
    command += ["--listen", "127.0.0.1:0", "--http", "off"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line.startswith("ready: postgres://"), line
    host, port = line.split("://")[1].split()[0].rsplit(":", 1)
    yield host, int(port)
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    server.stdout.close()


@pytest.fixture
def db(address: tuple[str, int]) -> Iterator[psycopg.Connection[Any]]:
    host, port = address
    with psycopg.connect(host=host, port=port, user="ann", dbname="quarrier") as connection:
        yield connection


FIRST = (7, "S1", decimal.Decimal("7.25"), True)


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_binds_values_and_reads_rows(db: psycopg.Connection[Any], binary: bool) -> None:
    sql = "SELECT id, symbol, price, open FROM orders WHERE id = %s AND symbol = %s AND open = %s"
    with db.cursor(binary=binary) as cursor:
        for _ in range(8):  # prepared from the sixth time on
            assert cursor.execute(sql, (7, "S1", True)).fetchall() == [FIRST]
        cursor.execute("SELECT ts FROM orders WHERE id = 1")
        row = cursor.fetchone()
        assert row is not None
        assert row[0].replace(tzinfo=None) == datetime.datetime(2024, 1, 2, 0, 0, 1)
        cursor.execute("SELECT count(*) FROM orders WHERE price > %s", (decimal.Decimal("98.5"),))
        assert cursor.fetchone() == (50,)
        cursor.execute("SELECT %s, %s", ("a'b", None))
        assert cursor.fetchone() == ("a'b", None)
        cursor.execute("SELECT note FROM orders WHERE id IN (5, 6) ORDER BY id")
        assert cursor.fetchall() == [(None,), ("n 6",)]


def test_psycopg_fetches_rows_in_parts(db: psycopg.Connection[Any]) -> None:
    with db.cursor("named") as cursor:
        cursor.itersize = 700
        cursor.execute("SELECT id FROM orders ORDER BY id")
        assert [row[0] for row in cursor] == list(range(ROWS))


def test_psycopg_copies_out_as_text_and_csv(db: psycopg.Connection[Any]) -> None:
    sql = "COPY (SELECT id, symbol FROM orders WHERE id < 3 ORDER BY id) TO STDOUT"
    with db.cursor() as cursor:
        with cursor.copy(sql) as copy:
            assert b"".join(copy) == b"0\tS0\n1\tS1\n2\tS2\n"
        with cursor.copy(sql + " (FORMAT csv, HEADER)") as copy:
            assert b"".join(copy) == b"id,symbol\n0,S0\n1,S1\n2,S2\n"


def test_psycopg_pipelines_and_continues_after_errors(db: psycopg.Connection[Any]) -> None:
    db.autocommit = True
    with db.pipeline():
        cursors = [db.execute("SELECT id FROM orders WHERE id = %s", (n,)) for n in range(20)]
        assert [cursor.fetchone() for cursor in cursors] == [(n,) for n in range(20)]
    with pytest.raises(psycopg.errors.UndefinedColumn):
        db.execute("SELECT nothing FROM orders")
    with pytest.raises(psycopg.errors.UndefinedTable):
        db.execute("SELECT 1 FROM nowhere")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        db.execute("SELECT 1 FROM orders WHERE id = %s", ("x",))
    assert db.execute("SELECT 1").fetchone() == (1,)


def test_psycopg_cancels(db: psycopg.Connection[Any]) -> None:
    def cancel() -> None:
        # A statement can be cancelled only once it runs.
        while not done.wait(0.05):
            db.cancel_safe()

    done = threading.Event()
    thread = threading.Thread(target=cancel)
    thread.start()
    start = time.monotonic()
    try:
        with pytest.raises(psycopg.errors.QueryCanceled):
            db.execute(
                "SELECT count(*) FROM orders a, orders b, orders c WHERE a.id + b.id + c.id = -1"
            )
    finally:
        done.set()
        thread.join()
    assert time.monotonic() - start < 60
    db.rollback()
    assert db.execute("SELECT 1").fetchone() == (1,)


def test_asyncpg_prepares_and_iterates(address: tuple[str, int]) -> None:
    async def run() -> None:
        host, port = address
        db = await asyncpg.connect(host=host, port=port, user="ann", database="quarrier", ssl=False)
        rows = await db.fetch(
            "SELECT id, symbol, price, open FROM orders WHERE id = $1 AND symbol = $2", 7, "S1"
        )
        assert [tuple(row) for row in rows] == [FIRST]
        statement = await db.prepare("SELECT count(*) FROM orders WHERE id < $1")
        assert [await statement.fetchval(n) for n in (0, 10, ROWS)] == [0, 10, ROWS]
        async with db.transaction():
            cursor = db.cursor("SELECT id FROM orders ORDER BY id", prefetch=300)
            assert [row["id"] async for row in cursor] == list(range(ROWS))
        with pytest.raises(asyncpg.UndefinedTableError):
            await db.fetch("SELECT * FROM nowhere")
        await db.reset()
        await db.close()

    asyncio.run(run())
