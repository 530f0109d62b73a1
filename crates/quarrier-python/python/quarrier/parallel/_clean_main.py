"""The program of the clean parent: it only forks workers and reports how they ended.

It has one thread and imports only the modules that workers need: numpy and this package.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from typing import Any, NamedTuple, NoReturn

import quarrier.parallel._pack  # noqa: F401 (workers inherit it)
from quarrier.parallel._clean_parent import BORN, ENDED, UNKNOWN
from quarrier.parallel._crew import wait_for_child
from quarrier.parallel._wire import Channel, Closed
from quarrier.parallel._worker import serve


class _Forked(NamedTuple):
    """A worker. The caller closes its end of `status` when it no longer needs the worker."""

    pidfd: int
    status: socket.socket


class _Main:
    def __init__(self, channel: Channel, caller: int) -> None:
        self._channel = channel
        self._caller = caller
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        self._poll.register(caller, select.POLLIN)
        self._by_pidfd: dict[int, _Forked] = {}
        self._by_status: dict[int, _Forked] = {}

    def run(self) -> None:
        """Serves the caller until the caller ends; the workers then die with this process."""
        while True:
            # A fork comes last, because it may reuse the numbers of descriptors closed before it.
            ready = [descriptor for descriptor, _ in self._poll.poll()]
            for descriptor in sorted(ready, key=lambda ready: ready == self._channel.fileno()):
                if descriptor == self._caller:
                    return
                if descriptor == self._channel.fileno():
                    try:
                        (_, place, *surroundings), descriptors = self._channel.receive()
                    except Closed:
                        return
                    self._fork(place, surroundings, *descriptors)
                elif descriptor in self._by_pidfd:
                    self._bury(self._by_pidfd[descriptor])
                elif descriptor in self._by_status:
                    forked = self._by_status[descriptor]
                    self._poll.unregister(descriptor)
                    signal.pidfd_send_signal(forked.pidfd, signal.SIGKILL)

    def _fork(self, place: int, around: list[Any], end: int, far: int, crash: int) -> None:
        status = socket.socket(fileno=far)
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            with contextlib.suppress(ConnectionError):
                status.send(BORN.pack(0, error.errno or 1))
            status.close()
        else:
            if pid == 0:
                try:
                    self._become_worker(place, around, end, status, crash, parent)
                finally:
                    os._exit(1)
            forked = _Forked(os.pidfd_open(pid), status)
            self._by_pidfd[forked.pidfd] = forked
            self._by_status[status.fileno()] = forked
            self._poll.register(forked.pidfd, select.POLLIN)
            self._poll.register(status.fileno(), 0)
            with contextlib.suppress(ConnectionError):
                socket.send_fds(status, [BORN.pack(pid, 0)], [forked.pidfd])
        os.close(end)
        os.close(crash)

    def _become_worker(
        self,
        place: int,
        around: list[Any],
        end: int,
        status: socket.socket,
        crash: int,
        parent: int,
    ) -> NoReturn:
        status.close()
        self._channel.close()
        os.close(self._caller)
        for forked in self._by_pidfd.values():
            os.close(forked.pidfd)
            forked.status.close()
        folder, sys.path[:] = around
        with contextlib.suppress(OSError):
            os.chdir(folder)
        serve(Channel(socket.socket(fileno=end)), place, parent, crash, None, lambda: None)

    def _bury(self, forked: _Forked) -> None:
        death = wait_for_child(forked.pidfd)
        self._poll.unregister(forked.pidfd)
        with contextlib.suppress(KeyError):
            self._poll.unregister(forked.status.fileno())
        del self._by_pidfd[forked.pidfd], self._by_status[forked.status.fileno()]
        number = UNKNOWN if death.signal is None else death.signal
        status = UNKNOWN if death.status is None else death.status
        with contextlib.suppress(ConnectionError):
            forked.status.send(ENDED.pack(number, status))
        forked.status.close()
        os.close(forked.pidfd)


def main(descriptor: int, caller: int) -> NoReturn:
    """Serves the process `caller` over the socket it was started with."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.set_inheritable(descriptor, False)
    watched = os.pidfd_open(caller)
    serving = _Main(Channel(socket.socket(fileno=descriptor)), watched)
    try:
        if os.getppid() == caller:
            serving.run()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)
