"""The exceptions of quarrier: one class for each way in which its Rust code can fail.

Each is a `QuarrierError`, and also an instance of Python's class of the same meaning, if there
is one. Errors of the operating system (a missing file, no rights) are Python's own `OSError`.
"""

from __future__ import annotations

from typing import TypeAlias


class QuarrierError(Exception):
    """The base of all errors of quarrier. The first argument is the message."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class PatternError(QuarrierError, ValueError):
    """A pattern is invalid, or a regex matched more bytes than `regex_max_length` allows."""

    def __init__(self, message: str, pattern: str, reason: str) -> None:
        super().__init__(message, pattern, reason)
        self.pattern = pattern
        self.reason = reason


class PatternLineError(QuarrierError, ValueError):
    """A line of a pattern file is invalid."""

    def __init__(self, message: str, line: int, reason: str) -> None:
        super().__init__(message, line, reason)
        self.line = line
        self.reason = reason


class PatternSetError(QuarrierError, ValueError):
    """The set of patterns is invalid: empty, or larger than a search supports."""


class EngineError(QuarrierError, ValueError):
    """No engine has this name, or it cannot serve these patterns or this machine."""


class DeviceError(QuarrierError, ValueError):
    """No device has this name, or it cannot hold the patterns."""


class NotReadableError(QuarrierError, OSError):
    """The path has no bytes to read, such as a folder."""

    def __init__(self, message: str, source: str, reason: str) -> None:
        super().__init__(message, source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


class ShrankError(QuarrierError, EOFError):
    """The source ended before the length that it had when it was opened."""

    def __init__(self, message: str, source: str, opened_bytes: int, ended_at: int) -> None:
        super().__init__(message, source, opened_bytes, ended_at)
        self.source = source
        self.opened_bytes = opened_bytes
        self.ended_at = ended_at


class PlanError(QuarrierError, ValueError):
    """A size, range or count that cannot be used."""


class FolderError(QuarrierError, ValueError):
    """A folder that cannot be carved into: not empty, or started with other options."""


class NoRoomError(QuarrierError, MemoryError):
    """There is less memory, or disk for a measurement, than requested.

    Both sizes are 0 if unknown.
    """

    def __init__(self, message: str, asked_bytes: int, left_bytes: int) -> None:
        super().__init__(message, asked_bytes, left_bytes)
        self.asked_bytes = asked_bytes
        self.left_bytes = left_bytes


class MeasurementError(QuarrierError, ArithmeticError):
    """A measurement computed, read or received wrong data."""

    def __init__(self, message: str, measurement: str) -> None:
        super().__init__(message, measurement)
        self.measurement = measurement


class CompressedError(QuarrierError, OSError):
    """The compressed bytes of a source are damaged."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message, source)
        self.source = source

    def __str__(self) -> str:
        return str(self.args[0])


class ColumnFileError(QuarrierError, OSError):
    """An Arrow or Parquet file is damaged, or is not one."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message, source)
        self.source = source

    def __str__(self) -> str:
        return str(self.args[0])


class DictionaryError(QuarrierError, ValueError):
    """A FIX data dictionary at `path` cannot be used."""

    def __init__(self, message: str, path: object) -> None:
        super().__init__(message, path)
        self.path = path


class ArrowColumnError(QuarrierError, TypeError):
    """A table cannot hold a column of the Arrow data."""

    def __init__(self, message: str, column: str, reason: str) -> None:
        super().__init__(message, column, reason)
        self.column = column
        self.reason = reason


class QueryError(QuarrierError, ValueError):
    """A statement is invalid or cannot be answered; `line` and `column` count from 1.

    Both are 0 if the position is unknown.
    """

    def __init__(self, message: str, line: int, column: int, reason: str) -> None:
        super().__init__(message, line, column, reason)
        self.line = line
        self.column = column
        self.reason = reason


class UnknownColumnError(QueryError, LookupError):
    """A statement names a column that the table does not have."""


class UnansweredError(QueryError):
    """A statement needs joins, grouping or subqueries, which a scan of one table lacks."""


class NotInstalledError(UnansweredError, ImportError):
    """A statement needs the package of `pip install 'quarrier[sql]'`."""


class RowError(QuarrierError, ArithmeticError):
    """A statement has no value for a row, and the result depends on it.

    Rows count from 0; None if the row is unknown.
    """

    def __init__(self, message: str, row: int | None) -> None:
        super().__init__(message, row)
        self.row = row


class SourceWarning(UserWarning):
    """A notice to read before trusting the bytes of a source."""


class UnreadableWarning(SourceWarning):
    """Part of a source could not be read, and the answer lacks it."""


class BufferLayoutError(QuarrierError, BufferError):
    """A buffer is not contiguous, not writable, or not of the requested type."""


class OffsetOverflowError(QuarrierError, OverflowError):
    """An invalid offset, or a range beyond the greatest one, 2**64 - 1.

    `length` is None if the number itself is the cause.
    """

    def __init__(self, message: str, offset: int, length: int | None) -> None:
        super().__init__(message, offset, length)
        self.offset = offset
        self.length = length


class NotHeldError(QuarrierError, LookupError):
    """A read of bytes that are not held; `missing` is the first missing range."""

    def __init__(self, message: str, offset: int, length: int, missing: tuple[int, int]) -> None:
        super().__init__(message, offset, length, missing)
        self.offset = offset
        self.length = length
        self.missing = missing


class ConflictError(QuarrierError, ValueError):
    """A write differs from the bytes held, first at `offset`. Nothing was written."""

    def __init__(self, message: str, offset: int, held: int, given: int) -> None:
        super().__init__(message, offset, held, given)
        self.offset = offset
        self.held = held
        self.given = given


class BeyondLengthError(QuarrierError, EOFError):
    """A range passes the known end of the file."""

    def __init__(self, message: str, offset: int, length: int, file_length: int) -> None:
        super().__init__(message, offset, length, file_length)
        self.offset = offset
        self.length = length
        self.file_length = file_length


class PinnedError(QuarrierError, BufferError):
    """A call would erase pinned bytes, or unpin bytes that are not pinned."""

    def __init__(self, message: str, offset: int, length: int) -> None:
        super().__init__(message, offset, length)
        self.offset = offset
        self.length = length


class CorruptError(QuarrierError, ValueError):
    """Stored bytes are not those of a sparse file or store."""

    def __init__(self, message: str, at: int, reason: str) -> None:
        super().__init__(message, at, reason)
        self.at = at
        self.reason = reason


class UnknownFileError(QuarrierError, KeyError):
    """The store has no file of this name."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message, id)
        self.id = id


