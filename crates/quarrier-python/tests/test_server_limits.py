"""The cost of many, slow or impatient clients of `quarrier serve --data`; its end under load."""

from __future__ import annotations

import pathlib
import resource
import signal
import socket
import struct
import threading
import time

import psycopg
import pytest
from data_server import Server

IDLE = 5_000
# The limit that was requested; it excludes the page cache of the program.
BYTES_OF_AN_IDLE_CLIENT = 20_000


def start_up(server: Server) -> socket.socket:
    words = b"user\0ann\0database\0quarrier\0\0"
    message = struct.pack(">II", 8 + len(words), 3 << 16) + words
    client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    client.sendall(message)
    return client


def read_until_ready(client: socket.socket) -> None:
    came = b""
    # ReadyForQuery, idle: the last message of a start-up.
    while not came.endswith(b"Z\0\0\0\x05I"):
        more = client.recv(1 << 16)
        assert more, came
        came += more


def private_bytes(server: Server) -> int:
    """The private memory of the process, in bytes."""
    lines = pathlib.Path(f"/proc/{server.process.pid}/smaps_rollup").read_text().splitlines()
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")]
    return sum(sizes) << 10


def test_thousands_of_idle_clients_take_little_memory(tmp_path: pathlib.Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = IDLE + 500
    if hard != resource.RLIM_INFINITY and hard < files:
        pytest.skip(f"{hard} open files are too few")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, files), hard))
    server = Server(tmp_path, "--max-connections", str(IDLE + 100))
    clients: list[socket.socket] = []
    try:
        for _ in range(50):
            clients.append(start_up(server))
            read_until_ready(clients[-1])
        before, counted = private_bytes(server), len(clients)
        while len(clients) < IDLE:
            batch = [start_up(server) for _ in range(50)]
            for client in batch:
                read_until_ready(client)
            clients += batch
        each = (private_bytes(server) - before) / (len(clients) - counted)
        assert each <= BYTES_OF_AN_IDLE_CLIENT
        with server.psycopg() as db:
            assert db.execute("SELECT 1").fetchone() == (1,)
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert server.end(signal.SIGTERM) == 0


def write(server: Server, client: int, acknowledged: list[int]) -> None:
    """Inserts rows until the server ends."""
    number = client
    try:
        with server.psycopg(autocommit=True) as db:
            while True:
                db.execute("INSERT INTO t VALUES (%s)", [number])
                acknowledged.append(number)
                number += 100
    except psycopg.OperationalError:
        return


def test_the_end_under_load_loses_nothing(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path, "--timeout", "5")
    with server.psycopg(autocommit=True) as db:
        db.execute("CREATE TABLE t (id bigint)")
    acknowledged: list[list[int]] = [[] for _ in range(8)]
    writers = [
        threading.Thread(target=write, args=(server, client, mine))
        for client, mine in enumerate(acknowledged)
    ]
    for writer in writers:
        writer.start()
    while not all(acknowledged):
        time.sleep(0.01)
    # One client that sends half a message, and one that makes a large request.
    half = start_up(server)
    read_until_ready(half)
    half.sendall(b"Q\0\0\1\0SELECT")
    asked = time.monotonic()
    assert server.end(signal.SIGTERM) == 0
    # The server waits ten seconds for running statements; these take milliseconds.
    assert time.monotonic() - asked < 15
    half.close()
    for writer in writers:
        writer.join(30)
        assert not writer.is_alive()
    server.start()
    with server.psycopg() as db:
        there = [row[0] for row in db.execute("SELECT id FROM t").fetchall()]
    assert len(set(there)) == len(there)
    assert {number for mine in acknowledged for number in mine} <= set(there)
    assert server.end(signal.SIGTERM) == 0
    names = {path.name for path in (tmp_path / "d").rglob("*") if path.is_file()}
    assert not [name for name in names if name.endswith((".tmp", ".partial"))], names
