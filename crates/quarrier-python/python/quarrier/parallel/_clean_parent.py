"""Starts workers for a caller that cannot be forked safely because it has threads.

A process with one thread, started once, forks them on request. It ends with the caller.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import struct
import subprocess
import sys
import threading

from quarrier._errors import WorkerError
from quarrier.parallel._crew import WorkerProcess
from quarrier.parallel._failure import Death
from quarrier.parallel._system import signals_held
from quarrier.parallel._wire import Channel, Closed, pair

# Its reports on a worker: the process ID, or the error number; and how the worker ended.
BORN = struct.Struct("<ii")
ENDED = struct.Struct("<ii")
UNKNOWN = -1

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_PROGRAM = """import sys
sys.path[:] = {paths!r}
from quarrier.parallel._clean_main import main
main({descriptor}, {caller})
"""


class _Status:
    """The socket on which the clean parent reports how a worker ended."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._death: Death | None = None

    def wait(self) -> Death:
        if self._death is None:
            self._death = Death(None, None)
            with contextlib.suppress(ConnectionResetError):
                data = self._socket.recv(ENDED.size)
                if len(data) == ENDED.size:
                    number, status = ENDED.unpack(data)
                    self._death = Death(_known(number), _known(status))
        return self._death

    def close(self) -> None:
        self._socket.close()


def _known(number: int) -> int | None:
    return None if number == UNKNOWN else number


def _paths() -> list[str]:
    return [os.path.abspath(path) for path in sys.path]


class CleanParent:
    """The clean parent, as its caller sees it."""

    def __init__(self) -> None:
        if not sys.executable:
            raise WorkerError("sys.executable is empty: no Python to start workers with", None)
        ours, theirs = pair()
        program = _PROGRAM.format(
            paths=_paths(),
            descriptor=theirs.fileno(),
            caller=os.getpid(),
        )
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        # The clean parent will ignore interrupts, but until it is set up it must not receive one.
        with theirs, signals_held():
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", program],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1")},
            )
        self.pid = self._process.pid
        self._channel = Channel(ours)
        self._lock = threading.Lock()

    def spawn(self, place: int) -> WorkerProcess:
        """Requests a fork of a worker; raises `Closed` if the clean parent is gone."""
        ours, theirs = pair()
        status, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        crash = os.memfd_create("crash", os.MFD_CLOEXEC)
        with signals_held():
            try:
                with theirs, far, self._lock:
                    descriptors = (theirs.fileno(), far.fileno(), crash)
                    self._channel.send(("fork", place, os.getcwd(), _paths()), descriptors)
                pidfd = _receive_birth(status)
            except BaseException:
                ours.close()
                status.close()
                os.close(crash)
                raise
            return WorkerProcess(place, pidfd, Channel(ours), crash, _Status(status), None)

    def close(self) -> None:
        """Ends the process and all its workers."""
        self._channel.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _receive_birth(status: socket.socket) -> int:
    try:
        data, descriptors, _, _ = socket.recv_fds(status, BORN.size, 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        raise Closed from None
    if len(data) != BORN.size:
        raise Closed
    _, error = BORN.unpack(data)
    if error:
        raise OSError(error, f"no worker could be forked: {os.strerror(error)}")
    return descriptors[0]


_lock = threading.Lock()
_started: tuple[int, CleanParent] | None = None


class _Parent:
    """Spawns from the clean parent, and starts another one if it has died."""

    def spawn(self, place: int) -> WorkerProcess:
        for again in (False, True):
            try:
                return _current(again).spawn(place)
            except Closed:
                continue
        raise WorkerError("the process that forks workers does not start; see its errors", None)


def clean_parent() -> _Parent:
    """Returns the clean parent of this process."""
    return _Parent()


def _current(again: bool) -> CleanParent:
    global _started
    with _lock:
        mine = _started is not None and _started[0] == os.getpid()
        if again and mine:
            end()
        if again or not mine:
            _started = (os.getpid(), CleanParent())
        assert _started is not None
        return _started[1]


def end() -> None:
    """Ends the clean parent of this process, if it has one."""
    global _started
    if _started is not None and _started[0] == os.getpid():
        _started[1].close()
        _started = None


atexit.register(end)
