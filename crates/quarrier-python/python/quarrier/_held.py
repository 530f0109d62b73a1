"""Sources that stay open between reads, for file systems and stores."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from quarrier._errors import RemoteChangedError
from quarrier._file import First, SourceFile, settings_of

T = TypeVar("T")

# A start and an end as in a slice: negative ones count from the end of the source.
Span: TypeAlias = tuple[int | None, int | None]

# The number of remote sources that stay open, because opening one costs a request.
_HELD_MAX = 64


class _Slot:
    """A source, and the lock under which it is opened, so that it is opened once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.file: SourceFile | None = None


class HeldFiles:
    """Opens sources with the options of `quarrier.open`, and keeps remote ones open."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings_of(**settings)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._slots: OrderedDict[str, _Slot] = OrderedDict()
        self._process = os.getpid()

    def using(self, name: str, read: Callable[[SourceFile], T], first: First | None = None) -> T:
        """Returns the result of `read` for a source.

        If the source must be opened first, the request for that asks for the `first` bytes.
        """
        if "://" not in name:
            return read(SourceFile(name, self.settings))
        slot = self._slot(name)
        while True:
            with slot.lock:
                file, is_new = slot.file, slot.file is None
                if file is None:
                    file = slot.file = SourceFile(name, self.settings, first)
            try:
                return read(file)
            except RemoteChangedError:
                if is_new:
                    raise
            # The object has changed: open its new version, and read all spans from that.
            with slot.lock:
                if slot.file is file:
                    slot.file = None

    def _slot(self, name: str) -> _Slot:
        if self._process != os.getpid():
            # A forked child may have inherited a lock that a thread of its parent holds.
            self._forget()
        with self._lock:
            slot = self._slots.setdefault(name, _Slot())
            self._slots.move_to_end(name)
            while len(self._slots) > _HELD_MAX:
                self._slots.popitem(last=False)
        return slot

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.settings,)


def _again(settings: dict[str, Any]) -> HeldFiles:
    return HeldFiles(**settings)


def range_of(file: SourceFile, start: int | None, end: int | None) -> tuple[int, int]:
    """The offset and length of a span in a source."""
    first, last, _ = slice(start, end).indices(file.size)
    return first, max(0, last - first)


def read_spans(file: SourceFile, spans: Sequence[Span]) -> list[bytes]:
    """Reads spans of a source."""
    return file.read_ranges([range_of(file, *span) for span in spans])
