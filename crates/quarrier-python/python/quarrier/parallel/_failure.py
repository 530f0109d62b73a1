"""Passes a kernel's exception to the caller, and describes how a worker died."""

from __future__ import annotations

import io
import os
import pickle
import signal
from typing import Any, NamedTuple

from quarrier._errors import KernelError, Where, WorkerDiedError, WorkerTimeoutError

_TEXT_BYTES_MAX = 64 << 10


class WorkerTraceback(Exception):  # noqa: N818 (the cause of an error, for its text alone)
    """The traceback of an exception in the worker where it was raised, as text."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Death(NamedTuple):
    """How a process ended: by a signal or with a status; both are None if unknown."""

    signal: int | None
    status: int | None


def wrap(error: BaseException) -> tuple[bytes | None, str, str]:
    """Converts a worker's exception to bytes, if it can be pickled, and to text."""
    # Loaded only for failures, because it takes memory.
    import traceback

    text = "".join(traceback.format_exception(error))
    said = "".join(traceback.format_exception_only(error)).strip()
    return _pickled(error), said, text


def unwrap(wrapped: tuple[bytes | None, str, str], where: Where) -> BaseException:
    """Restores the exception that `wrap` converted in a worker."""
    pickled, said, text = wrapped
    error: Any = None
    if pickled is not None:
        try:
            error = _Unpickler(io.BytesIO(pickled)).load()
        except Exception:
            error = None
    if not isinstance(error, BaseException):
        error = KernelError(f"the kernel raised {said}", where)
    mark(error, where)
    error.__cause__ = WorkerTraceback(text)
    found: BaseException = error
    return found


def mark(error: BaseException, where: Where) -> None:
    """Adds the kernel's indices to an exception."""
    try:
        error.quarrier_range = where  # type: ignore[attr-defined]
    except Exception:
        return
    error.add_note(f"quarrier.parallel: in the kernel at {_text_of(where)}")


def died(death: Death, where: Where | None, crash: str) -> WorkerDiedError:
    """The exception for a worker that died."""
    if death.signal is not None:
        how = f"was killed by {_name(death.signal)}"
        if death.signal == signal.SIGKILL:
            how += " (the system does that when memory runs out)"
    elif death.status is not None:
        how = f"exited with status {death.status}"
    else:
        how = "ended, and its status is not known"
    at = "between chunks" if where is None else f"in the kernel at {_text_of(where)}"
    error = WorkerDiedError(f"a worker {how} {at}", death.signal, death.status, where)
    if crash:
        error.__cause__ = WorkerTraceback(crash)
    return error


def late(seconds: float, where: Where) -> WorkerTimeoutError:
    """The exception for a kernel that took too long."""
    at = _text_of(where)
    return WorkerTimeoutError(f"the kernel at {at} took longer than {seconds:g} s", where)


def _text_of(where: Where) -> str:
    first, *rest = where
    if isinstance(first, int):
        return f"[{first}, {rest[0]})"
    return "[" + ", ".join(f"{axis[0]}:{axis[1]}" for axis in (first, *rest)) + "]"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def crash_text(descriptor: int) -> str:
    """Reads the crash file of a dead worker."""
    text = os.pread(descriptor, _TEXT_BYTES_MAX, 0)
    return text.decode(errors="replace")


def _pickled(error: BaseException) -> bytes | None:
    """Pickles an exception and checks the result; cloudpickle can do more, but copies classes."""
    for dump in (_dump, _dump_by_value):
        try:
            data = dump(error)
            again = _Unpickler(io.BytesIO(data)).load()
        except Exception:
            continue
        if isinstance(again, BaseException):
            return data
    return None


def _dump(error: BaseException) -> bytes:
    target = io.BytesIO()
    _Pickler(target, 5).dump(error)
    return target.getvalue()


def _dump_by_value(error: BaseException) -> bytes:
    import cloudpickle

    data: bytes = cloudpickle.dumps(error)
    return data


class _Pickler(pickle.Pickler):
    """Pickles exception classes that no module exports by their address.

    A forked worker has such a class at the same address as the caller.
    """

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, type) and "<locals>" in value.__qualname__:
            return id(value), value.__module__, value.__qualname__
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        address, module, name = pid
        waiting: list[type[BaseException]] = [BaseException]
        seen = set[type]()
        while waiting:
            kind = waiting.pop()
            if id(kind) == address and (kind.__module__, kind.__qualname__) == (module, name):
                return kind
            for below in type.__subclasses__(kind):
                if below not in seen:
                    seen.add(below)
                    waiting.append(below)
        raise pickle.UnpicklingError(f"the class {module}.{name} is not of this process")
