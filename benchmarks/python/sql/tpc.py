"""The 22 queries of TPC-H by quarrier-sql, DataFusion and DuckDB, in turns, with answers compared first; or the
99 of TPC-DS by quarrier-sql and DuckDB.

    python tpc.py PROGRAM [--benchmark tpch|tpcds] [--data FOLDER] [--scale 1] [--rounds 5]
                          [--kinds parquet,ndjson] [--json FILE]

Every engine has two threads. With `ndjson` all have the tables in memory; with `parquet` all read the files
again for each query. `tpc_data.py` makes data and queries with DuckDB's own generators. With --rounds 0 it only
compares the answers.
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

HERE = Path(__file__).parent
THREADS = 2
# Means of decimals have four more digits after the point than their arguments.
answers.RELATIVE = 1e-6


def make_data(data: Path, benchmark: str, scale: float) -> Path:
    """The folder with the data, made in a separate environment if it does not exist."""
    folder = data / f"{benchmark}-v1-{scale:g}"
    if not (folder / "queries.json").exists():
        home = data / "venv-tpc"
        requirements = HERE / "tpc-requirements.txt"
        if not (home / "installed.txt").exists():
            venv.create(home, with_pip=True, clear=True)
            command = [home / "bin/python", "-m", "pip", "install", "--quiet", "-r", requirements]
            subprocess.run(command, check=True)
            (home / "installed.txt").write_text(requirements.read_text())
        command = [home / "bin/python", HERE / "tpc_data.py", folder, benchmark, str(scale)]
        subprocess.run(command, check=True)
    return folder


def tables_of(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.parquet"))


class DuckDB:
    name = "duckdb"

    def __init__(self, folder: Path, kind: str) -> None:
        self.base = duckdb.connect(":memory:", config={"threads": THREADS})
        what = "VIEW" if kind == "parquet" else "TABLE"
        for table in tables_of(folder):
            self.base.execute(f"CREATE {what} {table} AS SELECT * FROM '{folder / table}.parquet'")

    def ask(self, query: str) -> tuple[float, list[Any]]:
        start = time.perf_counter()
        rows = self.base.execute(query).fetchall()
        return time.perf_counter() - start, rows

    def kinds(self, query: str) -> list[str]:
        """The types of an answer's columns, for the comparison."""
        names = {"VARCHAR": "text", "DATE": "date", "BOOLEAN": "bool", "TIMESTAMP": "ts"}
        described = self.base.execute(f"DESCRIBE {query}").fetchall()
        # Engines round sums and quotients at different points.
        return [names.get(kind, "float") for _, kind, *_ in described]


class DataFusion:
    name = "datafusion"

    def __init__(self, folder: Path, kind: str) -> None:
        import datafusion
        import pyarrow.parquet as pq

        config = datafusion.SessionConfig().with_target_partitions(THREADS)
        self.context = datafusion.SessionContext(config)
        for table in tables_of(folder):
            if kind == "parquet":
                self.context.register_parquet(table, f"{folder / table}.parquet")
                continue
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
        self.name = "quarrier-sql"
        start = time.perf_counter()
        tables = {table: folder / f"{table}.{kind}" for table in tables_of(folder)}
        self.program = Program(program, tables, f"--workers={THREADS}")
        self.program.ask("SELECT 1 AS one")
        print(f"{kind}: {time.perf_counter() - start:.1f} s to load", file=sys.stderr)

    def ask(self, query: str) -> tuple[float, list[Any]]:
        seconds, rows = self.program.ask(query)
        return seconds, [tuple(row.values()) for row in rows]


def compare(number: int, query: str, engines: list[Any], rival: DuckDB) -> bool:
    """Whether all give the same answer; prints the difference if not."""
    kinds = rival.kinds(query)
    expected = normal(rival.ask(query)[1], kinds)
    is_same = True
    for engine in engines:
        try:
            found = normal(engine.ask(query)[1], kinds)
            # The queries order by columns with equal values, so rows are compared as a multiset.
            if are_same(found, expected, kinds, is_ordered=False):
                continue
            reason = f"{len(found)} rows: {found[:2]}, expected {len(expected)}: {expected[:2]}"
        except (Refused, ValueError, ArithmeticError, RuntimeError) as error:
            reason = str(error)
        print(f"tpc.py: WRONG RESULT: query {number} by {engine.name}: {reason[:600]}")
        is_same = False
    return is_same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--benchmark", choices=["tpch", "tpcds"], default="tpch")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default="parquet,ndjson")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = make_data(arguments.data, arguments.benchmark, arguments.scale)
    queries = json.loads((folder / "queries.json").read_text())
    seconds = {}
    for kind in arguments.kinds.split(","):
        rival = DuckDB(folder, kind)
        engines: list[Any] = [Ours(arguments.program, folder, kind)]
        if arguments.benchmark == "tpch":
            engines.append(DataFusion(folder, kind))
        engines.append(rival)
        same = [compare(number, query, engines, rival) for number, query in enumerate(queries, 1)]
        if not all(same):
            sys.exit(f"tpc.py: {same.count(False)} of {len(queries)} queries differ; no time is given")
        print(f"{kind}: all {len(queries)} answers are those of DuckDB {duckdb.__version__}")
        if not arguments.rounds:
            engines[0].program.end()
            continue
        seconds[kind] = measure(engines, queries, arguments.rounds)
        where = "read from Parquet" if kind == "parquet" else "in memory"
        print(
            f"\n{arguments.benchmark}, scale {arguments.scale:g}, tables {where}, {THREADS} threads: milliseconds"
        )
        tell(seconds[kind])
        engines[0].program.end()
    if arguments.json:
        arguments.json.write_text(json.dumps({"scale": arguments.scale, "seconds": seconds}))


def measure(engines: list[Any], queries: list[str], rounds: int) -> dict[str, list[list[float]]]:
    """The seconds of each engine, query and round; in each round all engines take turns."""
    seconds: dict[str, list[list[float]]] = {engine.name: [[] for _ in queries] for engine in engines}
    for number, query in enumerate(queries):
        for _ in range(rounds):
            for engine in engines:
                seconds[engine.name][number].append(engine.ask(query)[0])
    return seconds


def tell(seconds: dict[str, list[list[float]]]) -> None:
    """Prints a table of medians, and the ratio of each rival to ours."""
    ours, *others = seconds
    print("query " + "".join(f"{name:>16}" for name in seconds))
    for number, rounds in enumerate(zip(*seconds.values(), strict=True), 1):
        print(f"{number:5} " + "".join(f"{1e3 * statistics.median(some):16.1f}" for some in rounds))
    totals = [sum(map(statistics.median, all_)) for all_ in seconds.values()]
    print("  all " + "".join(f"{1e3 * total:16.1f}" for total in totals))
    for other in others:
        pairs = zip(seconds[ours], seconds[other], strict=True)
        ratios = [statistics.median(b / a for a, b in zip(mine, its)) for mine, its in pairs]
        least = min(ratios)
        print(f"{statistics.geometric_mean(ratios):.2f} times as fast as {other}")
        print(f"  (geometric mean; least {least:.2f} in query {ratios.index(least) + 1})")


if __name__ == "__main__":
    main()
