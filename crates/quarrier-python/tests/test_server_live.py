"""Subscriptions through `quarrier.connect`: each change once, also after a break."""

from __future__ import annotations

import asyncio
import pathlib
import signal
import threading
from collections.abc import Iterator

import pytest
from data_server import Server

import quarrier


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[Server]:
    server = Server(tmp_path)
    with server.psycopg(autocommit=True) as db:
        db.execute("CREATE TABLE t (id bigint, word text)")
    yield server
    if server.process.poll() is None:
        server.end(signal.SIGTERM)


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.http}"


def insert(server: Server, ids: range) -> None:
    with quarrier.connect(url(server)) as db, db.writer("t") as writer:
        writer.send_all({"id": number, "word": f"w{number}"} for number in ids)


def test_a_subscription_sends_existing_and_new_rows(server: Server) -> None:
    insert(server, range(1, 4))
    db = quarrier.connect(url(server))
    query = "SELECT id FROM t WHERE id <> 2"
    with db.subscribe(query, snapshot=True, until=5) as changes:
        found = [next(changes), next(changes)]
        insert(server, range(4, 6))
        found.extend(changes)
    assert found == [
        (1, "=", {"id": 1}),
        (3, "=", {"id": 3}),
        (4, "+", {"id": 4}),
        (5, "+", {"id": 5}),
    ]
    assert [change.row["id"] for change in db.subscribe(query, since=3, until=5)] == [4, 5]
    with db.subscribe(query, progress="1ms") as changes:
        assert next(changes) == (5, ">", {})


def test_a_subscription_survives_the_server(server: Server) -> None:
    seen: list[int] = []
    db = quarrier.connect(url(server))

    def read() -> None:
        seen.extend(change.row["id"] for change in db.subscribe("SUBSCRIBE t", since=0, until=40))

    with db.subscribe("SELECT id FROM t", since=0, until=40, attempts=20) as changes:
        for start in range(1, 40, 10):
            insert(server, range(start, start + 10))
            seen.extend(next(changes).row["id"] for _ in range(7))
            server.end(signal.SIGKILL)
            server.start()
        seen.extend(change.row["id"] for change in changes)
    assert seen == list(range(1, 41))
    seen.clear()
    reader = threading.Thread(target=read)
    reader.start()
    reader.join(60)
    assert seen == list(range(1, 41))


def test_invalid_subscriptions_are_errors_with_codes(server: Server) -> None:
    db = quarrier.connect(url(server))
    for sql, code in [("SELECT x FROM t", "42601"), ("SELECT id FROM u", "42P01")]:
        with pytest.raises(quarrier.ServerError) as caught:
            next(db.subscribe(sql))
        assert caught.value.code == code
    server.end(signal.SIGKILL)
    with pytest.raises(OSError):
        next(db.subscribe("SELECT id FROM t", attempts=1))


def test_frames(server: Server) -> None:
    async def collect() -> list[dict[str, object]]:
        db = quarrier.connect(url(server))
        rows: list[dict[str, object]] = []
        frames = db.subscribe_frames("SELECT id FROM t", every="10ms", snapshot=True, until=6)
        async for frame in frames:
            rows += frame.to_pylist()
            if len(rows) == 3:
                await asyncio.to_thread(insert, server, range(4, 7))
        return rows

    insert(server, range(1, 4))
    rows = asyncio.run(collect())
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["change"] for row in rows] == ["=", "=", "=", "+", "+", "+"]
