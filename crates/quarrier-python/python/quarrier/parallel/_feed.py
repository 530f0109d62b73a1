"""The supervisor of a scan: assigns the chunks that readers put into slots to workers."""

from __future__ import annotations

import os
import selectors
import threading
from collections import deque
from typing import NamedTuple

from quarrier._native import SharedFeed
from quarrier.parallel._board import Board
from quarrier.parallel._crew import Crew, WorkerProcess
from quarrier.parallel._job import Job
from quarrier.parallel._supervise import Rules, Run
from quarrier.parallel._system import Hold

# A worker has one chunk in work, and the next one queued.
CHUNKS_A_WORKER = 2


class Slot(NamedTuple):
    """A chunk in a slot of the shared memory."""

    number: int
    slot: int
    offset: int
    visible: int

    def which(self) -> tuple[int, int, int]:
        """The arguments of `Feeding.run` after the index."""
        return self.slot, self.offset, self.visible


class Pump:
    """A thread that waits for chunks, so that the supervisor can wait for workers too."""

    def __init__(self, feed: SharedFeed, chunk: int) -> None:
        self._feed = feed
        self._chunk = chunk
        self._slots: deque[Slot | BaseException | None] = deque()
        self._stopped = False
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, daemon=True, name="quarrier pump")

    def fileno(self) -> int:
        """Becomes readable when there are new chunks."""
        return self._bell

    def start(self) -> None:
        """Starts the readers and the thread. All workers must have been forked before."""
        self._feed.start()
        self._thread.start()

    def taken(self) -> list[Slot | None]:
        """The chunks since the last call; None after the last one."""
        os.eventfd_read(self._bell)
        slots: list[Slot | None] = []
        while self._slots:
            slot = self._slots.popleft()
            if isinstance(slot, BaseException):
                raise slot
            slots.append(slot)
        return slots

    def close(self) -> None:
        """Ends the readers and the thread."""
        self._stopped = True
        self._feed.close()
        if self._thread.ident is not None:
            self._thread.join()
        os.close(self._bell)

    def _run(self) -> None:
        ended = False
        while not ended:
            found: Slot | BaseException | None
            try:
                said = self._feed.next()
                found = said and slot_of(said, self._chunk)
            except BaseException as error:
                found = error
            if self._stopped:
                return
            ended = not isinstance(found, Slot)
            self._slots.append(found)
            os.eventfd_write(self._bell, 1)


def slot_of(said: tuple[int, int, int, int], chunk: int) -> Slot:
    """Converts the feed's description of a chunk."""
    slot, offset, _, visible = said
    return Slot(offset // chunk, slot, offset, visible)


class FeedRun(Run):
    """A run whose chunks come from a feed."""

    def __init__(
        self,
        crew: Crew,
        job: Job,
        board: Board,
        rules: Rules,
        hold: Hold,
        feed: SharedFeed,
        chunk: int,
    ) -> None:
        super().__init__(crew, job, board, rules, hold)
        self._feed = feed
        self._pump = Pump(feed, chunk)
        self._ended = False
        self._waiting: deque[Slot] = deque()
        self._out: dict[int, deque[Slot]] = {}

    def drive(self) -> None:
        """Runs the scan to its end, then closes the feed."""
        try:
            super().drive()
        finally:
            self._pump.close()

    def _begin(self) -> None:
        for place in range(self.crew.count):
            self._engage(self.crew.workers.get(place) or self.crew.hire(place))
        self._selector.register(self._pump, selectors.EVENT_READ, self._refill)
        self._pump.start()

    def _refill(self) -> None:
        for slot in self._pump.taken():
            if slot is None:
                self._ended = True
                self._selector.unregister(self._pump)
            else:
                self._waiting.append(slot)
        self._hand_out()

    def _hand_out(self) -> None:
        """Assigns the waiting chunks, each to the worker with the shortest queue."""
        while self._waiting:
            loads = [(len(self._out.get(place, ())), place) for place in range(self.crew.count)]
            load, place = min(loads)
            if load >= CHUNKS_A_WORKER:
                return
            worker = self._worker_at(place)
            slot = self._waiting.popleft()
            self._out.setdefault(place, deque()).append(slot)
            self._command(worker, "run", slot.number, *slot.which())

    def _rest(self, worker: WorkerProcess) -> None:
        slot = self._out[worker.place].popleft()
        self._feed.release(slot.slot)
        self._hand_out()

    def _replace(self, worker: WorkerProcess, index: int | None) -> None:
        """Replaces a worker and queues its chunks again, with the failed one first."""
        had = self._out.pop(worker.place, deque())
        self._drop(worker)
        self._engage(self.crew.hire(worker.place))
        self._waiting.extendleft(reversed(had))
        self._hand_out()

    def _is_finished(self) -> bool:
        return self._ended and not self._waiting and self._pending.total() == 0
