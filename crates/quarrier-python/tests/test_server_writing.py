"""`quarrier serve --data` with clients that write: psycopg, asyncpg, quarrier.connect."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import pathlib
import signal
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest
from data_server import Server

import quarrier

ROW = (
    1,
    "a\tb\\ 'c'",
    decimal.Decimal("1.5000"),
    True,
    datetime.datetime(2024, 1, 31, 10, 0, 0, 250_000),
    datetime.date(2024, 1, 31),
    0.1,
)
EMPTY = (2, None, None, None, None, None, None)
TABLE = (
    "CREATE TABLE {} (id bigint NOT NULL, word text, price numeric(12, 4), ok boolean, "
    "at timestamp, on_day date, ratio double precision)"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("written"))
    yield server
    assert server.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_copies_in_and_out(server: Server, binary: bool) -> None:
    form = "binary" if binary else "text"
    kinds = ["int8", "text", "numeric", "bool", "timestamp", "date", "float8"]
    with server.psycopg() as db, db.cursor() as cursor:
        cursor.execute(TABLE.format(f"copied_{form}"))
        with cursor.copy(f"COPY copied_{form} FROM STDIN (FORMAT {form})") as copy:
            copy.set_types(kinds)
            copy.write_row(ROW)
            copy.write_row(EMPTY)
        assert cursor.rowcount == 2
        with cursor.copy(f"COPY copied_{form} TO STDOUT (FORMAT {form})") as copy:
            copy.set_types(kinds)
            assert list(copy.rows()) == [ROW, EMPTY]
        with (
            pytest.raises(psycopg.errors.NotNullViolation),
            cursor.copy(f"COPY copied_{form} (word) FROM STDIN") as copy,
        ):
            copy.write_row(["no id"])
        db.rollback()
        # An aborted copy leaves no rows.
        with (
            pytest.raises(ZeroDivisionError),
            cursor.copy(f"COPY copied_{form} FROM STDIN") as copy,
        ):
            copy.write_row((3, *EMPTY[1:]))
            raise ZeroDivisionError
        db.rollback()
        assert cursor.execute(f"SELECT count(*) FROM copied_{form}").fetchone() == (2,)


def test_psycopg_inserts_with_parameters_in_pipelines_and_in_numbers(server: Server) -> None:
    with server.psycopg(autocommit=True) as db:
        db.execute(TABLE.format("inserted"))
        places = ", ".join(["%s"] * len(ROW))
        sql = f"INSERT INTO inserted VALUES ({places})"
        assert db.execute(sql, ROW).rowcount == 1
        assert db.execute("SELECT * FROM inserted").fetchall() == [ROW]
        with db.pipeline():
            cursors = [
                db.execute("INSERT INTO inserted (id, word) VALUES (%s, %s)", (n, f"w{n}"))
                for n in range(100, 400)
            ]
        assert {cursor.rowcount for cursor in cursors} == {1}
        assert db.execute("SELECT count(*) FROM inserted").fetchone() == (301,)
        with db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO inserted (id, price) VALUES (%s, %s)",
                [(n, decimal.Decimal(n) / 4) for n in range(1000, 1500)],
            )
            assert cursor.rowcount == 500
        sql = "SELECT count(*), sum(price) FROM inserted WHERE id >= 1000"
        assert db.execute(sql).fetchone() == (500, sum(range(1000, 1500)) / decimal.Decimal(4))
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            db.execute("INSERT INTO inserted (id) VALUES (%s)", ("x",))
        with pytest.raises(psycopg.errors.UndefinedTable):
            db.execute("INSERT INTO nowhere VALUES (%s)", (1,))
        with pytest.raises(psycopg.errors.DuplicateTable):
            db.execute(TABLE.format("inserted"))


def test_strings_keep_their_quotes(server: Server) -> None:
    words = ["'", "''", "a''b", "a''''b", "\\'", "\\''"]
    with server.psycopg(autocommit=True) as db, db.cursor() as cursor:
        cursor.execute("CREATE TABLE quotes (id bigint, word text)")
        for number, word in enumerate(words):
            literal = "'" + word.replace("'", "''") + "'"
            cursor.execute(f"INSERT INTO quotes SELECT {number}, {literal}")
            cursor.execute(f"INSERT INTO quotes VALUES ({number}, {literal})")
            cursor.execute("INSERT INTO quotes SELECT %s, %s", (number, word))
            cursor.execute(f"SELECT id FROM quotes WHERE word = {literal}")
            assert cursor.fetchall() == [(number,)] * 3
            cursor.execute("SELECT id FROM quotes WHERE word = %s", (word,))
            assert cursor.fetchall() == [(number,)] * 3


def test_psycopg_sees_its_own_rows_in_a_transaction(server: Server) -> None:
    with server.psycopg() as db:
        db.execute("CREATE TABLE own (id bigint)")
        for number in range(5):
            db.execute("INSERT INTO own VALUES (%s)", (number,))
            assert db.execute("SELECT count(*) FROM own").fetchone() == (number + 1,)
        db.commit()


def test_asyncpg_copies_records_and_prepares(server: Server) -> None:
    async def run() -> None:
        db = await asyncpg.connect(
            host="127.0.0.1", port=server.port, user="ann", database="quarrier", ssl=False
        )
        await db.execute(TABLE.format("records"))
        records = [ROW, EMPTY] + [(n, f"word {n}", *EMPTY[2:]) for n in range(3, 5000)]
        assert await db.copy_records_to_table("records", records=records) == "COPY 4999"
        assert [tuple(row) for row in await db.fetch("SELECT * FROM records WHERE id < 3")] == [
            ROW,
            EMPTY,
        ]
        statement = await db.prepare("INSERT INTO records VALUES ($1, $2, $3, $4, $5, $6, $7)")
        await statement.executemany([(n, *ROW[1:]) for n in range(10_000, 10_200)])
        assert await db.fetchval("SELECT count(*) FROM records WHERE id >= 10000") == 200
        with pytest.raises(asyncpg.NotNullViolationError):
            await db.execute("INSERT INTO records (word) VALUES ('x')")
        await db.close()

    asyncio.run(run())


def test_a_writer_continues_after_the_server_was_killed_and_stores_nothing_twice(
    tmp_path: pathlib.Path,
) -> None:
    server = Server(tmp_path)
    with server.psycopg(autocommit=True) as db:
        db.execute("CREATE TABLE feed ()")
    url = f"http://127.0.0.1:{server.http}"
    with quarrier.connect(url) as db, db.writer("feed", publisher="feed", sequence=1) as writer:
        for number in range(10):
            writer.send({"id": number})
            marks = writer.flush()
            assert marks is not None and marks.last == number + 1
            if number % 3 == 1:
                server.end(signal.SIGKILL)
                server.start()
        again = db.writer("feed", publisher="feed", sequence=10)
        again.send({"id": 9})
        assert again.flush() == quarrier.Marks(0, 0, 0)
        rows = db.query("SELECT id FROM feed ORDER BY id").to_pylist()
        assert rows == [{"id": number} for number in range(10)]
    assert server.end(signal.SIGTERM) == 0
