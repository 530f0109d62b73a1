"""A hundred thousand standing conditions, `symbol = … AND price > … AND qty > …`, over a stream of orders.

    many.py --quarrier PROGRAM [--atree PROGRAM] [--esper FOLDER] [--patience SECONDS] [--conditions N] [--rows N]
            [--rounds N] [--data FOLDER]

`quarrier filter --many` reads JSON lines and prints the count of each condition; with `--follow`, from a pipe, it
prints a row for each match. The counts are compared with those of a join by DuckDB, whose time is shown too: the
orders and the conditions are in its memory. Quantities are chosen so that an order meets one condition or fewer on
average. Programs run as whole processes with one worker; what reading the orders costs (one condition), and what
making the conditions costs (one order), is measured beside it and subtracted.

Rivals that keep conditions too are the crate a-tree (`rivals/atree`, built with `cargo build --release`) and Esper
(`rivals/esper`, whose `pom.xml` fetches the jars into a folder). They have the orders in memory before the time
starts, and take 1,000 conditions, 10,000, and all, as far as they make them within the patience. After as much
time again they stop, and the matches of the orders so far are compared with DuckDB's.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import orders
from processes import machine

sys.path.insert(0, str(Path(__file__).parent.parent))
from turns import Contender, Turns, run

HERE = Path(__file__).parent
RIVALS = HERE.parents[1] / "rivals"
RATE_GOAL, MADE_GOAL = 0.5e6, 0.5
#: The exit status of a rival that does not make its conditions in time.
RIVAL_TOO_SLOW = 3
RIVAL_ROUNDS = 3


def make(count: int, rows: int, folder: Path) -> tuple[Path, Any]:
    """The file of conditions, and the matches of each, by DuckDB."""
    random = np.random.default_rng(32)
    base = duckdb.connect(config={"threads": 1})
    base.execute(f"CREATE TABLE m AS SELECT * FROM '{orders.make(rows, folder)}'")
    found = base.execute("SELECT symbol, median(price) FROM m GROUP BY symbol ORDER BY symbol").fetchall()
    picks = random.integers(0, len(found), count)
    prices = [round(found[pick][1] * random.uniform(0.97, 1.05), 2) for pick in picks]
    quantities = np.maximum(1, random.lognormal(7.2, 0.8, count)).astype(int)
    symbols = [found[pick][0] for pick in picks]
    path = folder / f"conditions-{count}.sql"
    every = zip(symbols, prices, quantities, strict=True)
    path.write_text("".join(f"symbol = '{s}' AND price > {p} AND qty > {q}\n" for s, p, q in every))
    base.execute("CREATE TABLE c (id INT, s VARCHAR, p DOUBLE, q INT)")
    base.execute("INSERT INTO c SELECT unnest(?), unnest(?), unnest(?), unnest(?)",
                 [list(range(count)), symbols, prices, quantities.tolist()])  # fmt: skip
    return path, base


def joined(base: Any) -> Counter[int]:
    pairs = base.execute("SELECT c.id, count(*) FROM m JOIN c ON symbol = s AND price > p AND qty > q GROUP BY 1")
    return Counter(dict(pairs.fetchall()))


def counted(output: bytes) -> list[int]:
    """The count of each condition, in order."""
    return [int(row["count"]) for row in csv.DictReader(io.StringIO(output.decode()))]


def followed(output: bytes) -> list[int]:
    """The counts of the conditions that have any, from a row for each match."""
    found = Counter(row["condition"] for row in csv.DictReader(io.StringIO(output.decode())))
    return sorted(found.values())


def joined_first(base: Any, conditions: int, rows: int) -> dict[int, int]:
    """The matches of the first conditions among the first orders."""
    pairs = base.execute(
        "SELECT c.id, count(*) FROM m JOIN c ON symbol = s AND price > p AND qty > q "
        f"WHERE c.id < {conditions} AND m.id < {rows} GROUP BY 1"
    )
    return dict(pairs.fetchall())


class RivalRun(NamedTuple):
    """What a rival says: seconds for making the conditions, orders, their CPU seconds."""

    made: float
    made_cpu: float
    orders: int
    cpu: float


def rival_run(command: list[Any], base: Any, conditions: int) -> RivalRun | None:
    """Runs a rival, and compares its counts; None if making the conditions took too long."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode == RIVAL_TOO_SLOW:
        return None
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:300]}: status {done.returncode}: {done.stderr[-800:]}")
    first, *counts = done.stdout.splitlines()
    made, made_cpu, orders_done, cpu = first.split()
    found = {int(number): int(count) for number, count in map(str.split, counts)}
    if found != joined_first(base, conditions, int(orders_done)):
        sys.exit(f"a rival has a different answer: {' '.join(map(str, command))}")
    return RivalRun(float(made), float(made_cpu), int(orders_done), float(cpu))


