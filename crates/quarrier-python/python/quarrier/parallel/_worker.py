"""The worker's side of a run: a loop over the supervisor's commands.

    ("job", claims, pickled, apart)    unpack a job with its board; if it claims, continue as for
                                       "claim", else send nothing
    ("claim",)                         run chunks from the board, then send "idle"
    ("run", index, *which)             run this chunk, then send "idle"
    ("leave",)                         end

Its messages: ("value", index, value), ("error", index, exception), ("idle",).
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from quarrier._native import keep_freed_memory
from quarrier.parallel._array import keep_handed
from quarrier.parallel._board import Board
from quarrier.parallel._failure import wrap
from quarrier.parallel._job import Job
from quarrier.parallel._nested import enter_worker
from quarrier.parallel._system import die_with_parent
from quarrier.parallel._wire import Channel, Closed

# The wait for a command before a check whether the run is over.
_REST_SECONDS_MIN = 0.001
_REST_SECONDS_MAX = 0.064


def serve(
    channel: Channel,
    place: int,
    parent: int,
    crash: int,
    inherited: tuple[Job, Board] | None,
    prepare: Callable[[], None],
) -> NoReturn:
    """Runs commands until the supervisor is gone or says "leave", in a process forked for it."""
    status = 1
    try:
        _settle(parent, crash)
        prepare()
        Worker(channel, place, inherited).obey()
        status = 0
    except Closed:
        status = 0
    except SystemExit as error:
        # The exit status that sys.exit() would derive from its argument.
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        flush()
        os._exit(status & 0xFF)


def _settle(parent: int, crash: int) -> None:
    """Makes the forked copy of a process a worker, with default signal handlers, deaf to SIGINT."""
    die_with_parent(parent)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    faulthandler.enable(crash)
    # Kernels allocate the same sizes again and again.
    keep_freed_memory()
    enter_worker()
    keep_handed()
    # Exclude earlier objects from garbage collection, which would touch and so copy their pages.
    gc.freeze()
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def flush() -> None:
    """Flushes the kernel's output."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


class Worker:
    """A worker and its current job."""

    def __init__(self, channel: Channel, place: int, inherited: tuple[Job, Board] | None) -> None:
        self._channel = channel
        self._place = place
        self._job = inherited

    def obey(self) -> None:
        """Runs commands until "leave"."""
        while True:
            self._rest()
            (command, *rest), descriptors = self._channel.receive()
            if command == "leave":
                return
            if command == "job":
                claims, pickled, apart = rest
                self._job = None
                keep_handed()
                if not self._load(pickled, apart, descriptors):
                    return
                if not claims:
                    continue
            if not self._work(None if command != "run" else (rest[0], rest[1:])):
                return
            flush()
            self._channel.send(("idle",))

    def _rest(self) -> None:
        """Waits for a command; drops the job and its arrays when its run is over.

        A message to say so would cost the caller as much as starting a run.
        """
        pause = _REST_SECONDS_MIN
        while self._job is not None and not self._channel.has_news(pause):
            if self._job[1].is_closed():
                self._job = None
            pause = min(2 * pause, _REST_SECONDS_MAX)

    def _work(self, assigned: tuple[int, Any] | None) -> bool:
        """Runs the assigned chunk, or all chunks from the board; False as in `_run`."""
        assert self._job is not None
        job, board = self._job
        if assigned is not None:
            return self._run(job, board, *assigned)
        return all(self._run(job, board, index, ()) for index in board.claims())

    def _load(self, pickled: bytes | None, apart: Any, descriptors: list[int]) -> bool:
        try:
            from quarrier.parallel._pack import unpack

            self._job = unpack(pickled, apart, descriptors)
        except Exception as error:
            self._channel.send(("error", None, wrap(error)))
            return False
        return True

    def _run(self, job: Job, board: Board, index: int, which: Any) -> bool:
        """Runs a chunk; False if the kernel failed, after which the supervisor ends this worker."""
        board.begin(self._place, index)
        try:
            value = job.run(index, *which)
            message = _message(index, value) if job.has_values else None
        except SystemExit:
            raise
        except BaseException as error:
            self._channel.send(("error", index, wrap(error)))
            return False
        if message is not None:
            self._channel.send_bytes(message)
        board.end(index)
        return True


def _message(index: int, value: Any) -> bytes:
    try:
        return pickle.dumps(("value", index, value), 5)
    except Exception:
        import cloudpickle

        data: bytes = cloudpickle.dumps(("value", index, value), 5)
        return data
