"""`search(…)` in SQL compared with `quarrier search`: first the findings, then the times.

    python find.py QUARRIER_SQL QUARRIER IMAGE PATTERNS [--rounds 7] [--json FILE]

Whole processes in turns, with the image in the page cache and two workers. Each finding is compared, by offset,
length and pattern, before any time is taken.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

THREADS = 2


def run(command: list[str]) -> tuple[float, list[dict]]:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    return seconds, [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("quarrier_sql")
    parser.add_argument("quarrier")
    parser.add_argument("image", type=Path)
    parser.add_argument("patterns", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", type=Path, help="taken for the sake of the other programs")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    table = f"search('{arguments.image}', '{arguments.patterns}', '--workers {THREADS}')"
    sql = [arguments.quarrier_sql, "--format", "json"]
    search = [arguments.quarrier, "search", "-f", str(arguments.patterns), str(arguments.image),
              "--workers", str(THREADS), "--format", "json", "--quiet"]  # fmt: skip
    pairs = {
        "counted": (
            [*sql, f"SELECT pattern, count(*) AS count FROM {table} GROUP BY pattern"],
            [*search, "-c"],
        ),
        "all rows": ([*sql, f'SELECT "offset", length, pattern FROM {table}'], search),
    }
    record = {}
    for name, (ours, theirs) in pairs.items():
        keys = ("pattern", "count") if name == "counted" else ("offset", "length", "pattern")

        def comparable(rows: list[dict], keys: tuple[str, ...] = keys) -> list[tuple]:
            # A pattern with a count of 0 has no group.
            return sorted(tuple(row[key] for key in keys) for row in rows if row.get("count") != 0)

        if comparable(run(ours)[1]) != comparable(run(theirs)[1]):
            sys.exit(f"find.py: WRONG RESULT: {name}: {ours[-1]}; no time is given")
        seconds: dict[str, list[float]] = {"sql": [], "search": []}
        for _ in range(arguments.rounds):
            seconds["sql"].append(run(ours)[0])
            seconds["search"].append(run(theirs)[0])
        ratios = sorted(a / b for a, b in zip(*seconds.values()))
        ratio = ratios[len(ratios) // 2]
        medians = {way: sorted(all_)[len(all_) // 2] for way, all_ in seconds.items()}
        print(
            f"search, {name}: in SQL {1e3 * medians['sql']:.0f} ms, by the command "
            f"{1e3 * medians['search']:.0f} ms: {100 * (ratio - 1):+.1f} % (must be: at most +10 %)"
        )
        record[name] = seconds
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
