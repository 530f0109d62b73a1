"""`quarrier serve` against PostgreSQL, QuestDB and DuckDB: single INSERTs, COPY, and many clients that ask.

    served.py --quarrier-sql PROGRAM [--parts insert,copy,clients] [--rows N] [--rounds N] [--seconds S]
              [--data FOLDER] [--postgres FOLDER] [--questdb JAR] [--json FILE]

The client is `pgbench` for all servers. For DuckDB, which has no such protocol, threads ask in its own process, so
it has no work with a wire. PostgreSQL has its defaults (`fsync`, `synchronous_commit`), 6 GB of shared buffers for
questions, and few checkpoints. Every acknowledged row is counted, and all answers are compared before a time is
taken.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import conditions
import orders
from engines import where
from keep import ratio, verdict
from processes import COLUMNS, Postgres, Quarrier, QuestDb, Server, machine, remove, run, sync_milliseconds
from rounds import THREADS, Contender, Times, compare, top_symbols

HERE = Path(__file__).parent
#: Clients, and how many times PostgreSQL's rate ours must be.
INSERTS = {1: 0.95, 8: 1.0, 64: 1.2}
COPY_GOAL = 3.0
CLIENTS, CLIENTS_GOAL, LAPS_MAX = 20, 8.0, 3.0
#: It answers twenty clients in minutes, so they ask it in one round only.
SLOW = "postgresql"
INSERT = (
    "\\set id random(1, 1000000000)\n"
    "INSERT INTO {} VALUES (:id, 'WQY', 'B', 771.05, 100, 1700000000000000049, 'ACC001896', 'NEW', "
    "'cross twap prime 71882');\n"
)


class Asked:
    """The results of pgbench."""

    def __init__(self, statements: int, rate: float, milliseconds: list[float]) -> None:
        self.statements, self.rate, self.milliseconds = statements, rate, milliseconds

    def quantile(self, share: float) -> float:
        """By the nearest rank."""
        ordered = sorted(self.milliseconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def pgbench(server: Server, scripts: list[Path], clients: int, seconds: float, mode: str, folder: Path) -> Asked:
    """Clients that send one of the scripts after another for some time."""
    for old in folder.glob("latency*"):
        old.unlink()
    files = [part for script in scripts for part in ("-f", str(script))]
    ran = run([
        "env", "PGPASSWORD=quest", "pgbench", "-n", *server.address(), *files, "-c", clients,
        "-j", min(clients, THREADS), "-T", math.ceil(seconds), "-M", mode, "--log",
        f"--log-prefix={folder}/latency", server.database,
    ])  # fmt: skip
    done = re.search(r"actually processed: (\d+)", ran.output)
    failed = re.search(r"failed transactions: (\d+)", ran.output)
    rate = re.search(r"tps = ([\d.]+) \(without", ran.output)
    if not (done and rate) or (failed and int(failed[1])):
        sys.exit(f"pgbench: {ran.output[-600:]}")
    lines = [line.split() for log in folder.glob("latency*") for line in log.read_text().splitlines()]
    return Asked(int(done[1]), float(rate[1]), [int(line[2]) / 1e3 for line in lines])


def show(name: str, rates: list[float], unit: str, more: str = "") -> None:
    print(f"  {name:12} {statistics.median(rates):12,.1f} {unit} ({min(rates):,.1f} to {max(rates):,.1f}){more}")


def inserts(servers: list[Server], arguments: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Each INSERT is one transaction, acknowledged when it is on disk."""
    record: dict[str, Any] = {}
    stored = {server.name: 0 for server in servers}
    script = work / "insert.sql"
    script.write_text(INSERT.format("single"))
    for server in servers:
        server.ask(f"CREATE TABLE single ({COLUMNS})")
    for clients, goal in INSERTS.items():
        rates, latencies = Times(), Times()
        syncs = []
        for number in range(arguments.rounds + 1):
            syncs.append(sync_milliseconds(work, 50)[0])
            for server in servers:
                asked = pgbench(server, [script], clients, arguments.seconds, arguments.mode, work)
                stored[server.name] += asked.statements
                compare([str(stored[server.name])], server.ask("SELECT count(*) FROM single"),
                        f"rows of {server.name} after {clients} clients")  # fmt: skip
                if number:
                    rates.add(server.name, asked.rate)
                    latencies.add(server.name, asked.quantile(0.99))
        print(f"\nSingle INSERTs, {clients} clients, -M {arguments.mode}; fdatasync of 4 KiB: median "
              f"{statistics.median(syncs):.2f} ms")  # fmt: skip
        for server in servers:
            late = f", p99 {latencies.median(server.name):.1f} ms"
            show(server.name, rates.seconds[server.name], "rows/s", late)
        # A rate is the inverse of a time.
        found = ratio(rates, "postgresql", "quarrier")
        print(
            f"  quarrier: {found[0]:.2f} times PostgreSQL's rate ({found[1]:.2f} to {found[2]:.2f});"
            f" must be {goal}: {verdict(found[0] >= goal)}"
        )
        record[str(clients)] = {"rates": rates.record(), "ratio": found, "goal": goal, "sync_ms": syncs}
    return record


