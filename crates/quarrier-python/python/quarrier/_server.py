"""quarrier.connect: a client over HTTP for a server started by `quarrier serve`."""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.parse
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple

from quarrier._errors import ServerError
from quarrier._live import Subscription, frames
from quarrier._native import Table

_BATCH_BYTES = 1 << 20
"""The number of waiting bytes at which messages are sent."""

_ARROW = "application/vnd.apache.arrow.stream"


class Marks(NamedTuple):
    """The marks of the first and last stored message, and the number of rejected ones."""

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
    """Connects to the server at `url`, such as `http://localhost:5434`.

    `timeout` is the longest wait for the next part of an answer, in seconds. The first query opens
    the connection.

    >>> db = quarrier.connect("http://localhost:5434")  # doctest: +SKIP
    >>> db.query("SELECT count(*) FROM orders").to_pylist()  # doctest: +SKIP
    """
    return Connection(url, user, password, timeout)


class Connection:
    """A server. Only one thread at a time may use it; it reconnects after a break."""

    def __init__(
        self, url: str, user: str | None, password: str | None, timeout: float | None
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not a server's address, such as http://localhost:5434")
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(f"{url!r}: leave out everything after the port")
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
        """Answers a statement, with its rows in memory."""
        headers = {"Accept": _ARROW, "Content-Type": "text/plain; charset=utf-8"}
        kind, body = self._ask("/query", sql.encode(), headers, again=False)
        if kind != _ARROW:
            return Table.from_messages(body, format="json")
        return Table.from_messages(body, format="arrow")

    def writer(
        self, table: str, *, publisher: str | None = None, sequence: int | None = None
    ) -> Writer:
        """Returns a writer that sends messages to a table.

        After a break they are sent again, and never count twice: the server recognises them by
        `publisher` and a number that starts at `sequence`. A program restarted after a crash passes
        the same publisher, and the number of the first batch that may not have been stored.
        """
        return Writer(self, table, publisher, sequence)

    def subscribe(
        self,
        sql: str,
        *,
        since: int | None = None,
        until: int | None = None,
        snapshot: bool = False,
        every: str | None = None,
        matching: str | None = None,
        progress: str | None = None,
        attempts: int = 5,
    ) -> Subscription:
        """Subscribes to the live rows of a query: `for change in db.subscribe(…)`.

        `sql` is a query of one table; each of its rows is sent once. With `every`, such as `"1s"`,
        it may be any query: the server runs it again at this interval if messages have arrived, and
        sends the differences. With `matching`, such as `"rules (id, condition)"`, each row is sent
        once for every condition of this table that is true for it, with the `condition_id`; a
        change of the kind `!` means that a condition has no value for the row. `snapshot` first
        sends the existing rows, `since` begins after a mark, and `until` ends at one. With
        `progress`, such as `"1s"`, changes of the kind `>` report the progress at this interval.

        After a lost connection it reconnects, a limited number of times in a row, and continues at
        the same mark: no change is missed or repeated. With `every`, a lost connection is an error.

        >>> query = "SELECT * FROM orders WHERE price > 500"
        >>> for change in db.subscribe(query):  # doctest: +SKIP
        ...     print(change.mark, change.change, change.row)
        """
        parameters = {"sql": sql, "snapshot": "true" if snapshot else "false"}
        named = {
            "as_of": since,
            "up_to": until,
            "every": every,
            "matching": matching,
            "progress": progress,
        }
        parameters.update({name: str(value) for name, value in named.items() if value is not None})
        return Subscription(
            self._new_connection,
            self._headers,
            parameters,
            shows_progress=progress is not None,
            can_resume=every is None,
            attempts=attempts,
        )

    def subscribe_frames(
        self,
        sql: str,
        *,
        every: str = "100ms",
        since: int | None = None,
        until: int | None = None,
        snapshot: bool = False,
    ) -> AsyncIterator[Table]:
        """Subscribes to a query of one table and returns a table of changes for each interval.

        Use it as `async for frame in db.subscribe_frames(…)`; `frame.to_polars()` and
        `frame.to_pandas()` make frames of the table.

        The first columns are `mark` and `change`, as in `Change`.
        """
        subscription = self.subscribe(
            sql, since=since, until=until, snapshot=snapshot, progress=every
        )
        return frames(subscription, _seconds(every))

    def close(self) -> None:
        """Closes the connection; the next query opens a new one."""
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
            self._http = self._new_connection(self._timeout)
        return self._http

    def _new_connection(self, timeout: float | None) -> http.client.HTTPConnection:
        make = http.client.HTTPSConnection if self._is_encrypted else http.client.HTTPConnection
        return make(self._host, self._port, timeout=timeout)

    def _ask(
        self, path: str, body: bytes, headers: Mapping[str, str], *, again: bool
    ) -> tuple[str, bytes]:
        """Returns the type and the bytes of an answer.

        Reconnects if an idle connection broke and repeating the request is harmless (`again`).
        """
        was_idle = self._http is not None
        try:
            return self._request(path, body, headers)
        except (http.client.HTTPException, OSError):
            self.close()
            if not (again and was_idle):
                raise
            return self._request(path, body, headers)
        except BaseException:
            # The rest of this answer must not be mistaken for the next one.
            self.close()
            raise

    def _request(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[str, bytes]:
        connection = self._connected()
        connection.request("POST", path, body, {**self._headers, **headers})
        answer = connection.getresponse()
        content = answer.read()
        kind = answer.headers.get_content_type()
        if answer.status == 200:
            return kind, content
        raise ServerError._of_answer(answer.status, answer.reason, content)


def _seconds(time: str) -> float:
    """The seconds of `100ms`, `1s`, `2 min`, `1h`."""
    for unit, seconds in (("ms", 0.001), ("min", 60.0), ("h", 3600.0), ("s", 1.0)):
        if time.endswith(unit):
            return float(time.removesuffix(unit)) * seconds
    raise ValueError(f"{time!r} is not a time, such as 100ms or 1s")


class Writer:
    """Sends messages to a table in batches. Leaving its `with` block sends the last batch."""

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
        """The number of messages that the server could not parse and left out."""

    @property
    def sequence(self) -> int:
        """The number of the next batch."""
        return self._sequence

    def send(self, row: Mapping[str, Any]) -> None:
        """Queues a row, and sends the batch once it is large enough."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False, default=str).encode()
        self._waiting.append(line)
        self._waiting_bytes += len(line) + 1
        if self._waiting_bytes >= _BATCH_BYTES:
            self.flush()

    def send_all(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Queues rows, as `send` does."""
        for row in rows:
            self.send(row)

    def flush(self, *, attempts: int = 5) -> Marks | None:
        """Sends the waiting rows and returns when they are durable; None if none were waiting.

        After a break it tries again, `attempts` times in all, with growing pauses.
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
