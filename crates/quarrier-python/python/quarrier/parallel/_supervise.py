"""The supervisor of a run: listens to workers, enforces timeouts, and replaces dead workers."""

from __future__ import annotations

import contextlib
import selectors
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from quarrier._errors import WorkerTimeoutError
from quarrier.parallel._board import Board
from quarrier.parallel._crew import Crew, WorkerProcess
from quarrier.parallel._failure import died, late, unwrap
from quarrier.parallel._job import Job
from quarrier.parallel._progress import Progress
from quarrier.parallel._system import Hold
from quarrier.parallel._wire import Closed

_RETRIES = 1
_WATCH_SECONDS = 0.2
# A signal just before a wait does not interrupt the wait.
_LISTEN_SECONDS = 0.5
# A worker that was not forked with its job has to import modules before its first chunk.
_SETUP_SECONDS_MIN = 60.0
# The time for a pool's other workers to stop after a failure, before they are replaced.
_GRACE_SECONDS = 0.2


class Rules(NamedTuple):
    """The failure policy ("raise" or "retry"), seconds allowed for a chunk, and the progress."""

    on_error: str
    timeout: float | None
    progress: Progress | None


class Run:
    """One job, run by a crew whose workers claim chunks."""

    def __init__(self, crew: Crew, job: Job, board: Board, rules: Rules, hold: Hold) -> None:
        self.crew = crew
        self.job = job
        self.board = board
        self.rules = rules
        self._hold = hold
        self.on_value: Callable[[int, Any], None] = lambda index, value: None
        self._selector = selectors.DefaultSelector()
        # The number of commands without an "idle" yet, by place.
        self._pending: Counter[int] = Counter()
        self._commanded_at: dict[int, float] = {}
        self._tries: Counter[int] = Counter()
        self._vanished = 0

    def drive(self) -> None:
        """Runs the job to its end, or raises its error; workers may still be busy then."""
        try:
            self._begin()
            while not self._is_finished():
                with self._hold.opened():
                    ready = self._selector.select(self._pause())
                for key, _ in ready:
                    key.data()
                self._check_times()
                self._report(self.board.count_done())
            self._report(None)
        finally:
            self.board.cancel()
            self._selector.close()

    def _report(self, done: int | None) -> None:
        """Reports the progress of the run; None: at its end."""
        progress = self.rules.progress
        if progress:
            with self._hold.opened():
                progress.finish() if done is None else progress.show(done)

    def settle(self) -> None:
        """After a failure in a pool, ends the workers that do not stop in time."""
        until = time.monotonic() + _GRACE_SECONDS
        for place, worker in list(self.crew.workers.items()):
            while self._pending[place] > 0 and time.monotonic() < until:
                self._pending[place] -= sum(said[0] == "idle" for said in worker.channel.arrived())
                if worker.channel.ended:
                    break
                if self._pending[place] > 0:
                    time.sleep(0.001)
        self.crew.dismiss([place for place, count in self._pending.items() if count > 0])

    def _begin(self) -> None:
        for place in range(self.crew.count):
            worker = self.crew.workers.get(place) or self.crew.hire(place)
            self._expect_idle(worker)
            with contextlib.suppress(Closed):
                self.crew.brief(worker, claims=True)
        # They have started by now.
        for worker in self.crew.workers.values():
            self._listen_to(worker)

    def _is_finished(self) -> bool:
        if self._pending.total() > 0:
            return False
        missing = self.board.missing()
        for number, index in enumerate(missing):
            # A worker died with chunks that it had claimed but not started.
            self._command(self._worker_at(number % self.crew.count), "run", index)
        return not missing

    def _worker_at(self, place: int) -> WorkerProcess:
        """The worker at a place, or a new one if it has died."""
        worker = self.crew.workers.get(place)
        if worker is None:
            worker = self.crew.hire(place)
            self._engage(worker)
        return worker

    def _engage(self, worker: WorkerProcess) -> None:
        """Sends a worker the job, and listens to it."""
        # A dead worker is noticed by its pidfd.
        with contextlib.suppress(Closed):
            self.crew.brief(worker)
        self._listen_to(worker)

    def _listen_to(self, worker: WorkerProcess) -> None:
        read = selectors.EVENT_READ
        self._selector.register(worker.channel, read, lambda: self._hear(worker))
        self._selector.register(worker.pidfd, read, lambda: self._lose(worker))

    def _expect_idle(self, worker: WorkerProcess) -> None:
        """Records a command that the worker will answer with "idle"."""
        self._pending[worker.place] += 1
        self._commanded_at[worker.place] = time.monotonic()

    def _command(self, worker: WorkerProcess, *command: Any) -> None:
        self._expect_idle(worker)
        with contextlib.suppress(Closed):
            worker.channel.send(command)

    def _is_mine(self, worker: WorkerProcess) -> bool:
        return self.crew.workers.get(worker.place) is worker

    def _hear(self, worker: WorkerProcess) -> None:
        """Handles the messages of a worker."""
        if not self._is_mine(worker):
            return
        for message, *rest in worker.channel.arrived():
            if message == "idle":
                self._pending[worker.place] -= 1
                self._rest(worker)
            elif message == "value":
                with self._hold.opened():
                    self.on_value(*rest)
            else:
                index, wrapped = rest
                where = (0, 0) if index is None else self.job.bounds(index)
                self._fail(worker, index, unwrap(wrapped, where))
                return
        if worker.channel.ended:
            with contextlib.suppress(KeyError):
                self._selector.unregister(worker.channel)

    def _rest(self, worker: WorkerProcess) -> None:
        """Handles an "idle": the worker has finished a command."""

    def _lose(self, worker: WorkerProcess) -> None:
        """Handles the end of a worker, after its last messages."""
        self._hear(worker)
        if not self._is_mine(worker):
            return
        death, crash = worker.wait()
        at = self.board.at(worker.place)
        if at is not None:
            self._fail(worker, at[0], died(death, self.job.bounds(at[0]), crash))
        elif self._pending[worker.place] == 0:
            self._drop(worker)
        else:
            last = self.board.last(worker.place)
            where = None if last is None else self.job.bounds(last)
            self._vanished += 1
            unluckily = self._vanished <= self.crew.count
            self._fail(worker, None, died(death, where, crash), retry=unluckily)

    def _check_times(self) -> None:
        timeout = self.rules.timeout
        if timeout is None:
            return
        for place, worker in list(self.crew.workers.items()):
            if self._pending[place] == 0:
                continue
            at = self.board.at(place)
            if at is not None and at[1] > timeout:
                index = at[0]
                self._stop(worker)
                self._fail(worker, index, late(timeout, self.job.bounds(index)))
            elif at is None and self.board.last(place) is None:
                waited = time.monotonic() - self._commanded_at[place]
                if waited > max(timeout, _SETUP_SECONDS_MIN):
                    self._stop(worker)
                    raise WorkerTimeoutError("a worker did not start its first chunk in time", None)

    def _stop(self, worker: WorkerProcess) -> None:
        worker.kill()
        worker.wait()

    def _fail(
        self, worker: WorkerProcess, index: int | None, error: BaseException, retry: bool = False
    ) -> None:
        """Removes a failed worker: raises the error, or lets another worker retry."""
        if index is not None:
            retry = self._tries[index] < _RETRIES
            self._tries[index] += 1
        if not retry or self.rules.on_error != "retry":
            self._drop(worker)
            raise error
        self._replace(worker, index)

    def _drop(self, worker: WorkerProcess) -> None:
        for watched in (worker.channel, worker.pidfd):
            with contextlib.suppress(KeyError):
                self._selector.unregister(watched)
        self.crew.dismiss([worker.place])
        self._pending[worker.place] = 0
        self.board.forget(worker.place)

    def _replace(self, worker: WorkerProcess, index: int | None) -> None:
        """Hires another worker, which starts with the failed chunk."""
        self._drop(worker)
        successor = self.crew.hire(worker.place)
        self._engage(successor)
        if index is not None:
            self._command(successor, "run", index)
        self._command(successor, "claim")

    def _pause(self) -> float:
        """The longest wait for news, in seconds; short enough that a lost signal does no harm."""
        pauses = [_LISTEN_SECONDS]
        if self.rules.timeout is not None:
            pauses.append(min(self.rules.timeout / 4, _WATCH_SECONDS))
        if self.rules.progress:
            pauses.append(self.rules.progress.seconds)
        return min(pauses)
