"""A small HTTP server of byte ranges on the loopback, which counts its requests."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass
class Tally:
    """Counts of requests and bytes."""

    requests: int = 0
    body_bytes: int = 0
    ranges: list[str] = field(default_factory=list)


class RangeServer:
    """Serves files from memory, each request after `latency_seconds`.

    Use it as a context manager; `url(name)` is the URL of a file. Requests without the `required`
    header, a name and a value, are denied.
    """

    def __init__(
        self,
        files: dict[str, bytes],
        latency_seconds: float = 0.0,
        required: tuple[str, str] | None = None,
    ) -> None:
        self.required = required
        self.files = {name: memoryview(data) for name, data in files.items()}
        self.latency_seconds = latency_seconds
        self.tally = Tally()
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> RangeServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, name: str) -> str:
        """The URL of the file with this name."""
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def count(self, body_bytes: int, asked: str) -> None:
        """Counts an answer."""
        with self._lock:
            self.tally.requests += 1
            self.tally.body_bytes += body_bytes
            self.tally.ranges.append(asked)

    def take_tally(self) -> Tally:
        """Returns the tally, and starts a new one."""
        with self._lock:
            tally, self.tally = self.tally, Tally()
            return tally


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: RangeServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        # A client may hang up once it has enough.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            raise


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        owner = self.server.owner
        time.sleep(owner.latency_seconds)
        if owner.required and self.headers.get(owner.required[0]) != owner.required[1]:
            self._head(403, 0, {})
            return
        data = owner.files.get(self.path.lstrip("/"))
        if data is None:
            owner.count(0, f"{self.command} 404")
            self._head(404, 0, {})
            return
        asked = self.headers.get("Range")
        start, end = _range(asked, len(data))
        if asked is not None and start >= end:
            owner.count(0, f"{self.command} 416")
            self._head(416, 0, {"Content-Range": f"bytes */{len(data)}"})
            return
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{len(data):x}"'}
        if asked is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        # Before the answer is sent, because its receiver may read the tally.
        owner.count(end - start if with_body else 0, f"{self.command} {asked}")
        self._head(200 if asked is None else 206, end - start, headers)
        if with_body:
            self.wfile.write(data[start:end])

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Suppresses log output."""


def _range(asked: str | None, length: int) -> tuple[int, int]:
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked or "bytes=0-")
    if match is None:
        return 0, length
    first, last = match.groups()
    if not first:
        return max(0, length - int(last)), length
    return int(first), min(length, int(last) + 1 if last else length)
