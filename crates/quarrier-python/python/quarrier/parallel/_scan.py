"""`scan`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from quarrier._file import SourceFile
from quarrier._native import SharedFeed
from quarrier.parallel._array import root_of
from quarrier.parallel._board import Board
from quarrier.parallel._crew import Crew
from quarrier.parallel._feed import CHUNKS_A_WORKER, FeedRun, slot_of
from quarrier.parallel._inputs import as_bytes
from quarrier.parallel._job import Feeding, Job, Scanning
from quarrier.parallel._nested import in_worker
from quarrier.parallel._options import Options, at_least, count_of
from quarrier.parallel._perform import perform, rules_of, run_by_processes, run_here
from quarrier.parallel._progress import Wanted
from quarrier.parallel._supervise import Rules, Run
from quarrier.parallel._system import Hold
from quarrier.parallel._values import Values

if TYPE_CHECKING:
    from quarrier.parallel._threads import Chunk

Kernel = Callable[[Any, int], Any]
Problem = tuple[int, int, str]

_CHUNK_BYTES = 4 << 20
# Beside those of the workers, for readers to fill meanwhile.
_BUFFERS_AHEAD = 2


def scan(
    source: Any,
    kernel: Callable[[Any, int], Any],
    chunk: int = _CHUNK_BYTES,
    overlap: int = 0,
    out: npt.NDArray[Any] | None = None,
    reduce: Callable[[Any, Any], Any] | None = None,
    workers: int | Literal["auto"] | None = None,
    *,
    problems: list[tuple[int, int, str]] | None = None,
    mode: Literal["process", "thread"] = "process",
    on_error: Literal["raise", "retry"] = "raise",
    timeout: float | None = None,
    progress: Wanted = None,
) -> Any:
    """Runs a kernel over all chunks of a source, and returns its results.

    `kernel(chunk, offset)` gets the `chunk` bytes from `offset` on, followed by up to `overlap`
    bytes of the next chunk, as a read-only numpy array of `uint8`, which it must not keep. The
    source is a path, a URL, a file from `quarrier.open`, or an object that exports its bytes. Files
    and URLs are read ahead, into buffers that all workers share.

    The values are pickled and returned in order of offset: as a list; with `reduce`, folded by
    `reduce(value of all before, value of the next)` (None for an empty source); with `out`, as the
    rows of that array, one for each chunk. Workers write directly to a shared `out` (`empty`).

    Unreadable ranges are zero, and are appended to `problems` as (offset, length, reason); without
    that list they cause a warning.

    >>> import numpy as np, quarrier.parallel as parallel
    >>> def ones(chunk, offset):
    ...     return int(np.count_nonzero(chunk == 1))
    >>> parallel.scan(bytes([1, 2, 1, 1]), ones, chunk=2, workers=2)
    [1, 2]
    >>> parallel.scan(bytes([1, 2, 1, 1]), ones, chunk=2, reduce=int.__add__, workers=2)
    3
    """
    options = Options(workers, mode, on_error, timeout, progress)
    options.check()
    at_least("chunk", chunk, 1)
    at_least("overlap", overlap, 0)
    if out is not None and reduce is not None:
        raise ValueError("out and reduce exclude each other")
    if isinstance(source, (str, SourceFile)) or hasattr(source, "__fspath__"):
        run = _scan_source
    else:
        run = _scan_memory
    return run(source, kernel, (chunk, overlap), Values(out, reduce), options, problems)


def _scan_memory(
    source: Any,
    kernel: Kernel,
    sizes: tuple[int, int],
    values: Values,
    options: Options,
    problems: list[Problem] | None,
) -> Any:
    data = as_bytes(source)
    chunk, overlap = sizes
    chunks = -(-len(data) // chunk)
    values.check(chunks)
    if chunks == 0:
        return values.result(0)
    rows = values.rows(anywhere=options.mode == "thread" or in_worker())
    job = Scanning(kernel, data, chunk, overlap, rows)
    perform(job, options, values.take, total=len(data), rows=chunk, unit="B")
    return values.result(chunks)


def _scan_source(
    source: Any,
    kernel: Kernel,
    sizes: tuple[int, int],
    values: Values,
    options: Options,
    problems: list[Problem] | None,
) -> Any:
    chunk, _ = sizes
    opened = source._native() if isinstance(source, SourceFile) else source
    feed = SharedFeed(opened, *sizes, _buffers_for(options))
    try:
        values.check(feed.chunks)
        if feed.chunks == 0:
            return values.result(0)
        in_place = options.mode == "thread" or in_worker()
        rows = values.rows(anywhere=in_place)
        job = Feeding(kernel, root_of(feed.region), feed.stride, (feed.length, chunk), rows)
        rules = rules_of(options, feed.length, chunk, "B")
        if in_place:
            _run_here(job, feed, chunk, options, rules, values)
        else:

            def make(crew: Crew, job: Job, board: Board, rules: Rules, hold: Hold) -> Run:
                return FeedRun(crew, job, board, rules, hold, feed, chunk)

            run_by_processes(job, options.workers, rules, values.take, make)
        result = values.result(feed.chunks)
    finally:
        feed.close()
    _report(feed.problems(), problems)
    return result


def _run_here(
    job: Feeding,
    feed: SharedFeed,
    chunk: int,
    options: Options,
    rules: Rules,
    values: Values,
) -> None:
    """Runs the scan in this process; a slot is reused after its value is taken."""
    slots: dict[int, int] = {}

    def chunks() -> Iterator[Chunk]:
        while (said := feed.next()) is not None:
            found = slot_of(said, chunk)
            slots[found.number] = found.slot
            yield found.number, found.which()

    def take(index: int, value: Any) -> None:
        values.take(index, value)
        feed.release(slots.pop(index))

    feed.start()
    if in_worker():
        run_here(job, chunks(), rules, take)
    else:
        count = min(count_of(options.workers), job.chunks)
        from quarrier.parallel._threads import Threads

        Threads(job, chunks(), count, rules, take).drive()


def _buffers_for(options: Options) -> int:
    return CHUNKS_A_WORKER * count_of(options.workers) + _BUFFERS_AHEAD


def _report(found: list[Problem], problems: list[Problem] | None) -> None:
    if problems is not None:
        problems.extend(found)
    elif found:
        offset, length, reason = found[0]
        warnings.warn(
            f"{len(found)} ranges could not be read and were zeros to the kernel; the first, "
            f"{length} bytes at offset {offset}: {reason}",
            RuntimeWarning,
            stacklevel=4,
        )
