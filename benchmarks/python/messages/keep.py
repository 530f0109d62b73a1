"""Loading into the durable log, rebuilding from it, and the bytes that it takes, against rivals at the same
promise: everything is on disk when they answer.

    keep.py --quarrier PROGRAM --quarrier-sql PROGRAM [--rows N] [--rounds N] [--data FOLDER]
            [--postgres FOLDER] [--questdb JAR] [--only WORD,…] [--json FILE]

The orders of `orders.py`. quarrier and DuckDB read JSON lines; PostgreSQL and QuestDB read CSV, which they parse
faster. Contenders take turns. What each has stored is compared before a time is taken, and the number of messages
in every round. A contender whose files are missing is reported and left out.

`quarrier load` writes the log and no columns: these are stored when a server or Python opens the folder, which
`quarrier load, columns` includes. `quarrier reindex` rebuilds the columns in memory; `quarrier query` does so from
the file, and `quarrier filter -c` parses the file without keeping anything.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import orders
from processes import COLUMNS, Facts, Postgres, Quarrier, QuestDb, machine, remove, run
from rounds import THREADS, Contender, Times, compare

HERE = Path(__file__).parent
FACTS = "SELECT count(*), sum(id), sum(qty), count(note), min(ts), max(ts) FROM m"
#: The types of the orders for DuckDB, which detects them otherwise.
DECLARED = str(
    {
        "id": "BIGINT", "symbol": "VARCHAR", "side": "VARCHAR", "price": "DOUBLE", "qty": "INTEGER",
        "ts": "BIGINT", "account": "VARCHAR", "status": "VARCHAR", "note": "VARCHAR",
    }
)  # fmt: skip
#: One of ours, one of the others, and by what factor it must be as fast.
GOALS = (
    ("quarrier load", "quarrier reindex", 0.8),
    ("quarrier reindex", "quarrier query", 0.9),
    ("quarrier load", "duckdb", 2.0),
    ("quarrier load", "duckdb, declared", 2.0),
    ("quarrier load", "postgresql", 5.0),
    ("quarrier load", "questdb", 5.0),
    ("quarrier load, columns", "duckdb", None),
    ("quarrier load, columns", "postgresql", None),
    ("quarrier load, columns", "questdb", None),
)


class Turn:
    """A way to load the orders."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self) -> None:
        """Removes what the last turn left; not timed."""

    def load(self) -> tuple[float, float]:
        """The seconds, and those of CPU time."""
        raise NotImplementedError

    def facts(self) -> Facts | None:
        """The stored orders as numbers; None if nothing is stored."""
        raise NotImplementedError

    def count(self) -> int | None:
        """The number of stored orders; None if `load` has compared it."""
        return None

    def end(self) -> None:
        pass


class Programs:
    def __init__(self, quarrier: Path, sql: Path, source: Path, rows: int) -> None:
        self.quarrier, self.sql, self.source, self.rows = quarrier, sql, source, rows

    def load(self, folder: Path, *options: str) -> tuple[float, float]:
        ran = run([self.quarrier, "load", "--data", folder, "--table", "m", self.source, "--format", "json",
                   f"--workers={THREADS}", *options])  # fmt: skip
        row = json.loads(ran.output)
        compare((self.rows, 0), (row["messages"], row["rejected"]), "messages loaded by quarrier")
        return ran.seconds, ran.cpu_seconds

    def facts(self, *tables: Any) -> Facts:
        ran = run([self.sql, *tables, "--format", "json", FACTS])
        return ["|".join(str(value) for value in json.loads(ran.output).values())]