def copies(quarrier: Server, postgres: Server, arguments: argparse.Namespace, work: Path) -> dict[str, Any]:
    """COPY of binary rows through psql."""
    rows = arguments.copy_rows
    csv, binary = orders.make_csv(rows, arguments.data), work / "cluster" / "rows.bin"
    postgres.ask(f"CREATE TABLE copied ({COLUMNS})")
    postgres.ask(f"COPY copied FROM '{csv}' (FORMAT csv, HEADER true)")
    postgres.ask(f"COPY copied TO '{binary}' (FORMAT binary)")
    times, facts = Times(), "SELECT count(*), sum(id), sum(qty), count(note) FROM "
    true = postgres.ask(facts + "copied")
    for number in range(arguments.rounds + 1):
        for server in (quarrier, postgres):
            table = f"copied_{number}"
            server.ask(f"CREATE TABLE {table} ({COLUMNS})")
            start = time.perf_counter()
            server.ask(f"\\copy {table} from '{binary}' with (format binary)")
            seconds = time.perf_counter() - start
            compare(true, server.ask(facts + table), f"rows copied into {server.name}")
            if number:
                times.add(server.name, seconds)
        postgres.ask(f"DROP TABLE copied_{number}")
    print(f"\nCOPY of {rows:,} rows, binary, {binary.stat().st_size / 1e6:,.0f} MB, by psql")
    for server in (quarrier, postgres):
        show(server.name, [rows / seconds / 1e6 for seconds in times.seconds[server.name]], "M rows/s")
    found = ratio(times, "quarrier", "postgresql")
    print(f"  quarrier: {found[0]:.2f} times as fast as PostgreSQL ({found[1]:.2f} to {found[2]:.2f}); must be "
          f"{COPY_GOAL}: {verdict(found[0] >= COPY_GOAL)}")  # fmt: skip
    return {"rows": rows, "seconds": times.record(), "ratio": found, "goal": COPY_GOAL}


