"""Subscriptions to a server: live rows over server-sent events."""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from quarrier._errors import ServerError
from quarrier._native import Table

_SIGNS = {"snapshot": "=", "insert": "+", "delete": "-", "fault": "!", "progress": ">"}
_SILENCE_SECONDS = 30.0
"""A server silent for this long is dead, because it reports progress each second."""


class Change(NamedTuple):
    """A row of a subscription, or progress.

    `change` is `=` for a row that existed at the start, `+` for an added one, `-` for a removed
    one, `!` for one for which a condition has no value, and `>` for progress. `mark` is the
    position of its message in the order of commits: a subscription `since` that mark continues
    after it. When a row of a table with a key is replaced, the old row comes as `-` before the new
    one, with the same mark.
    """

    mark: int
    change: str
    row: dict[str, Any]


class Subscription:
    """An endless iterator over changes. Leaving its `with` block, or `close`, ends it."""

    def __init__(
        self,
        connect: Callable[[float | None], http.client.HTTPConnection],
        headers: dict[str, str],
        parameters: dict[str, str],
        *,
        shows_progress: bool,
        can_resume: bool,
        attempts: int,
    ) -> None:
        self._connect = connect
        self._headers = headers
        self._parameters = parameters
        self._shows_progress = shows_progress
        self._can_resume = can_resume
        self._attempts = attempts
        self._http: http.client.HTTPConnection | None = None
        self._answer: http.client.HTTPResponse | None = None
        self._is_closed = False
        self._held: list[tuple[str, dict[str, Any]]] = []
        """Rows that others with the same mark follow, with their kinds."""
        self._ready: list[Change] = []
        self.mark: int | None = None
        """The mark of the last change or progress report."""

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        while True:
            change = self._next()
            if change is None:
                raise StopIteration
            if change.change != ">" or self._shows_progress:
                return change

    def _next(self) -> Change | None:
        if self._ready:
            return self._ready.pop(0)
        failures = 0
        while not self._is_closed:
            try:
                event = self._event()
            except (http.client.HTTPException, OSError):
                failures += 1
                # The server sends them again.
                self._held.clear()
                self._disconnect()
                if self._is_closed:
                    break
                if not self._can_resume or failures >= self._attempts:
                    raise
                time.sleep(min(0.1 * 2**failures, 5.0))
                continue
            if event is None:
                return None
            kind, mark, data = event
            if kind == "error":
                self.close()
                raise ServerError(data.get("error", "the subscription ended"), data.get("code", ""))
            if mark is None:
                self._held.append((kind, data))
                continue
            self.mark = mark
            earlier = [Change(mark, _SIGNS.get(kind, ">"), row) for kind, row in self._held]
            self._held.clear()
            self._ready = [
                *earlier,
                Change(mark, _SIGNS.get(kind, ">"), {} if kind == "progress" else data),
            ]
            return self._ready.pop(0)
        return None

    def _opened(self) -> http.client.HTTPResponse:
        if self._answer is None:
            parameters = dict(self._parameters)
            if self.mark is not None:
                # Rows of the snapshot that have not arrived are sent as additions.
                parameters["as_of"] = str(self.mark)
                parameters["snapshot"] = "false"
            self._http = self._connect(_SILENCE_SECONDS)
            headers = {**self._headers, "Accept": "text/event-stream"}
            self._http.request(
                "GET", f"/subscribe?{urllib.parse.urlencode(parameters)}", None, headers
            )
            answer = self._http.getresponse()
            if answer.status != 200:
                content = answer.read()
                self.close()
                raise ServerError._of_answer(answer.status, answer.reason, content)
            self._answer = answer
        return self._answer

    def _event(self) -> tuple[str, int | None, dict[str, Any]] | None:
        """Returns the next event; None if the server has sent everything.

        A row has no mark if another with the same mark follows, such as the replacement of a
        removed row, so that a client that resumes after a break gets all of them.
        """
        answer = self._opened()
        kind, data = "", ""
        mark: int | None = None
        while True:
            line = answer.readline().decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if name == "id":
                mark = int(value)
            elif name == "event":
                kind = value
            elif name == "data":
                data += value
            elif not line and data:
                if kind == "error" and mark is None:
                    mark = self.mark or 0
                return kind, mark, json.loads(data)
            elif not line and answer.isclosed():
                # A server that was killed also ends the stream.
                last = self._parameters.get("up_to")
                if last is None or (self.mark or 0) < int(last):
                    raise http.client.IncompleteRead(b"")
                return None

    def _disconnect(self) -> None:
        connection, self._http, self._answer = self._http, None, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Ends the subscription."""
        self._is_closed = True
        self._disconnect()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def frames(subscription: Subscription, seconds: float) -> AsyncIterator[Table]:
    """Tables of the changes in each interval of `seconds`, with `mark` and `change` first."""
    import asyncio  # Other calls should not wait for it.

    def collect() -> tuple[bytes, bool]:
        lines: list[str] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until or not lines:
            change = subscription._next()
            if change is None:
                return "".join(lines).encode(), True
            if change.change != ">":
                row = {"mark": change.mark, "change": change.change, **change.row}
                lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        return "".join(lines).encode(), False

    with subscription:
        is_over = False
        while not is_over:
            content, is_over = await asyncio.to_thread(collect)
            if content:
                yield Table.from_messages(content, format="json")
