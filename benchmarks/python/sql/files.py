"""Small tables as files in three formats, with values on which engines tend to disagree: NULL, empty and Unicode
strings, decimals, dates before 1970 and on leap days.

Floats are multiples of a quarter, so that their sums are exact in any order.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

ROWS = 40
#: Rows of each half of the filler that makes columns mixed: more than fill a segment.
FILLER_ROWS = 70_000
TEXTS = ["", " ", "a", "A", "b", "ab", "aB", "abc", "a_c", "a%c", "é", "éa", "日本", "🜚", "a b", " a", "a ",
         "aaa", "it's", "Zz", "0", "10", "9", "-1", "null", "ａ", "~", "Ämter", 'say "x"', "x,y"]  # fmt: skip
CITIES = ["Ulm", "Łódź", "São Paulo", "東京", "", "Ulm "]
DAYS = ["1969-12-31", "1970-01-01", "2000-02-29", "1999-12-31", "2020-01-31", "2020-02-01", "2024-02-29",
        "1900-03-01", "2199-12-31", "2020-03-01"]  # fmt: skip
MOMENTS = ["1970-01-01T00:00:00", "2000-02-29T23:59:59", "2020-01-31T12:00:00", "1999-12-31T23:59:59",
           "2020-02-01T00:00:00", "2024-02-29T06:07:08", "1969-07-20T20:17:40"]  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Columns with their types; the first, `id`, is different in each row."""

    name: str
    ending: str
    columns: tuple[tuple[str, str], ...]

    @property
    def file(self) -> str:
        return f"{self.name}.{self.ending}"

    def relation(self, is_mixed: bool) -> str:
        """The relation after FROM: the table, without the filler of a mixed one."""
        return f"(SELECT * FROM {self.name} WHERE id IS NOT NULL)" if is_mixed else self.name


TABLES = (
    Table("people", "ndjson", (
        ("id", "int"), ("boss", "int"), ("name", "text"), ("city", "text"), ("score", "dec"),
        ("weight", "float"), ("born", "date"), ("seen", "ts"), ("is_open", "bool"),
    )),
    Table("sales", "csv", (
        ("id", "int"), ("person", "int"), ("item", "int"), ("qty", "int"), ("price", "dec"),
        ("note", "text"), ("day", "date"),
    )),
    Table("items", "parquet", (
        ("id", "int"), ("kind", "text"), ("list_price", "dec"), ("size", "float"), ("made", "ts"),
        ("is_new", "bool"),
    )),
)  # fmt: skip
DUCK = {"int": "BIGINT", "dec": "DECIMAL(12,2)", "float": "DOUBLE", "text": "VARCHAR", "date": "DATE",
        "ts": "TIMESTAMP", "bool": "BOOLEAN"}  # fmt: skip


def value(r: random.Random, name: str, kind: str) -> Any:
    if r.random() < 0.15:
        return None
    if kind == "int":
        return r.randint(0, 12) if name in ("boss", "person", "item") else r.randint(-4, 12)
    if kind == "dec":
        return Decimal(r.choice([r.randint(-500, 1500), r.randint(-9, 9) * 50])) / 100
    if kind == "float":
        return r.randint(-40, 60) / 4
    if kind == "bool":
        return r.random() < 0.5
    pool = {"date": DAYS, "ts": MOMENTS}.get(kind) or (CITIES if name in ("city", "kind") else TEXTS)
    return r.choice(pool)


def rows(r: random.Random, table: Table) -> list[list[Any]]:
    drawn = [[value(r, name, kind) for name, kind in table.columns] for _ in range(ROWS)]
    for number, row in enumerate(drawn):
        row[0] = number
    return drawn


