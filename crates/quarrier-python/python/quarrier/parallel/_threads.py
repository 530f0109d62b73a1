"""`mode="thread"`: runs a job on threads, for kernels that release the interpreter's lock."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from quarrier.parallel._failure import late, mark
from quarrier.parallel._job import Job
from quarrier.parallel._nested import enter_thread
from quarrier.parallel._supervise import Rules

_WATCH_SECONDS = 0.05
_GRACE_SECONDS = 0.5

# A chunk, and the further arguments of its `run`.
Chunk = tuple[int, tuple[Any, ...]]


class Threads:
    """One job on threads, which take chunks from `chunks` under a lock."""

    def __init__(
        self,
        job: Job,
        chunks: Iterator[Chunk],
        count: int,
        rules: Rules,
        on_value: Callable[[int, Any], None] | None,
    ) -> None:
        self._job = job
        self._chunks = chunks
        self._rules = rules
        self._on_value = on_value
        self._lock = threading.Lock()
        self._cancelled = False
        self._said: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._at: dict[int, tuple[int, float]] = {}
        self._threads = [
            threading.Thread(target=self._work, args=(place,), daemon=True, name="quarrier worker")
            for place in range(count)
        ]

    def drive(self) -> None:
        """Runs the job to its end, or raises its error."""
        for thread in self._threads:
            thread.start()
        try:
            self._listen(len(self._threads))
        except BaseException:
            self._cancelled = True
            until = time.monotonic() + _GRACE_SECONDS
            for thread in self._threads:
                thread.join(max(0.0, until - time.monotonic()))
            raise
        if self._rules.progress:
            self._rules.progress.finish()

    def _listen(self, working: int) -> None:
        done = 0
        while working:
            try:
                kind, *rest = self._said.get(timeout=_WATCH_SECONDS)
            except queue.Empty:
                pass
            else:
                if kind == "error":
                    raise rest[0]
                if kind == "end":
                    working -= 1
                else:
                    done += 1
                    if self._on_value is not None:
                        self._on_value(*rest)
            self._check_times()
            if self._rules.progress:
                self._rules.progress.show(done)

    def _check_times(self) -> None:
        timeout = self._rules.timeout
        if timeout is None:
            return
        for index, since in list(self._at.values()):
            if time.monotonic() - since > timeout:
                raise late(timeout, self._job.bounds(index))

    def _work(self, place: int) -> None:
        enter_thread()
        try:
            while not self._cancelled:
                with self._lock:
                    chunk = next(self._chunks, None)
                if chunk is None:
                    break
                index, which = chunk
                self._at[place] = (index, time.monotonic())
                value = self._run(index, which)
                self._at.pop(place, None)
                # Each message wakes the caller, which then takes the interpreter's lock.
                if self._on_value is not None or self._rules.progress:
                    self._said.put(("done", index, value))
        except BaseException as error:
            self._said.put(("error", error))
        self._said.put(("end",))

    def _run(self, index: int, which: tuple[Any, ...]) -> Any:
        tries = 2 if self._rules.on_error == "retry" else 1
        return run_marked(self._job, index, which, tries)


def run_marked(job: Job, index: int, which: tuple[Any, ...], tries: int = 1) -> Any:
    """Runs a chunk in this thread; an exception of the kernel is marked with its indices."""
    while True:
        tries -= 1
        try:
            return job.run(index, *which)
        except BaseException as error:
            if tries == 0 or not isinstance(error, Exception):
                mark(error, job.bounds(index))
                raise
