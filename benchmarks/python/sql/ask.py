"""The cost of quarrier-sql over the table and the engine it is built on.

    python ask.py PROGRAM [--rows 6500000] [--rounds 7] [--data FOLDER] [--engines a,b,…] [--json FILE]

The orders of `../messages/orders.py` as JSON lines, in memory in every engine, with two threads each, in turns.
Four queries against `quarrier.Table`; grouping and joins against DataFusion; the twenty together with
`--concurrent` against the best way of DuckDB and ClickHouse. Answers are compared first.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from answers import are_same
from program import Program

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "messages"))

import conditions  # noqa: E402
import orders  # noqa: E402
from rounds import THREADS, Contender, Times, compare, normal, show, top_symbols  # noqa: E402

OURS = "quarrier-sql"
WITHIN = "quarrier-sql within"
#: The four queries take a few milliseconds, of which an interruption would be a tenth, so they run
#: this many times as many rounds as the others.
SHORT_ROUNDS = 8


class Sql:
    """The program, with the interface of the other engines."""

    name = OURS

    def __init__(self, program: str, path: Path) -> None:
        self.program = Program(program, {"m": path}, f"--workers={THREADS}", "--timing")
        self.asked = 0
        self.call("ask", ["SELECT count(*) AS n FROM m"])

    def call(self, call: str, statements: list[str]) -> tuple[float, Any]:
        assert call == "ask"
        answers = [self.program.ask(statement) for statement in statements]
        self.asked += len(statements)
        rows = [[list(row.values()) for row in found] for _, found in answers]
        return sum(seconds for seconds, _ in answers), rows

    def within(self) -> float:
        """The program's own time for the last statement, without pipes and Python's reading, as for the other
        engines."""
        return self.program.timed[2 * self.asked - 2]

    def end(self) -> None:
        self.program.end()


def grouped(top: conditions.Top) -> dict[str, tuple[str, bool]]:
    """Grouping and joins, and whether each contains a selective condition."""
    symbol = top[3][0]
    return {
        "groups, few": (
            "SELECT status, side, count(*) AS n, sum(qty) AS q, min(price) AS low, max(price) AS high "
            "FROM m GROUP BY status, side",
            False,
        ),
        "groups, many": (
            "SELECT count(*) AS n, max(q) AS most FROM "
            "(SELECT account, sum(qty) AS q FROM m GROUP BY account) AS g",
            False,
        ),
        "groups of a few": (
            "SELECT account, count(*) AS n, sum(qty) AS q FROM m WHERE status = 'REJECTED' "
            "AND price > 500 AND qty > 1000 GROUP BY account HAVING count(*) > 1",
            True,
        ),
        "groups of a symbol": (
            f"SELECT status, avg(price) AS p, sum(qty) AS q FROM m WHERE symbol = '{symbol}' "
            "AND note LIKE '%urgent%' GROUP BY status",
            True,
        ),
        "join of a few": (
            "SELECT count(*) AS n FROM m AS a JOIN m AS b ON a.account = b.account "
            f"WHERE a.symbol = '{symbol}' AND a.qty > 4000 AND b.status = 'EXPIRED' AND b.qty > 4000",
            True,
        ),
        # A little more than 1.1: if a mean has two digits, a price may equal 1.1 times it, and the result would
        # depend on how an engine rounds.
        "join with groups": (
            "SELECT count(*) AS n FROM m JOIN (SELECT symbol, avg(price) AS p FROM m GROUP BY symbol) AS s "
            "ON m.symbol = s.symbol WHERE m.price > 1.1 * s.p + 0.0000001",
            False,
        ),
        "not in": (
            "SELECT count(*) AS n FROM m WHERE status = 'REJECTED' AND qty > 2000 AND account NOT IN "
            "(SELECT account FROM m WHERE status = 'EXPIRED' AND qty > 100)",
            True,
        ),
    }


def in_turns(
    title: str,
    contenders: list[Any],
    ask: Any,
    rounds: int,
    is_same: Any,
) -> Times:
    """Compares the answers of all, then measures them."""
    expected = None
    for contender in contenders:
        found = ask(contender)[1]
        expected = found if expected is None else expected
        if not is_same(expected, found):
            compare(expected, found, f"{title} by {contender.name}")
    times = Times()
    for _ in range(rounds):
        for contender in contenders:
            times.add(contender.name, ask(contender)[0])
            if isinstance(contender, Sql):
                times.add(WITHIN, contender.within())
    return times


def near(one: list[Any], other: list[Any]) -> bool:
    """Compares rows of strings and numbers, including sums and means of floats."""
    kinds = ["text" if isinstance(cell, str) else "float" for cell in (one + other + [[]])[0]]
    rows = [[tuple(row) for row in answer] for answer in (one, other)]
    return are_same(rows[0], rows[1], kinds, is_ordered=False)


def concurrent(program: str, path: Path, statements: list[str]) -> tuple[float, list[int]]:
    """Runs all at once over a loaded table; returns the program's own seconds, and the numbers of rows."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(";\n".join(statements) + ";\n")
        file.flush()
        command = [program, f"--table=m={path}", f"--workers={THREADS}", "--concurrent", file.name,
                   "--format", "json"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found_time = re.search(r"statements in ([0-9.]+) s", done.stderr)
    if not found_time:
        sys.exit(f"ask.py: the program does not say how long it took: {done.stderr[:300]}")
    return float(found_time[1]), [row["rows"] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=6_500_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--engines", default="quarrier,clickhouse,duckdb,datafusion")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.data.mkdir(exist_ok=True)
    path, _ = orders.make_text(arguments.rows, arguments.data)
    parquet = orders.make(arguments.rows, arguments.data)
    rivals = [Contender(name) for name in arguments.engines.split(",")]
    for rival in rivals:
        rival.call("load", str(parquet))
    ours = Sql(arguments.program, path)
    top = top_symbols(parquet)
    record: dict[str, Any] = {"rows": arguments.rows, "questions": {}}

    def keep(question: str, times: Times) -> None:
        record["questions"][question] = times.record()

    native = [rival for rival in rivals if rival.name == "quarrier"]
    others = [rival for rival in rivals if rival.name != "quarrier"]
    for name, statement in conditions.single(top).items():
        times = in_turns(
            name,
            [*native, ours, *others],
            lambda c, s=statement: c.call("ask", [s]),
            SHORT_ROUNDS * arguments.rounds,
            lambda a, b: [normal(rows) for rows in a] == [normal(rows) for rows in b],
        )
        show(f"{name} over {arguments.rows:,} messages", times, [])
        if native:
            for way, what in {WITHIN: "by its own clock", OURS: "with pipes and Python's reading"}.items():
                slower = times.median(way) / times.median("quarrier")
                print(
                    f"  {OURS}, {what}: {100 * (slower - 1):+.0f} % of the native table's time"
                    " (must be: at most +10 %)"
                )
        keep(name, times)
    for name, (statement, is_selective) in grouped(top).items():
        times = in_turns(
            name,
            [ours, *others],
            lambda c, s=statement: (lambda answer: (answer[0], answer[1][0]))(c.call("ask", [s])),
            arguments.rounds,
            near,
        )
        show(f"{name} over {arguments.rows:,} messages", times, [])
        if "datafusion" in times.seconds:
            ratio = times.median("datafusion") / times.median(OURS)
            print(f"  {OURS}: {ratio:.2f} times as fast as DataFusion (must be: {2 if is_selective else 1})")
        keep(name, times)
    twenty = conditions.statements(conditions.twenty(top))
    ours.end()
    times = Times()
    counts = [normal(rows) for rows in others[0].call("ask", twenty)[1]]
    for _ in range(arguments.rounds):
        seconds, rows = concurrent(arguments.program, path, twenty)
        compare([len(answer) for answer in counts], rows, "rows of the twenty, together")
        times.add(f"{OURS} --concurrent", seconds)
        for rival in [r for r in rivals if r.name in ("clickhouse", "duckdb", "quarrier")]:
            for way in ("ask", "together", "clients"):
                taken, found = rival.call(way, twenty)
                compare(counts, [normal(rows) for rows in found], f"the twenty by {rival.name}, {way}")
                times.add(f"{rival.name} {way}", taken)
    show(f"twenty together over {arguments.rows:,} messages", times, [])
    best = min((name for name in times.seconds if not name.startswith("quarrier")), key=times.median)
    ratio = times.median(best) / times.median(f"{OURS} --concurrent")
    print(f"  {OURS}: {ratio:.2f} times as fast as {best} (must be: 6)")
    keep("20", times)
    for rival in rivals:
        rival.end()
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
