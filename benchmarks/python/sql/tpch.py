"""The 22 queries of TPC-H by quarrier-sql, DataFusion and DuckDB, in turns, answers compared first.

    python tpch.py PROGRAM [--data FOLDER] [--scale 1] [--rounds 5] [--kinds parquet,ndjson] [--json FILE]

Every engine has the tables in memory and two threads. `tpch_data.py` makes data and queries, with
DuckDB's own generator.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import answers
import duckdb
from answers import are_same, normal
from program import Program, Refused
from tpch_data import TABLES

HERE = Path(__file__).parent
THREADS = 2
# Means of decimals have four digits more behind the point than what they are of.
answers.RELATIVE = 1e-6


def make_data(data: Path, scale: float) -> Path:
    """The folder with the data, made in an environment of its own where it is not there."""
    folder = data / f"tpch-v1-{scale:g}"
    if not (folder / "queries.json").exists():
        home = data / "venv-tpch"
        if not (home / "installed.txt").exists():
            venv.create(home, with_pip=True, clear=True)
            requirements = HERE / "tpch-requirements.txt"
            command = [home / "bin/python", "-m", "pip", "install", "--quiet", "-r", requirements]
            subprocess.run(command, check=True)
            (home / "installed.txt").write_text(requirements.read_text())
        subprocess.run([home / "bin/python", HERE / "tpch_data.py", folder, str(scale)], check=True)
    return folder


class DuckDB:
    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        self.base = duckdb.connect(":memory:", config={"threads": THREADS})
        for table in TABLES:
            self.base.execute(f"CREATE TABLE {table} AS SELECT * FROM '{folder / table}.parquet'")

    def ask(self, query: str) -> tuple[float, list[Any]]:
        start = time.perf_counter()
        rows = self.base.execute(query).fetchall()
        return time.perf_counter() - start, rows

    def kinds(self, query: str) -> list[str]:
        """The kinds of the columns of an answer, for comparing."""
        names = {"VARCHAR": "text", "DATE": "date", "BOOLEAN": "bool", "TIMESTAMP": "ts"}
        described = self.base.execute(f"DESCRIBE {query}").fetchall()
        # Sums and quotients are rounded where the engines like.
        return [names.get(kind, "float") for _, kind, *_ in described]


class DataFusion:
    name = "datafusion"

    def __init__(self, folder: Path) -> None:
        import datafusion
        import pyarrow.parquet as pq

        config = datafusion.SessionConfig().with_target_partitions(THREADS)
        self.context = datafusion.SessionContext(config)
        for table in TABLES:
            batches = pq.read_table(f"{folder / table}.parquet").to_batches(max_chunksize=8192)
            step = -(-len(batches) // THREADS)
            parts = [batches[at : at + step] for at in range(0, len(batches), step)]
            self.context.register_record_batches(table, parts)

    def ask(self, query: str) -> tuple[float, list[Any]]:
        start = time.perf_counter()
        table = self.context.sql(query).to_arrow_table()
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return time.perf_counter() - start, rows


class Ours:
    def __init__(self, program: str, folder: Path, kind: str) -> None:
        self.name = f"quarrier-sql {kind}"
        start = time.perf_counter()
        tables = {table: folder / f"{table}.{kind}" for table in TABLES}
        self.program = Program(program, tables, f"--workers={THREADS}")
        self.program.ask("SELECT 1 AS one")
        print(f"{self.name}: {time.perf_counter() - start:.1f} s to load", file=sys.stderr)

    def ask(self, query: str) -> tuple[float, list[Any]]:
        seconds, rows = self.program.ask(query)
        return seconds, [tuple(row.values()) for row in rows]


def compare(number: int, query: str, engines: list[Any], rival: DuckDB) -> bool:
    """Whether all say the same; says where not."""
    kinds = rival.kinds(query)
    expected = normal(rival.ask(query)[1], kinds)
    is_same = True
    for engine in engines:
        try:
            found = normal(engine.ask(query)[1], kinds)
            # The queries order by what may be equal: rows are compared as a multiset.
            if are_same(found, expected, kinds, is_ordered=False):
                continue
            reason = f"{len(found)} rows: {found[:2]}, expected {len(expected)}: {expected[:2]}"
        except (Refused, ValueError, ArithmeticError, RuntimeError) as error:
            reason = str(error)
        print(f"tpch.py: WRONG RESULT: query {number} by {engine.name}: {reason[:600]}")
        is_same = False
    return is_same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default="parquet,ndjson")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = make_data(arguments.data, arguments.scale)
    queries = json.loads((folder / "queries.json").read_text())
    rival = DuckDB(folder)
    engines = [Ours(arguments.program, folder, kind) for kind in arguments.kinds.split(",")]
    engines += [DataFusion(folder), rival]
    same = [compare(number, query, engines, rival) for number, query in enumerate(queries, 1)]
    if not all(same):
        sys.exit(f"tpch.py: {same.count(False)} of {len(queries)} queries differ; no time is given")
    seconds: dict[str, list[list[float]]] = {engine.name: [] for engine in engines}
    for query in queries:
        rounds: dict[str, list[float]] = {engine.name: [] for engine in engines}
        for _ in range(arguments.rounds):
            for engine in engines:
                rounds[engine.name].append(engine.ask(query)[0])
        for name, all_ in rounds.items():
            seconds[name].append(all_)
    names = list(seconds)
    print(f"\nTPC-H, scale {arguments.scale:g}, tables in memory, {THREADS} threads: milliseconds")
    print("query " + "".join(f"{name:>22}" for name in names))
    for number in range(len(queries)):
        medians = [statistics.median(seconds[name][number]) for name in names]
        print(f"{number + 1:5} " + "".join(f"{1e3 * median:22.1f}" for median in medians))
    totals = [sum(map(statistics.median, seconds[name])) for name in names]
    print("  all " + "".join(f"{1e3 * total:22.1f}" for total in totals))
    for ours in engines[:-2]:
        for other in engines[-2:]:
            ratios = [statistics.median(b / a for a, b in zip(mine, its))
                      for mine, its in zip(seconds[ours.name], seconds[other.name])]  # fmt: skip
            least = min(ratios)
            print(f"{ours.name}: {statistics.geometric_mean(ratios):.2f} times as fast as {other.name}")
            print(f"  (geometric mean; least {least:.2f} in query {ratios.index(least) + 1})")
    if arguments.json:
        arguments.json.write_text(json.dumps({"scale": arguments.scale, "seconds": seconds}))


if __name__ == "__main__":
    main()
