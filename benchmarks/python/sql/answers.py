"""Compares two answers: as lists if the order is specified, else as multisets; floats and quotients within a
tolerance, all other values exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

#: Relative to the greater of the two; decimals that are quotients have six digits after the point.
RELATIVE, ABSOLUTE = 1e-9, 2e-6
EPOCH = datetime(1970, 1, 1)

Row = tuple[Any, ...]


def number(value: Any) -> Any:
    """The value as an exact number, if it is finite."""
    if isinstance(value, bool):
        return Decimal(int(value))
    if isinstance(value, str):
        value = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value) or Decimal(value)
    if isinstance(value, float):
        return value if not math.isfinite(value) else Decimal(repr(value))
    return Decimal(value)


def day(value: Any) -> str:
    """A date, also if it is given as a timestamp at midnight."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    return str(value)[:10]


def moment(value: Any) -> int:
    """Nanoseconds since 1970, from a datetime or ISO 8601."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    rest = 0
    if isinstance(value, str):
        text = value.rstrip("Z").replace(" ", "T").removesuffix("+00:00")
        whole, _, fraction = text.partition(".")
        value = datetime.fromisoformat(whole)
        rest = int(fraction.ljust(9, "0")[:9]) if fraction else 0
    if value.tzinfo:
        value = value.astimezone(UTC).replace(tzinfo=None)
    since: timedelta = value - EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000 + rest


def cell(value: Any, kind: str) -> Any:
    """The value in the form in which it is compared."""
    if value is None:
        return None
    if kind in ("int", "dec", "float"):
        return number(value)
    if kind == "bool":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind == "date":
        return day(value)
    return moment(value) if kind == "ts" else str(value)


def normal(rows: Sequence[Sequence[Any]], kinds: Sequence[str]) -> list[Row]:
    return [tuple(cell(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows]


def is_near(one: Any, other: Any, kind: str) -> bool:
    if kind != "float" or one is None or other is None:
        return one == other
    one, other = float(one), float(other)
    if not (math.isfinite(one) and math.isfinite(other)):
        return one == other or (math.isnan(one) and math.isnan(other))
    return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def are_near(one: Row, other: Row, kinds: Sequence[str]) -> bool:
    return all(map(is_near, one, other, kinds))


def key(row: Row, kinds: Sequence[str]) -> tuple[Any, ...]:
    """Sorts rows by their exact values first, then by rounded floats, so that rows that differ only by
    rounding have the same place in both answers."""
    exact = [repr(value) for value, kind in zip(row, kinds) if kind != "float"]
    near = [(value is None, 0.0 if value is None else float(f"{value:.9g}")) for value, kind in zip(row, kinds)
            if kind == "float"]  # fmt: skip
    return (*exact, *near)


def plain(row: Row) -> Row:
    """Gives equal numbers the same representation."""
    return tuple(value.normalize() if isinstance(value, Decimal) else value for value in row)


def are_same(one: list[Row], other: list[Row], kinds: Sequence[str], is_ordered: bool) -> bool:
    """Whether both have the same rows."""
    if len(one) != len(other):
        return False
    if not is_ordered:
        one = sorted(map(plain, one), key=lambda row: key(row, kinds))
        other = sorted(map(plain, other), key=lambda row: key(row, kinds))
    return all(are_near(a, b, kinds) for a, b in zip(one, other))
