"""Searches images with Dask: units_dask.py SCHEDULER PATTERNS IMAGE...

Each task searches one unit, so a dead worker costs only the units it was searching.
"""

from __future__ import annotations

import sys

import pyarrow as pa
from dask.distributed import Client

import quarrier


def search(unit: quarrier.Unit, patterns: list[str]) -> pa.Table:
    """The rows of one unit."""
    return quarrier.run(unit, patterns).to_arrow()


def main() -> None:
    """Searches the images, whose paths must be the same on all workers."""
    with open(sys.argv[2]) as file:
        patterns = file.read().splitlines()
    with Client(sys.argv[1]) as client:
        tasks = client.map(search, quarrier.units(sys.argv[3:], size="1G"), patterns=patterns)
        table = pa.concat_tables(client.gather(tasks))
    print(f"{table.num_rows} rows")


if __name__ == "__main__":
    main()
