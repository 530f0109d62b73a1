"""The common options of all calls, checked."""

from __future__ import annotations

import operator
from typing import Literal, NamedTuple

from quarrier._errors import PlanError
from quarrier._native import available_workers
from quarrier.parallel._progress import Wanted


class Options(NamedTuple):
    """How to run a job; docs/parallel.md explains each option."""

    workers: int | Literal["auto"] | None
    mode: Literal["process", "thread"]
    on_error: Literal["raise", "retry"]
    timeout: float | None
    progress: Wanted

    def check(self) -> None:
        """Raises `PlanError` for invalid values."""
        if self.mode not in ("process", "thread"):
            raise PlanError(f'mode is "process" or "thread", not {self.mode!r}')
        if self.on_error not in ("raise", "retry"):
            raise PlanError(f'on_error is "raise" or "retry", not {self.on_error!r}')
        if self.timeout is not None and not self.timeout > 0:
            raise PlanError(f"timeout is {self.timeout}; it must be more than 0 seconds")
        count_of(self.workers)


def count_of(workers: int | Literal["auto"] | None) -> int:
    """The number of workers; by default, or for 0, one for each CPU that this process may use."""
    if workers is None or workers == "auto":
        return available_workers()
    return at_least("workers", workers, 0) or available_workers()


def at_least(name: str, value: int, least: int) -> int:
    """The option as an int; `PlanError` if it is too small."""
    number = operator.index(value)
    if number < least:
        raise PlanError(f"{name} is {number}; it must be at least {least}")
    return number
