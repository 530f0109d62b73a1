"""Random full statements: quarrier-sql and DuckDB must give the same answers.

    python statements.py PROGRAM [STATEMENTS [SEED]] [--mixed]

The tables are generated again every fifty statements; with --mixed every 250, and their rows are then mixed with
140,000 others, which make string columns dictionary-encoded in some segments and plain in others.

Statements in which DuckDB departs from SQL-92 are reworded for it; the program prints how often, by rule, and
the features that were generated. A statement that the program refuses counts as a difference.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import files
from answers import are_same, normal
from draw import Statement, Statements
from program import Program, Refused
from values import REWORDED

#: The number of statements over the same tables.
BATCH = 50
#: The same for mixed tables, which take seconds to make.
MIXED_BATCH = 250
#: The number of differences after which the program stops.
ENOUGH = 20


def theirs(connection: Any, statement: Statement) -> list[Any] | str:
    try:
        return connection.execute(statement.sql[1]).fetchall()
    except duckdb.Error as error:
        return str(error).splitlines()[0]


def ours(program: Program, statement: Statement, number: int) -> list[Any] | str:
    try:
        _, rows = program.ask(statement.sql[0])
    except Refused as refused:
        return str(refused).splitlines()[0]
    names = [f"s{number}_{place}" for place in range(len(statement.kinds))]
    return [tuple(row.get(name) for name in names) for row in rows]


def tell(statement: Statement, mine: list[Any] | str, other: list[Any] | str) -> str:
    """Formats both answers, with the differing rows first."""

    def shown(answer: list[Any] | str, without: list[Any] | str) -> str:
        if isinstance(answer, str):
            return answer
        rest = [row for row in answer if isinstance(without, str) or row not in without] or answer
        return f"{len(answer)} rows: " + "; ".join(map(str, rest[:3]))

    return (
        f"{statement.sql[0]}\n  DuckDB's words: {statement.sql[1] if len(set(statement.sql)) > 1 else 'the same'}"
        f"\n  ours: {shown(mine, other)}\n  DuckDB: {shown(other, mine)}"
    )


def batch(program: str, seed: str, numbers: range, folder: Path, seen: Counter[str], is_mixed: bool) -> list[str]:
    """Runs statements over new tables and returns the differences."""
    files.make(folder, seed, is_mixed)
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    files.into_duckdb(connection, folder)
    running = Program(program, {table.name: folder / table.file for table in files.TABLES})
    different = []
    for number in numbers:
        draws = Statements(random.Random(f"{seed}/{number}"), is_mixed=is_mixed)
        statement = draws.statement(number)
        mine, other = ours(running, statement, number), theirs(connection, statement)
        seen.update(statement.features)
        seen.update({f"rule {rule}": count for rule, count in draws.used.items()})
        try:
            is_same = not isinstance(mine, str) and not isinstance(other, str) and are_same(
                normal(mine, statement.kinds), normal(other, statement.kinds), statement.kinds,
                statement.is_ordered)  # fmt: skip
        except (ValueError, TypeError, ArithmeticError):
            is_same = False
        if is_same:
            seen["rows"] += len(other)
            seen["empty answers"] += not other
        else:
            different.append(f"statement {number} of seed {seed}: {tell(statement, mine, other)}")
            if isinstance(mine, str) and "the program ended" in mine:
                running = Program(program, {table.name: folder / table.file for table in files.TABLES})
    running.end()
    return different


def main() -> None:
    is_mixed = "--mixed" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--mixed"]
    program = words[0]
    count = int(words[1]) if len(words) > 1 else 1000
    seed = words[2] if len(words) > 2 else "1"
    size = MIXED_BATCH if is_mixed else BATCH
    seen: Counter[str] = Counter()
    different: list[str] = []
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        while done < count and len(different) < ENOUGH:
            numbers = range(done, min(done + size, count))
            different += batch(program, f"{seed}/{done // size}", numbers, Path(folder), seen, is_mixed)
            done = numbers.stop
    for text in different:
        print(text)
    rules = [rule for rule in REWORDED if seen[f"rule {rule}"]]
    print("\nreworded for DuckDB:")
    for rule in rules:
        print(f"  {seen[f'rule {rule}']:5} times: {REWORDED[rule]}")
    features = {name: count for name, count in seen.most_common() if not name.startswith("rule ")}
    print("drawn: " + ", ".join(f"{name} {count}" for name, count in features.items()))
    print(f"{done} statements of seed {seed}, DuckDB {duckdb.__version__}: {len(different)} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
