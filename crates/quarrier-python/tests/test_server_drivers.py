"""`quarrier serve --data` with drivers that query the catalogs first: JDBC and ADBC."""

from __future__ import annotations

import datetime
import decimal
import pathlib
import signal
import subprocess
from collections.abc import Iterator

import adbc_driver_postgresql.dbapi as adbc
import polars
import pyarrow as pa
import pytest
from data_server import Server

DRIVER = pathlib.Path("/usr/share/java/postgresql.jar")
PROGRAM = pathlib.Path(__file__).parent / "java" / "Jdbc.java"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("drivers"), "--segment", "4M")
    yield server
    assert server.end(signal.SIGTERM) == 0


def test_jdbc(server: Server) -> None:
    if not DRIVER.exists():
        pytest.skip(f"there is no {DRIVER}: scripts/setup.sh serve installs it")
    command = ["java", "-cp", str(DRIVER), str(PROGRAM), str(server.port)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stdout) == (0, "all is well\n"), run.stderr


def test_adbc_reads_and_writes_arrow(server: Server) -> None:
    uri = f"postgresql://ann@127.0.0.1:{server.port}/quarrier"
    with server.psycopg(autocommit=True) as db:
        db.execute(
            "CREATE TABLE arrows (id bigint NOT NULL, word text, price numeric(12, 4), "
            "at timestamp, on_day date, ratio double precision)"
        )
        db.execute(
            "INSERT INTO arrows VALUES (1, 'a', 1.5, '2024-01-31 10:00:00.25', '2024-01-31', 0.5), "
            "(2, NULL, NULL, NULL, NULL, NULL)"
        )
    frame = polars.read_database_uri("SELECT * FROM arrows ORDER BY id", uri, engine="adbc")
    first, second = frame.rows()
    assert first[:2] == (1, "a")
    assert decimal.Decimal(first[2]) == decimal.Decimal("1.5")
    at = datetime.datetime(2024, 1, 31, 10, 0, 0, 250_000)
    assert first[3:] == (at, datetime.date(2024, 1, 31), 0.5)
    assert second == (2, None, None, None, None, None)
    with adbc.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, word FROM arrows WHERE id >= $1 ORDER BY id", parameters=(2,))
        assert cursor.fetch_arrow_table().to_pylist() == [{"id": 2, "word": None}]
        rows = pa.table({"id": pa.array([3, 4], pa.int64()), "word": ["c", "d"]})
        cursor.adbc_ingest("arrows", rows, mode="append")
        connection.commit()
        cursor.execute("SELECT word FROM arrows WHERE id > 2 ORDER BY id")
        assert cursor.fetchall() == [("c",), ("d",)]
        assert "arrows" in str(connection.adbc_get_objects(depth="tables").read_all().to_pylist())
        schema = connection.adbc_get_table_schema("arrows")
        assert schema.names == ["id", "word", "price", "at", "on_day", "ratio"]
