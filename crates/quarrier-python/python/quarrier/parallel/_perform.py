"""Runs a job as requested: in place, on threads, by a pool or by new workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from quarrier.parallel._board import Board
from quarrier.parallel._crew import Crew
from quarrier.parallel._job import Job
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import Options, count_of
from quarrier.parallel._pool import current_pool
from quarrier.parallel._progress import progress_of
from quarrier.parallel._supervise import Rules, Run
from quarrier.parallel._system import Hold, signals_held

if TYPE_CHECKING:
    from quarrier.parallel._threads import Chunk

# None if the job's chunks have no values.
OnValue = Callable[[int, Any], None] | None
MakeRun = Callable[[Crew, Job, Board, Rules, Hold], Run]


def perform(
    job: Job,
    options: Options,
    on_value: OnValue,
    *,
    total: int,
    rows: int,
    unit: str = "",
    together: int = 1,
) -> None:
    """Runs a job over `total` indices in chunks of `rows`; `on_value` gets their values."""
    rules = rules_of(options, total, rows, unit)
    chunks = ((index, ()) for index in range(job.chunks))
    if in_worker():
        run_here(job, chunks, rules, on_value)
    elif options.mode == "thread":
        # Imported late, because processes should not pay for its memory.
        from quarrier.parallel._threads import Threads

        count = min(count_of(options.workers), job.chunks)
        Threads(job, chunks, count, rules, on_value).drive()
    else:
        run_by_processes(job, options.workers, rules, on_value, Run, together)


def rules_of(options: Options, total: int, rows: int, unit: str) -> Rules:
    """Converts the options for the supervisor."""
    progress = progress_of(options.progress, total, rows, unit)
    return Rules(options.on_error, options.timeout, progress)


def run_here(job: Job, chunks: Iterator[Chunk], rules: Rules, on_value: OnValue) -> None:
    """Runs a job chunk by chunk in this process, for calls inside a kernel."""
    from quarrier.parallel._threads import run_marked

    tries = 2 if rules.on_error == "retry" else 1
    for done, (index, which) in enumerate(chunks, 1):
        value = run_marked(job, index, which, tries)
        if on_value is not None:
            on_value(index, value)
        if rules.progress:
            rules.progress.show(done)
    if rules.progress:
        rules.progress.finish()


def run_by_processes(
    job: Job,
    workers: int | Literal["auto"] | None,
    rules: Rules,
    on_value: OnValue,
    make: MakeRun,
    together: int = 1,
) -> None:
    """Runs a job by the current pool if it is free, else by new workers."""
    pool = current_pool()
    fits = pool is not None and workers in (None, pool.workers)
    with signals_held() as hold:
        if pool is not None and fits and pool.busy.acquire(blocking=False):
            try:
                run = make(pool.crew, job, Board(pool.workers, job.chunks, together), rules, hold)
                _run_in_pool(run, on_value)
            finally:
                pool.busy.release()
            return
        crew = Crew(min(count_of(workers), job.chunks))
        run = make(crew, job, Board(crew.count, job.chunks, together), rules, hold)
        try:
            _run(run, on_value, inherit=True)
        finally:
            crew.close()


def _run_in_pool(run: Run, on_value: OnValue) -> None:
    try:
        _run(run, on_value, inherit=False)
    except BaseException:
        run.settle()
        raise
    finally:
        run.crew.finish()


def _run(run: Run, on_value: OnValue, inherit: bool) -> None:
    if on_value is not None:
        run.on_value = on_value
    run.crew.take(run.job, run.board, inherit)
    run.drive()