def lap_milliseconds(program: Path, source: Path, statements: list[str], work: Path) -> float:
    """The time of one shared pass that answers all statements, by the program's own clock."""
    file = work / "all.sql"
    file.write_text(";\n".join(statements) + ";\n")
    command = [program, f"--table=m={source}", f"--workers={THREADS}", "--concurrent", file, "--format", "json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    found = re.search(r"statements in ([0-9.]+) s", done.stderr)
    if not found:
        sys.exit(f"served.py: the program does not say how long a pass took: {done.stderr[-300:]}")
    return 1e3 * float(found[1])


def clients(servers: list[Server], arguments: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Twenty clients that each ask one of twenty statements after another, without a pause."""
    parquet = orders.make(arguments.rows, arguments.data)
    top = top_symbols(parquet)
    statements = [f"SELECT count(*) FROM m WHERE {each}" for each in conditions.twenty(top)]
    scripts: dict[str, list[Path]] = {server.name: [] for server in servers}
    for server in servers:
        for number, statement in enumerate(statements):
            script = work / f"question-{server.name}-{number}.sql"
            script.write_text(server.adapted(statement) + ";\n")
            scripts[server.name].append(script)
    duckdb = Contender("duckdb")
    duckdb.call("load", str(parquet))
    true = [str(rows[0][0]) for rows in duckdb.call("ask", statements)[1]]
    for server in servers:
        if server.name == SLOW:
            counts = ", ".join(f"count(*) FILTER (WHERE {where(statement)})" for statement in statements)
            compare(["|".join(true)], server.ask(f"SELECT {counts} FROM m"), f"answers by {server.name}")
            continue
        for statement, count in zip(statements, true, strict=True):
            compare([count], server.ask(server.adapted(statement)), f"{statement} by {server.name}")
    rates, late, middle, laps = Times(), Times(), Times(), []
    source = orders.make_json(arguments.rows, arguments.data)
    for number in range(arguments.rounds + 1):
        laps.append(lap_milliseconds(arguments.quarrier_sql, source, statements, work))
        for server in servers:
            if server.name == SLOW and number != 1:
                continue
            asked = pgbench(server, scripts[server.name], CLIENTS, arguments.seconds, "simple", work)
            if number:
                rates.add(server.name, asked.rate)
                late.add(server.name, asked.quantile(0.99))
                middle.add(server.name, asked.quantile(0.5))
        seconds, taken = duckdb.call("crowd", statements, CLIENTS, arguments.seconds)
        if number:
            asked = Asked(len(taken), len(taken) / seconds, [1e3 * each for each in taken])
            rates.add("duckdb", asked.rate)
            late.add("duckdb", asked.quantile(0.99))
            middle.add("duckdb", asked.quantile(0.5))
        print(f"clients: round {number}", file=sys.stderr)
    duckdb.end()
    lap = statistics.median(laps)
    print(
        f"\n{CLIENTS} clients over {arguments.rows:,} rows, {len(statements)} statements;"
        f" a shared pass for all of them takes {lap:.1f} ms"
    )
    for name in rates.seconds:
        show(name, rates.seconds[name], "answers/s",
             f", median {middle.median(name):,.1f} ms, p99 {late.median(name):,.1f} ms")  # fmt: skip
    best = max((name for name in rates.seconds if name not in ("quarrier", SLOW)), key=rates.median)
    found = ratio(rates, best, "quarrier")
    within = late.median("quarrier") / lap
    print(f"  quarrier: {found[0]:.1f} times the rate of {best} ({found[1]:.1f} to {found[2]:.1f}); must be "
          f"{CLIENTS_GOAL}: {verdict(found[0] >= CLIENTS_GOAL)}\n  p99: {within:.2f} passes; must be at most "
          f"{LAPS_MAX}: {verdict(within <= LAPS_MAX)}")  # fmt: skip
    return {"rows": arguments.rows, "rates": rates.record(), "p50_ms": middle.record(), "p99_ms": late.record(),
            "lap_ms": laps, "best": best, "ratio": found, "passes": within}  # fmt: skip


def writing(arguments: argparse.Namespace, work: Path, record: dict[str, Any]) -> None:
    postgres = Postgres(arguments.postgres, work / "postgres")
    quarrier = Quarrier(arguments.quarrier_sql, work / "quarrier",
                        ["--data", work / "d", f"--workers={THREADS}"])  # fmt: skip
    quarrier.start()
    try:
        if "insert" in arguments.parts:
            record["insert"] = inserts([quarrier, postgres], arguments, work)
        if "copy" in arguments.parts:
            record["copy"] = copies(quarrier, postgres, arguments, work / "postgres")
    finally:
        postgres.stop()
        quarrier.stop()


def asking(arguments: argparse.Namespace, work: Path, record: dict[str, Any]) -> None:
    source, csv = (make(arguments.rows, arguments.data) for make in (orders.make_json, orders.make_csv))
    quarrier = Quarrier(arguments.quarrier_sql, work / "asked",
                        [f"--table=m={source}", f"--workers={THREADS}"])  # fmt: skip
    quarrier.start()
    servers: list[Server] = [quarrier]
    try:
        postgres = Postgres(arguments.postgres, work / "postgres-asked", "6GB")
        servers.append(postgres)
        postgres.ask(f"CREATE TABLE m ({COLUMNS})")
        postgres.ask(f"COPY m FROM '{csv}' (FORMAT csv, HEADER true)")
        postgres.ask("VACUUM (ANALYZE) m")
        if arguments.questdb:
            questdb = QuestDb(arguments.questdb, work / "questdb", csv.parent, THREADS)
            servers.append(questdb)
            questdb.create()
            questdb.copy(csv.name, arguments.rows)
        record["clients"] = clients(servers, arguments, work)
    finally:
        for server in servers:
            server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarrier-sql", type=Path, required=True)
    parser.add_argument("--parts", default="insert,copy,clients")
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows that clients ask about")
    parser.add_argument("--copy-rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--mode", default="simple", help="of pgbench, for INSERTs: simple, extended or prepared")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--postgres", type=Path, default=Path("/usr/lib/postgresql/15/bin"))
    parser.add_argument("--questdb", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve()
    arguments.data.mkdir(exist_ok=True)
    work = arguments.data / "served"
    remove(work)
    work.mkdir()
    state = machine(work)
    print(f"{datetime.date.today()}: {state}")
    record: dict[str, Any] = {"machine": state}
    try:
        if {"insert", "copy"} & set(arguments.parts.split(",")):
            writing(arguments, work, record)
        if "clients" in arguments.parts:
            asking(arguments, work, record)
        print(machine(work))
    finally:
        remove(work)
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
