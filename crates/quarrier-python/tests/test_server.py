"""quarrier.connect, against a test server and against `quarrier serve`."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import quarrier

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"


class Handler(http.server.BaseHTTPRequestHandler):
    """Accepts batches, recognises them by publisher and number, and breaks off on request."""

    protocol_version = "HTTP/1.1"
    taken: dict[tuple[str, str], list[dict[str, Any]]]
    breaks: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        broken = self.breaks.pop(0) if self.breaks else ""
        if broken != "before":
            key = (self.headers["Publisher"], self.headers["Sequence"])
            self.taken.setdefault(key, [json.loads(line) for line in body.splitlines()])
        if broken:
            self.close_connection = True
            return
        answer = json.dumps({"first": 1, "last": 2, "rejected": 1, "durable": True}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served() -> Iterator[tuple[str, type[Handler]]]:
    class Own(Handler):
        pass

    Own.taken = {}
    Own.breaks = []

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Own
    server.shutdown()
    thread.join()
    server.server_close()


def test_messages_are_sent_again_after_a_break_and_never_twice(
    served: tuple[str, type[Handler]],
) -> None:
    url, handler = served
    with quarrier.connect(url) as db, db.writer("t", publisher="feed", sequence=7) as writer:
        assert writer.flush() is None
        for number, broken in enumerate([[], ["before"], ["after", "before"]]):
            handler.breaks.extend(broken)
            writer.send({"a": number})
            assert writer.flush() == quarrier.Marks(1, 2, 1)
        writer.send({"a": 3})
    assert writer.rejected == 4
    rows = [row for batch in handler.taken.values() for row in batch]
    assert rows == [{"a": 0}, {"a": 1}, {"a": 2}, {"a": 3}]
    assert list(handler.taken) == [("feed", str(number)) for number in range(7, 11)]


def test_an_invalid_address_is_refused() -> None:
    for wrong in ("localhost:5434", "ftp://localhost", "http://localhost/query"):
        with pytest.raises(ValueError):
            quarrier.connect(wrong)


@pytest.fixture
def program(tmp_path: pathlib.Path) -> Iterator[str]:
    binary = TARGET / "quarrier-sql"
    if not binary.exists():
        pytest.skip(f"there is no {binary}")
    (tmp_path / "orders.ndjson").write_text(
        "".join(f'{{"id":{number},"symbol":"S{number % 3}"}}\n' for number in range(1000))
    )
    command = [str(binary), "serve", "--table", "orders=orders.ndjson"]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    line = server.stdout.readline()
    assert line.startswith("ready: postgres://"), line
    yield line.split()[-1]
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    server.stdout.close()


def test_a_server_answers_with_tables(program: str) -> None:
    with quarrier.connect(program) as db:
        rows = db.query("SELECT symbol, count(*) AS n FROM orders GROUP BY symbol ORDER BY symbol")
        assert rows.to_pylist() == [
            {"symbol": "S0", "n": 334},
            {"symbol": "S1", "n": 333},
            {"symbol": "S2", "n": 333},
        ]
        assert len(db.query("SELECT * FROM orders")) == 1000
        with pytest.raises(quarrier.ServerError) as refused:
            db.query("SELECT nothing FROM orders")
        assert refused.value.code == "42703"
        with pytest.raises(quarrier.ServerError):
            db.query("SELECT * FROM '/etc/passwd'")
        assert len(db.query("SELECT * FROM orders LIMIT 5")) == 5
