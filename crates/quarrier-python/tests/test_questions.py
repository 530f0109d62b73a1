"""Random statements of the package `questions`, run by Table.query and Table.query_many.

`scripts/python.sh test` builds the program that generates the tables and computes the answers.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pytest

import quarrier

REPOSITORY = Path(__file__).parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
PROGRAM = TARGET / "debug" / "questions"
HAS_SQL = importlib.util.find_spec("quarrier_sql") is not None
#: Statements that the scan of a table answers: one table, without groups or joins.
OWN = ("SELECT COUNT(*) AS n FROM t WHERE", "SELECT id")

#: A value of a row, as the program writes it, with strings in quotes.
VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|[^|]+')


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    options = ["--questions", "600", "--of-table", "12", "--rows-max", "2000", "--seed", "5000"]
    subprocess.run([PROGRAM, *options, "--write", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def is_same(value: Any, right: str) -> bool:
    """Whether a value equals the program's; strings and times are not compared."""
    if value is None or right == "NULL":
        return value is None and right == "NULL"
    if isinstance(value, bool):
        return right == str(value).lower()
    if isinstance(value, float):
        other = float(right.removesuffix("f"))
        return value == other or (value != value and other != other)
    if isinstance(value, int | Decimal):
        return Decimal(value) == Decimal(right)
    return True


def are_same(rows: list[dict[str, Any]], question: dict[str, Any]) -> bool:
    found = [list(row.values()) for row in rows]
    right = [VALUE.findall(row) for row in question["rows"]]
    if not question["is_ordered"]:
        found.sort(key=lambda row: [rank(shown(value)) for value in row])
        right.sort(key=lambda row: [rank(value) for value in row])
    return len(found) == len(right) and all(map(are_alike, found, right))


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def rank(shown: str) -> tuple[int, Decimal]:
    """The sort key of a value in a comparison of rows; strings and times have the same one."""
    try:
        number = Decimal(shown.removesuffix("f"))
    except InvalidOperation:
        return ({"NULL": 2, "false": 3, "true": 4}.get(shown, 5), Decimal(0))
    return (1, Decimal(0)) if number.is_nan() else (0, number)


def are_alike(values: list[Any], others: list[str]) -> bool:
    return len(values) == len(others) and all(map(is_same, values, others))


ALL = ["ndjson", "gz.ndjson", "csv", "zst.csv", "nvfix", "arrow", "parquet"]
ENDINGS = ALL if HAS_SQL else ["ndjson", "parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_has_the_answers_of_the_oracle(rounds: Path, ending: str) -> None:
    wrong = []
    asked = 0
    for folder in sorted(rounds.iterdir()):
        path = folder / f"t.{ending}"
        if not path.exists():
            continue
        listed = json.loads((folder / "questions.json").read_text())
        questions = [question for question in listed if HAS_SQL or is_own(question)]
        table = quarrier.Table.from_messages(path)
        statements = [question["statement"] for question in questions]
        answered = [at for at, question in enumerate(questions) if question["rows"] is not None]
        together = table.query_many([statements[number] for number in answered], name="t")
        for number, answer in zip(answered, together, strict=True):
            if not are_same(answer.to_pylist(), questions[number]):
                wrong.append(f"{path.parent.name} query_many: {statements[number]}")
        for question, statement in zip(questions, statements, strict=True):
            asked += 1
            if not is_right(table, statement, question):
                wrong.append(f"{path.parent.name} query: {statement}")
    assert asked > 10
    assert not wrong, "\n".join(wrong)


def is_own(question: dict[str, Any]) -> bool:
    text = question["statement"]
    return text.startswith(OWN) and " GROUP BY " not in text


def is_right(table: quarrier.Table, statement: str, question: dict[str, Any]) -> bool:
    try:
        rows = table.query(statement, name="t").to_pylist()
    except quarrier.QuarrierError:
        return question["rows"] is None
    return question["rows"] is not None and are_same(rows, question)