class Load(Turn):
    def __init__(self, programs: Programs, folder: Path, options: list[str], has_columns: bool) -> None:
        super().__init__("quarrier load" + (" " + " ".join(options) if options else ""))
        if has_columns:
            self.name += ", columns"
        self.programs, self.folder, self.options, self.has_columns = programs, folder, options, has_columns

    def prepare(self) -> None:
        remove(self.folder)

    def load(self) -> tuple[float, float]:
        seconds, used = self.programs.load(self.folder, *self.options)
        if self.has_columns:
            server = Quarrier(self.programs.sql, self.folder.with_suffix(".serve"),
                              ["--data", self.folder, f"--workers={THREADS}"])  # fmt: skip
            seconds += server.start()
            used += server.cpu_seconds()
            server.stop()
            columns = list(self.folder.glob("*.columns"))
            compare(1, len(columns), "files of columns after the server's start")
        return seconds, used

    def facts(self) -> Facts:
        return self.programs.facts("--data", self.folder)

    def end(self) -> None:
        remove(self.folder)
        remove(self.folder.with_suffix(".serve"))


class Reindex(Turn):
    def __init__(self, programs: Programs, folder: Path) -> None:
        super().__init__("quarrier reindex")
        self.programs, self.folder = programs, folder
        remove(folder)
        programs.load(folder)
        #: Bytes of memory of the columns, and the program's own seconds.
        self.memory_bytes, self.within = 0, []  # type: ignore[var-annotated]

    def load(self) -> tuple[float, float]:
        ran = run([self.programs.quarrier, "reindex", "--data", self.folder, f"--workers={THREADS}",
                   "--format", "json"])  # fmt: skip
        row = json.loads(ran.output)
        compare(self.programs.rows, row["messages"], "messages of quarrier reindex")
        self.memory_bytes = row["memory_bytes"]
        self.within.append(row["seconds"])
        return ran.seconds, ran.cpu_seconds

    def facts(self) -> Facts:
        return self.programs.facts("--data", self.folder)

    def end(self) -> None:
        remove(self.folder)


class Query(Turn):
    """Loads the file into memory."""

    def __init__(self, programs: Programs) -> None:
        super().__init__("quarrier query")
        self.programs = programs

    def load(self) -> tuple[float, float]:
        ran = run([self.programs.sql, f"--table=m={self.programs.source}", f"--workers={THREADS}", "--format",
                   "json", "SELECT count(*) AS n FROM m"])  # fmt: skip
        compare({"n": self.programs.rows}, json.loads(ran.output), "messages of quarrier query")
        return ran.seconds, ran.cpu_seconds

    def facts(self) -> Facts:
        return self.programs.facts(f"--table=m={self.programs.source}")


class Filter(Turn):
    """Parses the file, and counts all messages."""

    def __init__(self, programs: Programs) -> None:
        super().__init__("quarrier filter -c")
        self.programs = programs

    def load(self) -> tuple[float, float]:
        ran = run([self.programs.quarrier, "filter", "-c", "id >= 0", self.programs.source,
                   f"--workers={THREADS}"])  # fmt: skip
        compare(self.programs.rows, int(ran.output), "messages of quarrier filter")
        return ran.seconds, ran.cpu_seconds

    def facts(self) -> Facts | None:
        return None


class DuckDb(Turn):
    def __init__(self, name: str, columns: str, source: Path, path: Path) -> None:
        super().__init__(name)
        self.columns, self.source, self.path = columns, source, path
        self.contender = Contender("duckdb")

    def prepare(self) -> None:
        for path in (self.path, Path(f"{self.path}.wal")):
            path.unlink(missing_ok=True)

    def load(self) -> tuple[float, float]:
        before = self.contender.cpu_seconds()
        seconds, _ = self.contender.call("load_file", str(self.source), str(self.path), self.columns)
        return seconds, self.contender.cpu_seconds() - before

    def facts(self) -> Facts:
        rows = self.contender.call("ask_file", str(self.path), FACTS.replace("sum(", "sum_no_overflow("))[1]
        return ["|".join(map(str, row)) for row in rows]

    def count(self) -> int:
        return self.contender.call("ask_file", str(self.path), "SELECT count(*) FROM m")[1][0][0]

    def end(self) -> None:
        self.contender.end()
        self.prepare()


