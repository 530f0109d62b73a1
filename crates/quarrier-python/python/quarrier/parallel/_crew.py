"""The workers of a run or a pool: starts, briefs, replaces and ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from quarrier.parallel import _blas
from quarrier.parallel._board import Board
from quarrier.parallel._failure import Death, crash_text
from quarrier.parallel._job import Job
from quarrier.parallel._system import other_threads
from quarrier.parallel._wire import Channel, pair
from quarrier.parallel._worker import flush, serve

if TYPE_CHECKING:
    from quarrier.parallel._pack import Packed

# A joined thread may still be exiting.
_PATIENCE_SECONDS = 0.05


class Reaper(Protocol):
    """Returns how a process ended. No other code may wait for the process."""

    def wait(self) -> Death:
        """Waits for the end of the process."""

    def close(self) -> None:
        """Closes its descriptors."""


class WorkerProcess:
    """A worker as its supervisor sees it."""

    def __init__(
        self,
        place: int,
        pidfd: int,
        channel: Channel,
        crash: int,
        reaper: Reaper,
        inherited: Job | None,
    ) -> None:
        self.place = place
        self.pidfd = pidfd
        self.channel = channel
        self.crash = crash
        self.inherited = inherited
        self._reaper = reaper
        _living.add(self)

    def kill(self) -> None:
        """Kills the process if it is still alive."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def wait(self) -> tuple[Death, str]:
        """Waits for its end; returns how it ended, and its last output after a crash."""
        death = self._reaper.wait()
        return death, crash_text(self.crash) if death.signal is not None else ""

    def close(self) -> None:
        """Closes its descriptors."""
        if self in _living:
            _living.discard(self)
            self.channel.close()
            self._reaper.close()
            os.close(self.pidfd)
            os.close(self.crash)


# The workers whose descriptors are open in this process; a forked child closes them.
_living: set[WorkerProcess] = set()


class _Child:
    """A child of this process."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd
        self._death: Death | None = None

    def wait(self) -> Death:
        if self._death is None:
            self._death = wait_for_child(self._pidfd)
        return self._death

    def close(self) -> None:
        pass


def wait_for_child(pidfd: int) -> Death:
    """Waits for a child; its status is unknown if other code has waited for it already."""
    try:
        ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    except ChildProcessError:
        return Death(None, None)
    if ended is None:
        return Death(None, None)
    if ended.si_code == os.CLD_EXITED:
        return Death(None, ended.si_status)
    return Death(ended.si_status, None)


# Threads that once outlived the preparations for a fork.
_staying: set[int] = set()


def spawn(place: int, inherited: tuple[Job, Board] | None) -> WorkerProcess:
    """Starts a worker: forked from this process if it has one thread, else from a clean parent.

    Threads that their library ends before a fork (OpenBLAS does) do not count. Only the fork shows
    whether they are such threads; meanwhile the child waits for its first command.
    """
    if threading.active_count() == 1 and not _staying & other_threads():
        worker = _fork(place, inherited)
        left = other_threads(_PATIENCE_SECONDS)
        if not left:
            return worker
        _staying.clear()
        _staying.update(left)
        worker.kill()
        worker.wait()
        worker.close()
    from quarrier.parallel._clean_parent import clean_parent

    return clean_parent().spawn(place)


def _fork(place: int, inherited: tuple[Job, Board] | None) -> WorkerProcess:
    flush()
    prepare = _blas.one_thread()
    parent = os.getpid()
    ours, theirs = pair()
    crash = os.memfd_create("crash", os.MFD_CLOEXEC)
    try:
        pid = _fork_quietly()
    except BaseException:
        ours.close()
        theirs.close()
        os.close(crash)
        raise
    if pid == 0:
        _become_worker(ours, theirs, place, parent, crash, inherited, prepare)
    theirs.close()
    pidfd = os.pidfd_open(pid)
    job = None if inherited is None else inherited[0]
    return WorkerProcess(place, pidfd, Channel(ours), crash, _Child(pidfd), job)


def _fork_quietly() -> int:
    with warnings.catch_warnings():
        # From 3.12 on, Python warns of threads at a fork, including those of OpenBLAS.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become_worker(
    ours: socket.socket,
    theirs: socket.socket,
    place: int,
    parent: int,
    crash: int,
    inherited: tuple[Job, Board] | None,
    prepare: Callable[[], None],
) -> None:
    try:
        ours.close()
        for worker in list(_living):
            worker.close()
        serve(Channel(theirs), place, parent, crash, inherited, prepare)
    finally:
        os._exit(1)


class Crew:
    """Up to `count` workers, one at each place. Callers must hold signals while they use it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.workers: dict[int, WorkerProcess] = {}
        self._job: tuple[Job, Board] | None = None
        self._packed: Packed | None = None
        self._inherit = False

    def take(self, job: Job, board: Board, inherit: bool) -> None:
        """Sets the job of the next run. Workers hired for it `inherit` it if they can."""
        self._job = (job, board)
        self._inherit = inherit

    def hire(self, place: int) -> WorkerProcess:
        """Starts a worker at a place, without briefing it."""
        worker = spawn(place, self._job if self._inherit else None)
        self.workers[place] = worker
        return worker

    def brief(self, worker: WorkerProcess, claims: bool = False) -> None:
        """Sends a worker the job unless it inherited it; if it `claims`, it starts at once."""
        assert self._job is not None
        if worker.inherited is self._job[0]:
            if claims:
                worker.channel.send(("claim",))
            return
        if self._packed is None:
            # Forked workers need no packed job, and their caller should not load a megabyte of
            # modules.
            from quarrier.parallel._pack import pack

            self._packed = pack(self._job)
        command = ("job", claims, self._packed.pickled, self._packed.apart)
        worker.channel.send(command, self._packed.descriptors)

    def dismiss(self, places: list[int]) -> None:
        """Ends the workers at these places and waits until they are gone."""
        workers = [self.workers.pop(place) for place in places if place in self.workers]
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.wait()
            worker.close()

    def finish(self) -> None:
        """Ends the run and frees its packed job."""
        self._job = None
        if self._packed is not None:
            self._packed.close()
            self._packed = None

    def close(self) -> None:
        """Ends all workers and waits until they are gone."""
        self.finish()
        self.dismiss(list(self.workers))
