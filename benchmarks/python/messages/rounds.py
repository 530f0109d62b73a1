"""quarrier against column stores over messages in memory, in turns, with results compared first.

    rounds.py [--rows N] [--text-rows N] [--rounds N] [--engines a,b,…] [--parts ask,load,filter]
              [--data FOLDER] [--json FILE] [--quarrier PROGRAM]

Each engine keeps its table in its own process and waits while others work.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import conditions
import orders
from processes import cpu_seconds

HERE = Path(__file__).parent
THREADS = 2
#: For SQL and for jq.
FILTERED = (
    "status = 'REJECTED' AND price > 100 AND qty BETWEEN 100 AND 500",
    '.status == "REJECTED" and .price > 100 and .qty >= 100 and .qty <= 500',
)


class Contender:
    """An engine's process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "engines.py"), name, str(THREADS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, call: str, *arguments: Any) -> tuple[float, Any]:
        """The seconds measured in the engine's process, and the result."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps({"call": call, "arguments": arguments}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the engine ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {call}: {answer['error'][:300]}")
        return answer.get("seconds", 0.0), answer["result"]

    def cpu_seconds(self) -> float:
        """CPU seconds of the engine's process so far."""
        return cpu_seconds(self.process.pid)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


# The figures that quarrier's predecessor reported on its own machine, for 100 million messages.
OLDER = (
    "the older engine, 32 threads: one query 250 M matches/s, twenty 466 M matches/s, reindex 45.6 M messages/s"
)


def is_ours(name: str) -> bool:
    return name.startswith("quarrier")