class DuplicateFileError(QuarrierError, ValueError):
    """The store has a file of this name already."""

    def __init__(self, message: str, id: str) -> None:
        super().__init__(message, id)
        self.id = id


class RemoteError(QuarrierError, OSError):
    """A remote source cannot be opened or read; `source` is its URL without secrets."""

    def __init__(self, message: str, source: str | None) -> None:
        super().__init__(message, source)
        self.source = source

    def __str__(self) -> str:
        return str(self.args[0])


class RemoteNotFoundError(RemoteError, FileNotFoundError):
    """The server says that there is no such object."""


class RemoteDeniedError(RemoteError, PermissionError):
    """The server refuses access: credentials are missing, wrong or expired."""


class RemoteChangedError(RemoteError):
    """The object has changed since it was opened."""


class RemoteRangesError(RemoteError):
    """The server ignores range requests, and the object is too large to read whole."""


# The indices of a chunk; for a tile, those of each axis.
Where: TypeAlias = tuple[int, int] | tuple[tuple[int, int], ...]


class WorkerError(QuarrierError):
    """A worker of `quarrier.parallel` failed at `range` (None if unknown).

    The range is half open, in indices of the first axis, or in bytes for `scan`. For `stencil` it
    is a tuple of such ranges, one for each axis.
    """

    def __init__(self, message: str, range: Where | None) -> None:
        super().__init__(message, range)
        self.range = range


class WorkerDiedError(WorkerError):
    """A worker was killed by `signal`, or exited with `status`; the other one is None."""

    def __init__(
        self, message: str, signal: int | None, status: int | None, range: Where | None
    ) -> None:
        super().__init__(message, range)
        self.args = (message, signal, status, range)
        self.signal = signal
        self.status = status


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A kernel took longer for `range` than the timeout allows."""

    def __str__(self) -> str:
        return str(self.args[0])


class KernelError(WorkerError):
    """A kernel raised an exception that cannot be pickled; the message describes it."""


class RegionGoneError(QuarrierError, LookupError):
    """A pickled shared array was opened after its owner, the process `pid`, ended or dropped it."""

    def __init__(self, message: str, pid: int) -> None:
        super().__init__(message, pid)
        self.pid = pid


class ServerError(QuarrierError):
    """The server refused a statement or messages. `code` is PostgreSQL's, such as `42P01`."""

    def __init__(self, message: str, code: str, hint: str | None = None) -> None:
        super().__init__(message, code, hint)
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]} ({self.hint})" if self.hint else str(self.args[0])

    @classmethod
    def _of_answer(cls, status: int, reason: str, content: bytes) -> ServerError:
        """Makes the error for an answer with another status than 200."""
        # Programs that meet no server need no JSON.
        import json

        try:
            said = json.loads(content)
            return cls(said["error"], said["code"], said.get("hint"))
        except (ValueError, KeyError, TypeError):
            return cls(f"{status} {reason}", "")
