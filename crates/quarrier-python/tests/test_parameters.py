"""Parameters of statements mean the same in Python and through the server."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from data_server import Server

import quarrier

REPOSITORY = Path(__file__).parents[3]
CASES = json.loads((REPOSITORY / "crates/quarrier/tests/doors.json").read_text())["parameters"]
ROWS = [(1, "B", 7), (2, "S", 8), (3, "B", 9)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("parameters"))
    with server.psycopg(autocommit=True) as db:
        db.execute("CREATE TABLE m (id bigint, side text, qty bigint)")
        db.execute("INSERT INTO m VALUES (1, 'B', 7), (2, 'S', 8), (3, 'B', 9)")
    yield server
    assert server.end(signal.SIGTERM) == 0


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


def statement(case: dict[str, Any]) -> str:
    return f"SELECT id FROM m WHERE {case['where']}"


def values(case: dict[str, Any]) -> list[Any]:
    # JSON has no NaN and no infinities.
    return [float(v["float"]) if isinstance(v, dict) else v for v in case["params"]]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_parameters_in_python(case: dict[str, Any]) -> None:
    lines = [json.dumps(dict(zip(("id", "side", "qty"), row, strict=True))) for row in ROWS]
    table = quarrier.Table.from_messages("\n".join(lines).encode(), format="json")
    if "error" in case:
        with pytest.raises(quarrier.PlanError) as raised:
            table.query(statement(case), params=values(case))
        assert case["error"] in str(raised.value)
        return
    rows = table.query(statement(case), params=values(case)).to_pylist()
    assert sorted(row["id"] for row in rows) == case["ids"]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_parameters_through_the_server(case: dict[str, Any], server: Server) -> None:
    with server.psycopg(autocommit=True) as db:
        cursor = psycopg.RawCursor(db)
        if "error" in case:
            with pytest.raises(psycopg.errors.SyntaxError) as raised:
                cursor.execute(statement(case), values(case))
            assert case["error"] in str(raised.value)
            return
        rows = cursor.execute(statement(case), values(case)).fetchall()
        assert sorted(row[0] for row in rows) == case["ids"]
