"""quarrier.connect: a server that `quarrier serve` runs, over HTTP."""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

from quarrier._errors import QuarrierError
from quarrier._native import Table

_BATCH_BYTES = 1 << 20
"""Messages are sent when there are so many bytes of them."""

_ARROW = "application/vnd.apache.arrow.stream"


class ServerError(QuarrierError):
    """The server refused a statement or messages. `code` is PostgreSQL's, such as `42P01`."""

    def __init__(self, message: str, code: str, hint: str | None = None) -> None:
        super().__init__(message, code, hint)
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]} ({self.hint})" if self.hint else str(self.args[0])


class Marks(NamedTuple):
    """What became of messages: the marks of the first and the last, how many made no sense."""

    first: int
    last: int
    rejected: int


def connect(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    timeout: float | None = None,
) -> Connection:
    """Speaks with the server at `url`, such as `http://localhost:5434`.

    `timeout` is the longest that is waited for an answer to go on, in seconds. Nothing is sent
    before the first question.

    >>> db = quarrier.connect("http://localhost:5434")  # doctest: +SKIP
    >>> db.query("SELECT count(*) FROM orders").to_pylist()  # doctest: +SKIP
    """
    return Connection(url, user, password, timeout)


class Connection:
    """A server. One thread at a time may use it; it connects again after a break."""

    def __init__(
        self, url: str, user: str | None, password: str | None, timeout: float | None
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a server, as http://localhost:5434")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"{url!r}: leave out what stands behind the port")
        self._is_encrypted = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or 5434
        self._timeout = timeout
        self._headers = {"User-Agent": "quarrier-python"}
        if user is not None:
            both = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {both}"
        self._http: http.client.HTTPConnection | None = None

    def __repr__(self) -> str:
        scheme = "https" if self._is_encrypted else "http"
        return f"quarrier.connect('{scheme}://{self._host}:{self._port}')"

    def query(self, sql: str) -> Table:
        """The rows that a statement answers, in memory."""
        headers = {"Accept": _ARROW, "Content-Type": "text/plain; charset=utf-8"}
        kind, body = self._ask("/query", sql.encode(), headers, again=False)
        if kind != _ARROW:
            return Table.from_messages(body, format="json")
        return Table.from_messages(body, format="arrow")

    def writer(
        self, table: str, *, publisher: str | None = None, sequence: int | None = None
    ) -> Writer:
        """Sends messages to a table.

        After a break they are sent again, and never count twice: the server knows them by
        `publisher` and a number that begins at `sequence`. A program that begins again after a
        crash names the same publisher, and the number of the batch that it is not sure of.
        """
        return Writer(self, table, publisher, sequence)

    def close(self) -> None:
        """Ends the connection; the next question makes a new one."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connected(self) -> http.client.HTTPConnection:
        if self._http is None:
            make = http.client.HTTPSConnection if self._is_encrypted else http.client.HTTPConnection
            self._http = make(self._host, self._port, timeout=self._timeout)
        return self._http

    def _ask(
        self, path: str, body: bytes, headers: Mapping[str, str], *, again: bool
    ) -> tuple[str, bytes]:
        """The kind and the bytes of an answer. A connection that broke while it was idle is made
        anew where nothing was answered yet and asking twice does no harm (`again`)."""
        was_idle = self._http is not None
        try:
            return self._asked(path, body, headers)
        except (http.client.HTTPException, OSError):
            self.close()
            if not (again and was_idle):
                raise
            return self._asked(path, body, headers)
        except BaseException:
            # What is left of the answer must not be taken for the next one.
            self.close()
            raise

    def _asked(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[str, bytes]:
        connection = self._connected()
        connection.request("POST", path, body, {**self._headers, **headers})
        answer = connection.getresponse()
        content = answer.read()
        kind = answer.headers.get_content_type()
        if answer.status == 200:
            return kind, content
        try:
            said = json.loads(content)
            raise ServerError(said["error"], said["code"], said.get("hint"))
        except (ValueError, KeyError, TypeError):
            raise ServerError(f"{answer.status} {answer.reason}", "") from None


class Writer:
    """Sends messages to a table in batches. Leaving its `with` block sends the last one."""

    def __init__(
        self, connection: Connection, table: str, publisher: str | None, sequence: int | None
    ) -> None:
        self._connection = connection
        self._path = f"/tables/{urllib.parse.quote(table, safe='')}"
        self._publisher = uuid.uuid4().hex if publisher is None else publisher
        self._sequence = time.time_ns() if sequence is None else sequence
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self.rejected = 0
        """Messages that made no sense to the server, and were left out."""

    @property
    def sequence(self) -> int:
        """The number of the batch that is sent next."""
        return self._sequence

    def send(self, row: Mapping[str, Any]) -> None:
        """Sends a row with others, when there are enough of them."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False, default=str).encode()
        self._waiting.append(line)
        self._waiting_bytes += len(line) + 1
        if self._waiting_bytes >= _BATCH_BYTES:
            self.flush()

    def send_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Sends rows."""
        for row in rows:
            self.send(row)

    def flush(self, *, attempts: int = 5) -> Marks | None:
        """Sends what waits; when it returns, that is durable. None where nothing waited.

        After a break it tries again, so many times in all, waiting longer each time.
        """
        if not self._waiting:
            return None
        body = b"\n".join(self._waiting) + b"\n"
        headers = {
            "Content-Type": "application/x-ndjson",
            "Publisher": self._publisher,
            "Sequence": str(self._sequence),
        }
        for attempt in range(attempts):
            try:
                _, content = self._connection._ask(self._path, body, headers, again=True)
                break
            except (http.client.HTTPException, OSError):
                if attempt + 1 == attempts:
                    raise
                time.sleep(min(0.1 * 2**attempt, 5.0))
        said = json.loads(content)
        self._waiting.clear()
        self._waiting_bytes = 0
        self._sequence += 1
        self.rejected += said["rejected"]
        return Marks(said["first"], said["last"], said["rejected"])

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.flush()
