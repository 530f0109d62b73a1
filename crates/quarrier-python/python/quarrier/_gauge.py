"""quarrier.gauge: the ceilings of CPU, memory, disk and network."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from quarrier._native import gauge_json


class Reading(NamedTuple):
    """A measured value: the median of runs, with its spread and conditions."""

    area: str
    measurement: str
    parameters: dict[str, int | float | str]
    value: float
    unit: str
    stddev: float
    runs: int
    conditions: dict[str, Any]
    """`load`, `steal`, `others`, `cpu_share`; `disturbed`: do not rely on the value."""
    mean: float
    best: float
    dropped: int
    samples: list[float]
    percentiles: dict[str, Any] | None
    received_share: float | None
    """For UDP, the fraction of the sent datagrams that arrived."""
    notes: list[str]
    timeline: dict[str, Any] | None
    """Of a long run: `rates` of windows of `window_seconds`, `initial` for `initial_seconds`,
    `steady_after_seconds`."""


def gauge(
    *areas: str,
    quick: bool = False,
    path: str | os.PathLike[str] = os.curdir,
    sustained: float | None = None,
) -> list[Reading]:
    """Measures areas of the machine (`cpu`, `memory`, `disk`, `network`, `gpu`), or all of them.

    `quick` measures only the readings that planning needs, in less than 30 seconds for all areas;
    otherwise it takes minutes. `path` is a folder on the disk to measure. With the area `disk`
    alone, `sustained` measures only the rates at which the disk stays: it writes for that many
    seconds, then reads for as long, with a file of at most a quarter of the free space. The
    interpreter's lock is released, but work on other threads disturbs the measurement.

    >>> for reading in quarrier.gauge("memory", quick=True):  # doctest: +SKIP
    ...     print(reading.measurement, reading.parameters, reading.value, reading.unit)
    """
    # Programs that do not measure should not pay for its memory.
    import json

    report = json.loads(gauge_json(list(areas), quick, path, sustained))
    fields = Reading._fields
    return [Reading(*(row.get(field) for field in fields)) for row in report["readings"]]