def measure_rival(
    name: str, command: list[Any], inputs: tuple[Path, Path, Any], arguments: argparse.Namespace
) -> None:
    """Measures a rival with more and more conditions."""
    many, source, base = inputs
    lines = many.read_text().splitlines(keepends=True)
    for count in sorted({min(size, len(lines)) for size in (1_000, 10_000, len(lines))}):
        some = arguments.data / "conditions-some.sql"
        some.write_text("".join(lines[:count]))
        runs: list[RivalRun] = []
        for _ in range(RIVAL_ROUNDS):
            found = rival_run([*command, some, source, arguments.patience], base, count)
            if not found:
                print(f"  {name}, {count:,} conditions: not made in {arguments.patience} s", flush=True)
                return
            runs.append(found)
            if found.made > arguments.patience / 4:
                break
        made, made_cpu, done, _ = (statistics.median(column) for column in zip(*runs, strict=True))
        rates = [run.orders / max(run.cpu, 1e-9) for run in runs]
        print(
            f"  {name}, {count:,} conditions: made in {made:.2f} s, CPU {made_cpu:.2f} s; {done:,.0f} orders, "
            f"{statistics.median(rates):,.0f} per CPU second ({min(rates):,.0f} to {max(rates):,.0f}), "
            f"rounds: {len(runs)}",
            flush=True,
        )


def measure_rivals(many: Path, base: Any, arguments: argparse.Namespace) -> None:
    inputs = (many, orders.make_csv(arguments.rows, arguments.data), base)
    if arguments.atree:
        measure_rival("a-tree", [arguments.atree], inputs, arguments)
    if arguments.esper and shutil.which("java"):
        options = ["-XX:+UseSerialGC", "-XX:MaxRAMPercentage=50", "-XX:MaxMetaspaceSize=6g"]
        command = ["java", *options, "-cp", f"{arguments.esper}/*", RIVALS / "esper" / "Esper.java"]
        measure_rival("Esper", command, inputs, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarrier", type=Path, required=True)
    parser.add_argument("--atree", type=Path)
    parser.add_argument("--esper", type=Path)
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--conditions", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve()
    arguments.data.mkdir(parents=True, exist_ok=True)
    print(f"{datetime.date.today()}: {machine(arguments.data)}")
    source = orders.make_json(arguments.rows, arguments.data)
    one_order = arguments.data / "one-order.ndjson"
    with source.open("rb") as file:
        one_order.write_bytes(file.readline())
    many, base = make(arguments.conditions, arguments.rows, arguments.data)
    expected = joined(base)
    all_counts = [expected[number] for number in range(arguments.conditions)]
    print(f"{arguments.conditions:,} conditions, {arguments.rows:,} orders, {expected.total():,} matches")
    seconds = []
    for _ in range(arguments.rounds):
        start = time.perf_counter()
        joined(base)
        seconds.append(time.perf_counter() - start)
    print(f"  a join by DuckDB, in memory, one thread: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to "
          f"{max(seconds):.2f})")  # fmt: skip
    filter_ = [arguments.quarrier, "filter", "-q", "-j", "1", "--format", "csv"]
    shell = " ".join(map(str, [*filter_, "--many", many, "--follow", "-"]))
    turns = Turns(
        {
            "one condition": Contender([*filter_, "-c", "qty > 1000", source]),
            "all, one order": Contender([*filter_, "--many", many, one_order], accepted=(0, 1)),
            "all": Contender(
                [*filter_, "--many", many, source],
                lambda output: sorted(filter(None, counted(output))) if counted(output) == all_counts else None,
            ),
            "all, --follow": Contender(["sh", "-c", f"cat {source} | {shell}"], followed),
        },
        arguments.rounds,
        sorted(filter(None, all_counts)),
    )
    turns.show("one condition")
    for name in ("all", "all, --follow"):
        pairs = zip(turns.cpu[name], turns.cpu["all, one order"], turns.cpu["one condition"], strict=True)
        costs = [(whole - made, whole - made - parsed) for whole, made, parsed in pairs]
        rates = [arguments.rows / statistics.median(column) / 1e6 for column in zip(*costs, strict=True)]
        print(f"  {name}: {rates[0]:.2f} M orders per CPU second, {rates[1]:.2f} without parsing; must be "
              f"{RATE_GOAL / 1e6:.1f}")  # fmt: skip
    with tempfile.NamedTemporaryFile() as account:
        made = []
        for _ in range(arguments.rounds):
            run([*filter_, "--stats", account.name, "--many", many, one_order], accepted=(0, 1))
            made.append(json.loads(Path(account.name).read_text())["compile_seconds"])
    print(
        f"  conditions made in {statistics.median(made):.2f} s ({min(made):.2f} to {max(made):.2f}), wall time; "
        f"must be {MADE_GOAL}"
    )
    measure_rivals(many, base, arguments)
    print(machine(arguments.data))


if __name__ == "__main__":
    main()