def filled(r: random.Random, table: Table, drawn: list[list[Any]]) -> list[list[Any]]:
    """The rows in the midst of filler without an `id`: first strings with few distinct values, then all
    distinct, so that a string column is dictionary-encoded in some segments and plain in others."""
    few = ["filler", "filler of a few more letters", "x" * 300]

    def filler(number: int) -> list[Any]:
        text = r.choice(few) if number < FILLER_ROWS else f"u{number} {r.getrandbits(60):x}"
        return [None] + [text if kind == "text" else None for _, kind in table.columns[1:]]

    mixed = [filler(number) for number in range(2 * FILLER_ROWS)]
    places = sorted(r.sample(range(len(mixed)), len(drawn)), reverse=True)
    for place, row in zip(places, drawn):
        mixed.insert(place, row)
    return mixed


def as_text(cell: Any, kind: str) -> str:
    """The value as in CSV and JSON, but without quotes."""
    if kind == "dec":
        return f"{cell:.2f}"
    if kind == "float":
        return f"{cell}e0"  # a number with an exponent is a float
    if kind == "bool":
        return "true" if cell else "false"
    return str(cell)


def write(table: Table, drawn: list[list[Any]], folder: Path) -> None:
    path = folder / table.file
    if table.ending == "ndjson":
        path.write_text("".join(json_line(table, row) for row in drawn))
    elif table.ending == "csv":
        with path.open("w", newline="") as file:
            # An empty field is NULL; an empty string is in quotes.
            file.write(",".join(name for name, _ in table.columns) + "\n")
            for row in drawn:
                cells = (csv_cell(cell, kind) for cell, (_, kind) in zip(row, table.columns))
                file.write(",".join(cells) + "\n")
    else:
        write_parquet(table, drawn, path)


def json_line(table: Table, row: list[Any]) -> str:
    parts = []
    for cell, (name, kind) in zip(row, table.columns):
        if cell is None:
            if len(parts) % 2:  # missing or null: both are NULL
                parts.append(f'"{name}": null')
            continue
        text = as_text(cell, kind)
        is_quoted = kind in ("text", "date", "ts")
        parts.append(f'"{name}": {json.dumps(text, ensure_ascii=False) if is_quoted else text}')
    return "{" + ", ".join(parts) + "}\n"


def csv_cell(cell: Any, kind: str) -> str:
    if cell is None:
        return ""
    text = as_text(cell, kind)
    return '"' + text.replace('"', '""') + '"' if kind == "text" else text


def write_parquet(table: Table, drawn: list[list[Any]], path: Path) -> None:
    from datetime import date, datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"int": pa.int64(), "dec": pa.decimal128(12, 2), "float": pa.float64(), "text": pa.string(),
             "date": pa.date32(), "ts": pa.timestamp("us"), "bool": pa.bool_()}  # fmt: skip
    read = {"date": date.fromisoformat, "ts": datetime.fromisoformat}
    columns, fields = [], []
    for place, (name, kind) in enumerate(table.columns):
        cells = [row[place] for row in drawn]
        if kind in read:
            cells = [None if cell is None else read[kind](cell) for cell in cells]
        columns.append(pa.array(cells, types[kind]))
        fields.append((name, types[kind]))
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path)


def make(folder: Path, seed: str, is_mixed: bool = False) -> None:
    """Writes all tables for this seed."""
    for table in TABLES:
        r = random.Random(f"{seed}/{table.name}")
        drawn = rows(r, table)
        write(table, filled(r, table, drawn) if is_mixed else drawn, folder)


def into_duckdb(connection: Any, folder: Path) -> None:
    """Loads the same files into DuckDB, with explicit types, because it would guess others."""
    for table in TABLES:
        kinds = {name: DUCK[kind] for name, kind in table.columns}
        path = folder / table.file
        if table.ending == "ndjson":
            source = f"read_json('{path}', format = 'newline_delimited', columns = {kinds})"
        elif table.ending == "csv":
            source = (
                f"read_csv('{path}', header = true, nullstr = '', allow_quoted_nulls = false, "
                f"quote = '\"', escape = '\"', columns = {kinds})"
            )
        else:
            source = f"'{path}'"
        connection.execute(f"CREATE OR REPLACE TABLE {table.name} AS SELECT * FROM {source}")