class PostgresCopy(Turn):
    def __init__(self, programs: Path, folder: Path, csv: Path) -> None:
        super().__init__("postgresql")
        self.folder, self.csv = folder, csv
        remove(folder)
        self.server = Postgres(programs, folder)

    def prepare(self) -> None:
        self.server.ask(f"DROP TABLE IF EXISTS m; CREATE TABLE m ({COLUMNS}); CHECKPOINT")

    def load(self) -> tuple[float, float]:
        before, start = self.server.cpu_seconds(), time.perf_counter()
        self.server.ask(f"COPY m FROM '{self.csv}' (FORMAT csv, HEADER true)")
        return time.perf_counter() - start, self.server.cpu_seconds() - before

    def facts(self) -> Facts:
        return self.server.ask(FACTS)

    def count(self) -> int:
        return int(self.server.ask("SELECT count(*) FROM m")[0])

    def end(self) -> None:
        self.server.stop()
        remove(self.folder)


class QuestDbCopy(Turn):
    def __init__(self, jar: Path, folder: Path, csv: Path, rows: int) -> None:
        super().__init__("questdb")
        self.folder, self.csv, self.rows = folder, csv, rows
        remove(folder)
        self.server = QuestDb(jar, folder, csv.parent, THREADS)

    def prepare(self) -> None:
        self.server.create()

    def load(self) -> tuple[float, float]:
        before, start = self.server.cpu_seconds(), time.perf_counter()
        self.server.copy(self.csv.name, self.rows)
        return time.perf_counter() - start, self.server.cpu_seconds() - before

    def facts(self) -> Facts:
        return self.server.ask(FACTS)

    def end(self) -> None:
        self.server.stop()
        remove(self.folder)


def turns(arguments: argparse.Namespace, source: Path, csv: Path) -> list[Turn]:
    work: Path = arguments.data / "keep"
    remove(work)
    work.mkdir()
    programs = Programs(arguments.quarrier, arguments.quarrier_sql, source, arguments.rows)
    found: list[Turn] = [
        Load(programs, work / "load", [], has_columns=False),
        Load(programs, work / "load-zstd", ["--compress=zstd"], has_columns=False),
        Load(programs, work / "load-columns", [], has_columns=True),
        Reindex(programs, work / "reindex"),
        Query(programs),
        Filter(programs),
        DuckDb("duckdb", "", source, work / "duck.db"),
        DuckDb("duckdb, declared", DECLARED, source, work / "duck-declared.db"),
    ]
    if (arguments.postgres / "initdb").exists():
        found.append(PostgresCopy(arguments.postgres, work / "postgres", csv))
    else:
        print(f"left out: PostgreSQL, which is not in {arguments.postgres}", file=sys.stderr)
    if arguments.questdb and arguments.questdb.exists() and shutil.which("java"):
        found.append(QuestDbCopy(arguments.questdb, work / "questdb", csv, arguments.rows))
    else:
        print("left out: QuestDB, whose jar (--questdb) or Java is missing", file=sys.stderr)
    words = arguments.only.split(",")
    chosen = [turn for turn in found if any(word in turn.name for word in words)]
    for turn in found:
        if turn not in chosen:
            turn.end()
    return chosen


def expected(rows: int, data: Path) -> Facts:
    import duckdb

    row = duckdb.execute(FACTS.replace("FROM m", f"FROM '{orders.make(rows, data)}'")).fetchone()
    return ["|".join(map(str, row or ()))]


def table(title: str, times: Times, cpu: Times, rows: int) -> None:
    """Fastest first: the median with the spread, CPU time, and the rate."""
    print(f"\n{title}")
    for name in sorted(times.seconds, key=times.median):
        seconds = times.seconds[name]
        print(
            f"  {name:30} {times.median(name):8.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"
            f"  CPU {cpu.median(name):7.3f} s {rows / times.median(name) / 1e6:8.2f} M messages/s"
        )


def ratio(times: Times, ours: str, other: str) -> tuple[float, float, float]:
    """How many times as fast ours is: the median of the rounds' ratios, the least and the greatest."""
    pairs = zip(times.seconds[other], times.seconds[ours], strict=True)
    ratios = [theirs / own for theirs, own in pairs]
    return statistics.median(ratios), min(ratios), max(ratios)


