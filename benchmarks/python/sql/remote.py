"""The 22 queries of TPC-H over Parquet behind HTTP, by quarrier-sql, DuckDB and polars: requests and bytes.

    python remote.py PROGRAM [--data FOLDER] [--scale 1] [--rounds 3] [--latency 0.005] [--json FILE]

A server of byte ranges on the loopback holds the files in memory, waits before each answer, and counts requests
(with those for the length) and the bytes of bodies. Each query is asked of a new process or connection, so nothing
is left in a cache from the query before; then all of them in one. DuckDB needs `duckdb-extension-httpfs`, which
is a package for the version of `tpc-requirements.txt`. polars asks the queries that its SQL accepts. Every answer
is compared with DuckDB's over the local files. Clients have two threads; `--latency` is in seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import answers
import duckdb
from answers import are_same, normal
from program import Program, Refused
from tpc import DuckDB, make_data, tables_of

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "crates/quarrier-python/tests"))
from range_server import RangeServer

HERE = Path(__file__).parent
THREADS = 2
answers.RELATIVE = 1e-6

Rows = list[tuple[Any, ...]]


class Cost(NamedTuple):
    requests: int
    bytes: int
    seconds: float


class Ours:
    name = "quarrier"

    def __init__(self, urls: dict[str, str], program: str) -> None:
        self.program = Program(program, urls, f"--workers={THREADS}")  # type: ignore[arg-type]

    def ask(self, query: str) -> Rows:
        return [tuple(row.values()) for row in self.program.ask(query)[1]]

    def end(self) -> None:
        self.program.end()


class Duck:
    name = "duckdb"

    def __init__(self, urls: dict[str, str], _: str) -> None:
        self.base = duckdb.connect(":memory:", config={"threads": THREADS})
        spec = importlib.util.find_spec("duckdb_extension_httpfs")
        assert spec and spec.submodule_search_locations
        path = next(Path(spec.submodule_search_locations[0]).rglob("httpfs.duckdb_extension"))
        self.base.execute(f"LOAD '{path}'")
        for table, url in urls.items():
            self.base.execute(f"CREATE VIEW {table} AS SELECT * FROM '{url}'")

    def ask(self, query: str) -> Rows:
        return self.base.execute(query).fetchall()

    def end(self) -> None:
        self.base.close()


class Polars:
    name = "polars"

    def __init__(self, urls: dict[str, str], _: str) -> None:
        import polars as pl

        frames = {table: pl.scan_parquet(url) for table, url in urls.items()}
        self.context = pl.SQLContext(frames)

    def ask(self, query: str) -> Rows:
        return self.context.execute(query, eager=True).rows()

    def end(self) -> None:
        pass


Engine = Callable[[dict[str, str], str], Any]
ENGINES: list[Engine] = [Ours, Duck, Polars]


class Bench:
    def __init__(self, arguments: argparse.Namespace, folder: Path, server: RangeServer) -> None:
        self.program, self.server = arguments.program, server
        self.urls = {table: server.url(f"{table}.parquet") for table in tables_of(folder)}
        self.queries: list[str] = json.loads((folder / "queries.json").read_text())
        self.local = DuckDB(folder, "parquet")

    def asked(self, kind: Engine, queries: list[str]) -> tuple[Cost, list[Rows]]:
        """What some queries cost one new client, with its start."""
        self.server.take_tally()
        start = time.perf_counter()
        engine = kind(self.urls, self.program)
        try:
            found = [engine.ask(query) for query in queries]
        finally:
            engine.end()
        tally = self.server.take_tally()
        return Cost(tally.requests, tally.body_bytes, time.perf_counter() - start), found

    def checked(self, kind: Engine, query: str) -> Cost | str:
        """The cost of a query, or why the answer does not count."""
        kinds = self.local.kinds(query)
        expected = normal(self.local.ask(query)[1], kinds)
        try:
            cost, found = self.asked(kind, [query])
        except Refused as error:
            return f"refused: {error}"
        except Exception as error:  # Each engine has its own.
            return f"refused: {type(error).__name__}: {error}"
        is_same = are_same(normal(found[0], kinds), expected, kinds, is_ordered=False)
        return cost if is_same else "ANOTHER ANSWER"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.005)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = make_data(arguments.data, "tpch", arguments.scale)
    files = {path.name: path.read_bytes() for path in folder.glob("*.parquet")}
    total = sum(map(len, files.values()))
    print(f"scale {arguments.scale:g}, {total / 1e6:.1f} MB of Parquet, duckdb {duckdb.__version__}")
    with RangeServer(files, arguments.latency) as server:
        bench = Bench(arguments, folder, server)
        record = measure(bench, arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    table: dict[int, dict[str, list[Cost]]] = {}
    for number, query in enumerate(bench.queries, 1):
        row: dict[str, list[Cost]] = {}
        for _ in range(rounds):
            for kind in ENGINES:
                name = kind.name  # type: ignore[attr-defined]
                cost = bench.checked(kind, query)
                if isinstance(cost, Cost):
                    row.setdefault(name, []).append(cost)
                else:
                    print(f"query {number}, {name}: {cost[:160]}")
        table[number] = row
        cells = [f"{name} {middle(costs)}" for name, costs in row.items()]
        print(f"query {number:2}: " + "; ".join(cells), flush=True)
    for rival in ("duckdb", "polars"):
        shared = [row for row in table.values() if rival in row and "quarrier" in row]
        for field in ("requests", "bytes", "seconds"):
            mine, its = (
                [statistics.median(getattr(cost, field) for cost in row[name]) for row in shared]
                for name in ("quarrier", rival)
            )
            fewer = sum(a <= b for a, b in zip(mine, its, strict=True))
            print(f"{field}, {len(shared)} queries: quarrier {sum(mine):,.1f}, {rival} {sum(its):,.1f}; at most "
                  f"{rival}'s in {fewer}")  # fmt: skip
    for kind in ENGINES[:2]:
        costs = [bench.asked(kind, bench.queries)[0] for _ in range(rounds)]
        print(f"all in one session: {kind.name} {middle(costs)}")  # type: ignore[attr-defined]
    return {str(number): row for number, row in table.items()}


def middle(costs: list[Cost]) -> str:
    requests, size, seconds = (statistics.median(values) for values in zip(*costs, strict=True))
    return f"{requests:.0f} requests, {size / 1e6:.2f} MB, {seconds:.2f} s"


if __name__ == "__main__":
    main()
