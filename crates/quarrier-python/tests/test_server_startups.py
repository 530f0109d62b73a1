"""`quarrier serve` with the first statements of DBeaver, Grafana, Metabase and pgAdmin.

Each file of `startups` has one program's statements, in its order, written after its public
sources; long lists are shortened. A line `-- name type=value …` precedes each statement: the name
determines what its result must contain, and the values are its parameters.
"""

from __future__ import annotations

import pathlib
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from data_server import Server
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

FOLDER = pathlib.Path(__file__).parent / "startups"
TABLE = "orders"
ROWS = 3

# The columns of the table, with their types as SQL, by name, and by number.
COLUMNS = {
    "id": ("bigint", "int8", "20"),
    "symbol": ("text", "text", "25"),
    "price": ("numeric(12,4)", "numeric", "1700"),
    "open": ("boolean", "bool", "16"),
    "at": ("timestamp without time zone", "timestamp", "1114"),
    "on_day": ("date", "date", "1082"),
    "ratio": ("double precision", "float8", "701"),
}
KINDS = {"int8": 20, "varchar": 1043}
# Drivers for Java use the extended protocol for every statement.
EXTENDED = ("dbeaver", "metabase")


@dataclass
class Names:
    """The columns of results that name schemas, tables, columns and types; the form of types."""

    schema: str
    table: str
    column: str
    type: str
    form: int
    replaced: dict[str, str] = field(default_factory=dict)


PROGRAMS = {
    "dbeaver": Names("nspname", "relname", "attname", "atttypid", 2),
    # information_schema has no precision in data_type.
    "grafana": Names("name", "table", "column", "type", 0, {"numeric(12,4)": "numeric"}),
    "metabase": Names("TABLE_SCHEM", "name", "name", "database-type", 1),
    "pgadmin": Names("name", "name", "name", "displaytypname", 0),
}


@dataclass
class Sent:
    """A statement, with the name of what it lists, and its parameters."""

    name: str
    text: str
    values: list[tuple[str, str]]


def statements(program: str, replaced: dict[str, str]) -> list[Sent]:
    text = (FOLDER / f"{program}.sql").read_text()
    for name, value in replaced.items():
        text = text.replace(f"{{{name}}}", value)
    _, *parts = re.split(r"^--(.*)\n", text.split("\n", 1)[1], flags=re.MULTILINE)
    found = []
    for head, statement in zip(parts[::2], parts[1::2], strict=True):
        words = head.split()
        values = [word.partition("=")[::2] for word in words if "=" in word]
        name = next((word for word in words if "=" not in word), "")
        found.append(Sent(name, statement.rstrip("\n"), values))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("startups"), "--segment", "4M")
    with server.psycopg(autocommit=True) as db:
        db.execute(
            f"CREATE TABLE {TABLE} (id bigint NOT NULL, symbol text, price numeric(12, 4), "
            "open boolean, at timestamp, on_day date, ratio double precision)"
        )
        for number in range(ROWS):
            db.execute(
                f"INSERT INTO {TABLE} VALUES ({number}, 'S{number}', {number}.25, true, "
                f"'2024-01-31 10:00:0{number}', '2024-01-31', 0.5)"
            )
    yield server
    assert server.end(signal.SIGTERM) == 0


def send(db: psycopg.Connection[object], sent: Sent, extended: bool) -> PGresult:
    text = sent.text.encode()
    if not extended and not sent.values:
        return db.pgconn.exec_(text)
    values = [value.encode() for _, value in sent.values]
    return db.pgconn.exec_params(text, values, [KINDS[kind] for kind, _ in sent.values])


def rows_of(result: PGresult) -> list[dict[str, str | None]]:
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]

    def value(row: int, column: int) -> str | None:
        found = result.get_value(row, column)
        return None if found is None else found.decode()

    # A name may occur twice: clients read the first column with it.
    order = range(len(names) - 1, -1, -1)
    return [
        {names[column]: value(row, column) for column in order} for row in range(result.ntuples)
    ]


def check(name: str, names: Names, rows: list[dict[str, str | None]]) -> None:
    match name:
        case "schemas":
            assert "public" in {row[names.schema] for row in rows}
        case "tables":
            assert TABLE in {row[names.table] for row in rows}
        case "columns":
            listed = {row[names.column]: row[names.type] for row in rows}
            wanted = {column: types[names.form] for column, types in COLUMNS.items()}
            wanted = {column: names.replaced.get(it, it) for column, it in wanted.items()}
            assert {column: listed.get(column) for column in wanted} == wanted
        case "attributes":
            assert {row["attname"]: row["typname"] for row in rows} == {
                column: types[1] for column, types in COLUMNS.items()
            }
        case "privileges":
            assert {"schema": "public", "table": TABLE, "select": "t"}.items() <= rows[0].items()
        case "databases":
            assert "quarrier" in {value for row in rows for value in row.values()}
        case "types":
            assert {"int8", "text", "numeric"} <= {row["typname"] for row in rows}
        case "user":
            assert [row["name"] for row in rows] == ["ann"]
        case "version":
            assert [list(row) for row in rows] == [["version"]]
        case "rows" | "values":
            assert len(rows) == ROWS
        case "buckets":
            assert rows
        case other:
            assert other == "", f"unknown name {other}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_start_up_is_answered(server: Server, program: str) -> None:
    failures = []
    with server.psycopg(autocommit=True) as db:
        oid = db.execute("SELECT oid FROM pg_class WHERE relname = %s", (TABLE,)).fetchone()
        assert oid is not None
        replaced = {"table": TABLE, "oid": str(oid[0]), "schema": "2200"}
        for sent in statements(program, replaced):
            result = send(db, sent, program in EXTENDED)
            if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
                failures.append(f"{result.error_message.decode(errors='replace')}  in: {sent.text}")
                continue
            try:
                check(sent.name, PROGRAMS[program], rows_of(result))
            except (AssertionError, KeyError) as error:
                failures.append(f"{error!r}\n  of: {sent.text}")
    assert not failures, "\n\n".join(failures)