def judge(times: Times, cpu: Times) -> dict[str, Any]:
    found = {}
    for ours, other, goal in GOALS:
        if ours in times.seconds and other in times.seconds:
            median, least, most = ratio(times, ours, other)
            by_cpu = ratio(cpu, ours, other)[0]
            print(
                f"  {ours}: {median:.2f} times as fast as {other} ({least:.2f} to {most:.2f}; "
                f"by CPU time {by_cpu:.2f})" + (f"; must be {goal}: {verdict(median >= goal)}" if goal else "")
            )
            found[f"{ours} / {other}"] = {
                "median": median, "min": least, "max": most, "cpu": by_cpu, "goal": goal,
            }  # fmt: skip
    return found


def verdict(is_reached: bool) -> str:
    return "reached" if is_reached else "FALLS SHORT"


def log_bytes(folder: Path) -> int:
    """Bytes on disk of a closed log and its index."""
    paths = [*folder.glob("log/*"), *folder.glob("index")]
    return sum(max(path.stat().st_size, 512 * path.stat().st_blocks) for path in paths)


def disk(found: list[Turn], source: Path) -> dict[str, Any]:
    size, record = source.stat().st_size, {}
    print(f"\nBytes on disk of {size:,} bytes of JSON lines")
    for turn in found:
        if isinstance(turn, Load) and not turn.has_columns:
            taken, most = log_bytes(turn.folder), 1 / 3 if turn.options else 1.02
            print(f"  {turn.name}: {taken:,}, {taken / size:.4f}; must be at most {most:.2f}: "
                  f"{verdict(taken <= most * size)}")  # fmt: skip
            record[turn.name] = {"bytes": taken, "share": taken / size, "goal": most}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarrier", type=Path, required=True)
    parser.add_argument("--quarrier-sql", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=6_500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--postgres", type=Path, default=Path("/usr/lib/postgresql/15/bin"))
    parser.add_argument("--questdb", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve()
    arguments.data.mkdir(exist_ok=True)
    source = orders.make_json(arguments.rows, arguments.data)
    csv = orders.make_csv(arguments.rows, arguments.data)
    state = machine(arguments.data)
    print(f"{datetime.date.today()}: {state}")
    true = expected(arguments.rows, arguments.data)
    found = turns(arguments, source, csv)
    times, cpu = Times(), Times()
    try:
        for number in range(arguments.rounds + 1):
            for turn in found:
                turn.prepare()
                seconds, used = turn.load()
                # The first round warms up and compares all.
                if number:
                    compare(arguments.rows, turn.count() or arguments.rows, f"messages of {turn.name}")
                    times.add(turn.name, seconds)
                    cpu.add(turn.name, used)
                elif (facts := turn.facts()) is not None:
                    compare(true, facts, f"messages of {turn.name}")
                print(f"round {number}: {turn.name}: {seconds:.3f} s", file=sys.stderr)
        size = source.stat().st_size
        table(f"{arguments.rows:,} messages, {size / 1e6:,.0f} MB of JSON lines", times, cpu, arguments.rows)
        record = {
            "machine": state, "rows": arguments.rows, "bytes": size, "seconds": times.record(),
            "cpu_seconds": cpu.record(), "ratios": judge(times, cpu), "disk": disk(found, source),
        }  # fmt: skip
        for turn in found:
            if isinstance(turn, Reindex):
                own = statistics.median(turn.within)
                rate = arguments.rows / own / 1e6
                print(
                    f"\nquarrier reindex by its own clock: {own:.3f} s, {rate:.2f} M messages/s,"
                    f" {rate / THREADS:.2f} M a thread (the older engine: 1.43 M a thread);"
                    f" columns {turn.memory_bytes / arguments.rows:.1f} B a message"
                )
        print(machine(arguments.data))
    finally:
        for turn in found:
            turn.end()
        remove(arguments.data / "keep")
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
