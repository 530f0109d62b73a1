"""The engines behind one protocol, each in its own process.

    python engines.py NAME THREADS

reads requests, each a line of JSON, and answers each with a line: `{"seconds", "result"}` or `{"error"}`. A
result is a list of rows. `load` loads a Parquet file into memory, `ask` runs statements one at a time, `clients`
runs each in its own thread, `together` in the one statement or call that the engine has for it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

Rows = list[list[Any]]


def where(statement: str) -> str:
    """The condition of a counting statement."""
    return statement.split(" WHERE ", 1)[1]


def is_count(statement: str) -> bool:
    return statement.startswith("SELECT count(*)")


class Engine:
    """The common interface. `fused` is None if one statement of the engine can count them all."""

    counts_many = "count(*) FILTER (WHERE {})"

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def load(self, path: str) -> None:
        raise NotImplementedError

    def load_json(self, path: str) -> int:
        """Loads JSON lines into memory and returns the number of messages."""
        raise NotImplementedError

    def ask_one(self, statement: str) -> Rows:
        raise NotImplementedError

    def ask(self, statements: list[str]) -> list[Rows]:
        return [self.ask_one(statement) for statement in statements]

    def clients(self, statements: list[str]) -> list[Rows]:
        with ThreadPoolExecutor(len(statements)) as threads:
            return list(threads.map(self.ask_one, statements))

    def together(self, statements: list[str]) -> list[Rows]:
        """All counts by one statement with an aggregate for each; then the statements that do not count."""
        counts = [statement for statement in statements if is_count(statement)]
        columns = ", ".join(
            f"{self.counts_many.format(where(statement))} AS c{at}" for at, statement in enumerate(counts)
        )
        found = iter(self.ask_one(f"SELECT {columns} FROM m")[0])
        return [[[next(found)]] if is_count(statement) else self.ask_one(statement) for statement in statements]


class ClickHouse(Engine):
    counts_many = "countIf({})"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        from chdb import session

        self.session = session.Session()
        self.session.query("CREATE DATABASE IF NOT EXISTS d")

    def load(self, path: str) -> None:
        self.session.query(f"CREATE TABLE d.m ENGINE = Memory AS SELECT * FROM file('{path}', Parquet)")

    def load_json(self, path: str) -> int:
        self.session.query("DROP TABLE IF EXISTS d.j")
        self.session.query(
            f"CREATE TABLE d.j ENGINE = Memory AS SELECT * FROM file('{path}', JSONEachRow) "
            f"SETTINGS max_threads = {self.threads}, max_insert_threads = {self.threads}"
        )
        return self.ask_one("SELECT count(*) FROM j")[0][0]

    def ask_one(self, statement: str) -> Rows:
        text = re.sub(r"\b(FROM|JOIN) ([mj])\b", r"\1 d.\2", statement)
        answer = self.session.query(f"{text} SETTINGS max_threads = {self.threads}", "JSONCompactEachRow")
        rows = [json.loads(line) for line in answer.bytes().splitlines()]
        # It returns 64-bit integers as strings.
        return [[int(cell) if isinstance(cell, str) and cell.isdigit() else cell for cell in row] for row in rows]


class DuckDB(Engine):
    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import duckdb

        self.base = duckdb.connect(":memory:", config={"threads": threads})

    def load(self, path: str) -> None:
        self.base.execute(f"CREATE TABLE m AS SELECT * FROM '{path}'")

    def load_json(self, path: str) -> int:
        self.base.execute(
            f"CREATE OR REPLACE TABLE j AS SELECT * FROM read_json('{path}', format = 'newline_delimited')"
        )
        return self.ask_one("SELECT count(*) FROM j")[0][0]

    def load_file(self, source: str, path: str, columns: str) -> Rows:
        """Loads JSON lines into a new database file, with a checkpoint. `columns` declares them, or is empty."""
        import duckdb

        declared = f", columns = {columns}" if columns else ""
        base = duckdb.connect(path, config={"threads": self.threads})
        base.execute(
            f"CREATE TABLE m AS SELECT * FROM read_json('{source}', format = 'newline_delimited'{declared})"
        )
        base.execute("CHECKPOINT")
        base.close()
        return []

    def ask_file(self, path: str, statement: str) -> Rows:
        import duckdb

        with duckdb.connect(path, read_only=True) as base:
            return [list(row) for row in base.execute(statement).fetchall()]

    def crowd(self, statements: list[str], clients: int, seconds: float) -> list[float]:
        """Clients that ask one of the statements after another; returns the seconds of every answer."""
        end = time.perf_counter() + seconds

        def ask(client: int) -> list[float]:
            random, cursor, taken = Random(client), self.base.cursor(), []
            while (start := time.perf_counter()) < end:
                cursor.execute(random.choice(statements)).fetchall()
                taken.append(time.perf_counter() - start)
            return taken

        with ThreadPoolExecutor(clients) as threads:
            return [taken for each in threads.map(ask, range(clients)) for taken in each]

    def ask_one(self, statement: str) -> Rows:
        return [list(row) for row in self.base.cursor().execute(statement).fetchall()]


class DataFusion(Engine):
    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import datafusion

        config = datafusion.SessionConfig().with_target_partitions(threads)
        self.context = datafusion.SessionContext(config)

    def load(self, path: str) -> None:
        import pyarrow.parquet as pq

        batches = pq.read_table(path).to_batches(max_chunksize=8192)
        step = -(-len(batches) // self.threads)
        self.context.register_record_batches("m", [batches[at : at + step] for at in range(0, len(batches), step)])

    def load_json(self, path: str) -> int:
        link = Path(path).with_suffix(".json")  # it detects the format by the extension
        if not link.exists():
            link.symlink_to(Path(path).resolve())
        self.context.deregister_table("j")
        batches = self.context.read_json(str(link)).collect()
        return sum(batch.num_rows for batch in batches)

    def ask_one(self, statement: str) -> Rows:
        table = self.context.sql(statement).to_arrow_table()
        return [list(row) for row in zip(*table.to_pydict().values(), strict=True)]


class Polars(Engine):
    counts_many = "sum(CASE WHEN {} THEN 1 ELSE 0 END)"

    def __init__(self, threads: int) -> None:
        os.environ["POLARS_MAX_THREADS"] = str(threads)
        super().__init__(threads)
        import polars

        self.polars = polars

    def load(self, path: str) -> None:
        self.context = self.polars.SQLContext(m=self.polars.read_parquet(path))

    def load_json(self, path: str) -> int:
        return self.polars.read_ndjson(path).height

    def ask_one(self, statement: str) -> Rows:
        return [list(row) for row in self.context.execute(statement).collect().rows()]

    def clients(self, statements: list[str]) -> list[Rows]:
        return super().clients(statements)


class PyArrow(Engine):
    """Only loads."""

    def load_json(self, path: str) -> int:
        import pyarrow
        import pyarrow.json

        pyarrow.set_cpu_count(self.threads)
        options = pyarrow.json.ReadOptions(block_size=16 << 20)
        return pyarrow.json.read_json(path, read_options=options).num_rows


class Quarrier(Engine):
    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import quarrier

        self.quarrier = quarrier

    def load(self, path: str) -> None:
        self.table = self.quarrier.Table.from_messages(path, workers=self.threads)

    def load_json(self, path: str) -> int:
        return len(self.quarrier.Table.from_messages(path, workers=self.threads))

    def ask_one(self, statement: str) -> Rows:
        return self.rows(self.table.query(statement, workers=self.threads))

    def together(self, statements: list[str]) -> list[Rows]:
        return [self.rows(table) for table in self.table.query_many(statements, workers=self.threads)]

    def load_fix(self, path: str) -> int:
        return len(self.quarrier.Table.from_messages(path, workers=self.threads, format="fix"))

    def touched(self, statements: list[str]) -> int:
        """The bytes of packed columns that these statements read from memory."""
        explained = self.table.explain(statements, workers=self.threads)
        found = re.search(r"(\d+) bytes of columns touched", explained)
        return int(found[1]) if found else 0

    def memory_read(self) -> float:
        """The rate at which this many threads read memory, in bytes per second."""
        return max(
            reading.value
            for reading in self.quarrier.gauge("memory", quick=True)
            if reading.measurement == "read"
            and reading.parameters.get("threads") == self.threads
            and reading.parameters.get("block_bytes", 1 << 28) >= 1 << 26
        )

    @staticmethod
    def rows(table: Any) -> Rows:
        return [list(row.values()) for row in table.to_pylist()]


ENGINES: dict[str, Callable[[int], Engine]] = {
    "quarrier": Quarrier,
    "clickhouse": ClickHouse,
    "duckdb": DuckDB,
    "datafusion": DataFusion,
    "polars": Polars,
    "pyarrow": PyArrow,
}


def resident_bytes() -> int:
    """The anonymous memory of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def serve(engine: Engine) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        call = getattr(engine, request["call"], None) if request["call"] != "memory" else resident_bytes
        try:
            start = time.perf_counter()
            result = call(*request["arguments"])
            answer = {"seconds": time.perf_counter() - start, "result": result}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    # The output of engines must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = answers
    serve(ENGINES[sys.argv[1]](int(sys.argv[2])))