def normal(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows in a canonical order, because no engine promises one."""
    return sorted(rows, key=repr)


class Times:
    """The seconds of every round, for each engine and one query."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def add(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ahead(self) -> tuple[float, str]:
        """The median of the rounds' ratios to the best rival, and that rival."""
        rivals = [name for name in self.seconds if not is_ours(name)]
        best = min(rivals, key=self.median)
        ours = min(filter(is_ours, self.seconds), key=self.median)
        pairs = zip(self.seconds[best], self.seconds[ours], strict=False)
        return statistics.median(rival / own for rival, own in pairs), best

    def record(self) -> dict[str, Any]:
        return {
            name: {
                "median": self.median(name),
                "min": min(seconds),
                "max": max(seconds),
                "runs": len(seconds),
            }
            for name, seconds in self.seconds.items()
        }


def compare(expected: Any, got: Any, what: str) -> None:
    if expected != got:
        sys.exit(f"rounds.py: WRONG RESULT: {what}: {str(expected)[:200]} / {str(got)[:200]}; no time is given")


def top_symbols(path: Path) -> conditions.Top:
    """Symbols by frequency with their median price, from the first million orders."""
    import duckdb

    return duckdb.execute(
        f"SELECT symbol, round(median(price), 2) FROM (SELECT * FROM '{path}' LIMIT 1000000) "
        "GROUP BY symbol ORDER BY count(*) DESC, symbol"
    ).fetchall()


def ask(contenders: list[Contender], rows: int, path: Path, rounds: int) -> dict[str, Any]:
    memory = {}
    for contender in contenders:
        before = contender.call("memory")[1]
        seconds, _ = contender.call("load", str(path))
        memory[contender.name] = (contender.call("memory")[1] - before) / rows
        each = memory[contender.name]
        print(f"{contender.name}: {seconds:.1f} s to load, {each:.0f} B each", file=sys.stderr)
    top = top_symbols(path)
    questions: dict[str, list[tuple[str, str, list[str]]]] = {}
    for name, statement in conditions.single(top).items():
        questions[name] = [(contender.name, "ask", [statement]) for contender in contenders]
    twenty = conditions.statements(conditions.twenty(top))
    ways = ("ask", "together", "clients")
    questions["20"] = [(c.name, way, twenty) for c in contenders for way in ways]
    many = [s for turn in range(10) for s in conditions.statements(conditions.twenty(top, turn))]
    questions["200"] = [("quarrier", "together", many)]
    by_name = {contender.name: contender for contender in contenders}
    ceiling = by_name["quarrier"].call("memory_read")[1]
    print(f"\n{OLDER}\nmemory: {ceiling / 1e9:.1f} GB/s read by {THREADS} threads")
    record: dict[str, Any] = {
        "rows": rows,
        "bytes_a_message": memory,
        "memory_read_bytes_per_second": ceiling,
        "questions": {},
    }
    for question, asked in questions.items():
        times, expected = Times(), None
        able = []
        for name, way, statements in asked:
            if name not in by_name:
                continue
            try:
                result = [normal(rows_) for rows_ in by_name[name].call(way, statements)[1]]
            except RuntimeError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            expected = result if expected is None else expected
            compare(expected, result, f"{question} by {name}, {way}")
            able.append((name, way, statements))
        for _ in range(rounds):
            for name, way, statements in able:
                times.add(f"{name} {way}", by_name[name].call(way, statements)[0])
        count = len(asked[0][2])
        title = f"{question}: {count} conditions over {rows:,} messages"
        show(title, times, [(rows * count, "M matches/s")])
        touched = by_name["quarrier"].call("touched", asked[0][2])[1]
        ours = min(times.median(name) for name in times.seconds if is_ours(name))
        print(
            f"  quarrier: {touched / 1e6:,.1f} MB of columns touched, {touched / ours / 1e9:.1f} GB/s,"
            f" {100 * touched / ours / ceiling:.0f} % of the memory bandwidth"
        )
        record["questions"][question] = times.record() | {"bytes_touched": touched}
    return record


def show(title: str, times: Times, measures: list[tuple[float, str]]) -> None:
    """Prints a line for each contender, fastest first: milliseconds, and amounts per second."""
    print(f"\n{title}")
    for name in sorted(times.seconds, key=times.median):
        seconds = times.median(name)
        rates = "".join(f"{amount / seconds / 1e6:12,.1f} {unit}" for amount, unit in measures)
        print(f"  {name:22} {1e3 * seconds:10.2f} ms{rates}")
    if any(not is_ours(name) for name in times.seconds) and any(map(is_ours, times.seconds)):
        ratio, best = times.ahead()
        print(f"  quarrier: {ratio:.2f} times as fast as {best}")


def load(contenders: list[Contender], rows: int, path: Path, rounds: int) -> dict[str, Any]:
    times = Times()
    for contender in contenders:
        compare(rows, contender.call("load_json", str(path))[1], f"messages loaded by {contender.name}")
    for _ in range(rounds):
        for contender in contenders:
            times.add(contender.name, contender.call("load_json", str(path))[0])
    size = path.stat().st_size
    title = f"Loading {rows:,} messages as JSON lines, {size / 1e6:,.0f} MB"
    show(title, times, [(rows, "M messages/s"), (size, "MB/s")])
    return {"rows": rows, "bytes": size, "seconds": times.record()}


def load_fix(contender: Contender, rows: int, path: Path, rounds: int) -> dict[str, Any]:
    """No other engine reads FIX."""
    compare(rows, contender.call("load_fix", str(path))[1], "FIX messages loaded")
    times = Times()
    for _ in range(rounds):
        times.add(contender.name, contender.call("load_fix", str(path))[0])
    size = path.stat().st_size
    title = f"Loading {rows:,} messages as FIX, checksums verified, {size / 1e6:,.0f} MB"
    show(title, times, [(rows, "M messages/s"), (size, "MB/s")])
    return {"rows": rows, "bytes": size, "seconds": times.record()}


def filter_file(quarrier: str, path: Path, rounds: int) -> dict[str, Any]:
    """Whole processes that read the file and count; jq only once per query, because it takes minutes."""
    duckdb = str(Path(sys.executable).with_name("duckdb"))
    condition, of_jq = FILTERED
    count = f"SET threads = {THREADS}; SELECT count(*) FROM read_json('{path}') WHERE {condition}"
    commands = {
        "quarrier": [quarrier, "filter", "-c", condition, str(path)],
        "duckdb": [duckdb, "-noheader", "-csv", "-c", count],
    }
    if shutil.which("jq"):
        commands["jq"] = ["jq", f"select({of_jq}) | .id", str(path)]
    times, found = Times(), {}
    for turn in range(rounds):
        for name, command in commands.items():
            if name == "jq" and turn:
                continue
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times.add(name, time.perf_counter() - start)
            lines = done.stdout.split()
            found[name] = len(lines) if name == "jq" else int(lines[-1])
            compare(found["quarrier"], found[name], f"messages found by {name}")
    size = path.stat().st_size
    show(f"quarrier filter -c, {size / 1e6:,.0f} MB: {condition}", times, [(size, "MB/s")])
    return {"condition": condition, "found": found, "bytes": size, "seconds": times.record()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--text-rows", type=int, default=6_500_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--engines", default="quarrier,clickhouse,duckdb,datafusion,polars,pyarrow")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parts", default="ask,load,filter")
    parser.add_argument("--quarrier", default="quarrier")
    arguments = parser.parse_args()
    arguments.data.mkdir(exist_ok=True)
    names, record = arguments.engines.split(","), {}
    if "ask" in arguments.parts:
        path = orders.make(arguments.rows, arguments.data)
        contenders = [Contender(name) for name in names if name != "pyarrow"]
        record["ask"] = ask(contenders, arguments.rows, path, arguments.rounds)
        for contender in contenders:
            contender.end()
    if "load" in arguments.parts:
        path, fix = orders.make_text(arguments.text_rows, arguments.data)
        contenders = [Contender(name) for name in names]
        record["load"] = load(contenders, arguments.text_rows, path, arguments.rounds)
        record["load_fix"] = load_fix(contenders[0], arguments.text_rows, fix, arguments.rounds)
        for contender in contenders:
            contender.end()
    if "filter" in arguments.parts:
        path, _ = orders.make_text(arguments.text_rows, arguments.data)
        record["filter"] = filter_file(arguments.quarrier, path, arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
