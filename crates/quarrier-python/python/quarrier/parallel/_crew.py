"""The workers of a run or a pool: starts, assigns, replaces and ends them."""

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

# A thread that was joined may not have ended yet.
_PATIENCE_SECONDS = 0.05


class Reaper(Protocol):
    """Tells how a process ended, after it has; nobody else may ask the system for that."""

    def wait(self) -> Death:
        """Waits for the end of the process."""

    def close(self) -> None:
        """Gives up what it holds."""


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
        """Ends the process at once, if it has not ended yet."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def wait(self) -> tuple[Death, str]:
        """Waits until it has ended; how it did, and its last words if it crashed."""
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


# Those whose descriptors this process has open: a forked child closes them.
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
    """Waits for the end of a child; somebody else may have asked already."""
    try:
        ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    except ChildProcessError:
        return Death(None, None)
    if ended is None:
        return Death(None, None)
    if ended.si_code == os.CLD_EXITED:
        return Death(None, ended.si_status)
    return Death(ended.si_status, None)


# Threads that have once been seen to outlive the preparations for a fork.
_staying: set[int] = set()


def spawn(place: int, inherited: tuple[Job, Board] | None) -> WorkerProcess:
    """A new worker: forked from this process if it has no other threads, else from a clean one.

    Threads of libraries that end them for a fork (OpenBLAS does) do not count. Whether they are
    such threads shows only in the fork; the child waits meanwhile for its first command.
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
        # From 3.12 on Python warns of threads, those of OpenBLAS too.
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
    """Up to `count` workers, one at each place. Signals are to be held while it is used."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.workers: dict[int, WorkerProcess] = {}
        self._job: tuple[Job, Board] | None = None
        self._packed: Packed | None = None
        self._inherit = False

    def take(self, job: Job, board: Board, inherit: bool) -> None:
        """The job of the next run. Workers hired for it `inherit` it if they can."""
        self._job = (job, board)
        self._inherit = inherit

    def hire(self, place: int) -> WorkerProcess:
        """A new worker without a job."""
        worker = spawn(place, self._job if self._inherit else None)
        self.workers[place] = worker
        return worker

    def brief(self, worker: WorkerProcess, claims: bool = False) -> None:
        """Tells a worker of the job, if it was not forked with it; to begin with it, if it
        `claims`."""
        assert self._job is not None
        if worker.inherited is self._job[0]:
            if claims:
                worker.channel.send(("claim",))
            return
        if self._packed is None:
            # Forked workers need no jobs as bytes, and their caller not a megabyte of modules.
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
        """The run is over: what was kept for it is given up."""
        self._job = None
        if self._packed is not None:
            self._packed.close()
            self._packed = None

    def close(self) -> None:
        """Ends all workers and waits until they are gone."""
        self.finish()
        self.dismiss(list(self.workers))
