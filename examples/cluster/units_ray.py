"""Searches images with Ray: units_ray.py PATTERNS IMAGE...

Each task searches one unit, so a dead node costs only the units it was searching.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import ray

import quarrier


@ray.remote(num_cpus=1, max_retries=4)
def search(unit: quarrier.Unit, patterns: list[str]) -> pa.Table:
    """The rows of one unit."""
    return quarrier.run(unit, patterns).to_arrow()


def main() -> None:
    """Searches the images, whose paths must be the same on all nodes."""
    with open(sys.argv[1]) as file:
        patterns = file.read().splitlines()
    ray.init()
    tasks = [search.remote(unit, patterns) for unit in quarrier.units(sys.argv[2:], size="1G")]
    table = pa.concat_tables(ray.get(tasks))
    print(f"{table.num_rows} rows")


if __name__ == "__main__":
    main()
