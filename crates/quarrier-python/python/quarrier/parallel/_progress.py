"""Reports the progress of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

_SECONDS = 0.05

# The value of `progress=`: a function of the amount done and the total, or a bar.
Wanted: TypeAlias = Callable[[int, int], object] | Literal["tqdm"] | None


class Progress:
    """Calls a function at most every `seconds`, and once at the end."""

    seconds = _SECONDS

    def __init__(self, wanted: Callable[[int, int], object], total: int, rows: int) -> None:
        self._report = wanted
        self._total = total
        self._rows = rows
        self._reported_at = 0.0
        self._reported = -1

    def show(self, chunks: int) -> None:
        """Reports this many done chunks, if a report is due."""
        done = min(chunks * self._rows, self._total)
        now = time.monotonic()
        if done == self._reported or now - self._reported_at < _SECONDS:
            return
        self._reported, self._reported_at = done, now
        self._report(done, self._total)

    def finish(self) -> None:
        """Reports the end."""
        if self._reported != self._total:
            self._reported = self._total
            self._report(self._total, self._total)


def progress_of(wanted: Wanted, total: int, rows: int, unit: str) -> Progress | None:
    """The progress that `progress=` selects, over `total` indices or bytes in chunks of `rows`."""
    if wanted is None:
        return None
    if wanted == "tqdm":
        return _Bar(total, rows, unit)
    if not callable(wanted):
        raise TypeError('progress is a callable of (done, total), "tqdm" or None')
    return Progress(wanted, total, rows)


class _Bar(Progress):
    """A tqdm bar, made late and without tqdm's thread, because forks must have no other threads."""

    def __init__(self, total: int, rows: int, unit: str) -> None:
        import tqdm.auto

        bar: Any = type("Bar", (tqdm.auto.tqdm,), {"monitor_interval": 0})
        self._bar: Any = None

        def tell(done: int, total: int) -> None:
            if self._bar is None:
                scale = unit == "B"
                self._bar = bar(total=total, unit=unit, unit_scale=scale, unit_divisor=1024)
            self._bar.update(done - self._bar.n)
            if done == total:
                self._bar.close()

        super().__init__(tell, total, rows)
