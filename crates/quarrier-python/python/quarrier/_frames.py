"""Rows as data frames, as HTML in a notebook, and in batches."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarrier._native import Findings, RuleFindings, Table

# The number of rows that a notebook shows.
_ROWS_SHOWN = 10
# The number of characters that it shows of a value.
_CHARACTERS_SHOWN = 200
# The number of rows converted at a time.
_ROWS_AT_ONCE = 4096


def to_arrow(rows: Table | Findings | RuleFindings, _exact: bool) -> Any:
    """The rows as a pyarrow.Table."""
    return _needed("pyarrow", "to_arrow").table(rows)


def to_pandas(rows: Table | Findings | RuleFindings, exact: bool) -> Any:
    """The rows as a pandas.DataFrame; decimals become floats unless `exact` is true."""
    pandas = _needed("pandas", "to_pandas")
    pa = _needed("pyarrow", "to_pandas")
    table = pa.table(rows)
    for place, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_decimal(kind) and not exact:
            kind = pa.float64()
        if kind != field.type:
            column = table.column(place).cast(kind)
            table = table.set_column(place, field.name, column)
    frame = table.to_pandas()
    for place, field in enumerate(table.schema):
        column = table.column(place)
        # Without this, pandas makes floats of integer columns with missing values.
        if pa.types.is_integer(field.type) and column.null_count:
            whole = pandas.array(column.to_pylist(), dtype="Int64")
            frame.isetitem(place, whole)
    return frame


def to_polars(rows: Table | Findings | RuleFindings, exact: bool) -> Any:
    """The rows as a polars.DataFrame; decimals become floats unless `exact` is true."""
    polars = _needed("polars", "to_polars")
    frame = polars.DataFrame(rows)
    if exact:
        return frame
    return frame.with_columns(polars.selectors.decimal().cast(polars.Float64))


def _needed(package: str, method: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"{method}() needs {package}; run pip install {package}", name=package
        ) from None


def repr_html(rows: Table | Findings | RuleFindings, _exact: bool) -> str:
    """The first rows as an HTML table; the values are escaped."""
    shown = [row if isinstance(row, dict) else row._asdict() for row in rows[:_ROWS_SHOWN]]
    names = list(rows.schema) if hasattr(rows, "schema") else list(shown[0]) if shown else []
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in names) + "</tr>"
        for row in shown
    )
    count = len(rows)
    left = f" ({len(shown)} shown)" if count > len(shown) else ""
    unit = "row" if count == 1 else "rows"
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{count:,} {unit}{left}</p>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<i>NULL</i>"
    text = str(value)
    if len(text) > _CHARACTERS_SHOWN:
        text = text[:_CHARACTERS_SHOWN] + "…"
    # Values may come from evidence: unprintable characters are escaped.
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return html.escape(text)


def rows_of(table: Table, _exact: bool) -> Iterator[dict[str, Any]]:
    """Iterates over the rows as dicts, converting a few thousand at a time."""
    for start in range(0, len(table), _ROWS_AT_ONCE):
        yield from table[start : start + _ROWS_AT_ONCE].to_pylist()


def reduce(table: Table, _exact: bool) -> tuple[Any, tuple[bytes]]:
    """The pickled form of a table: its rows as an Arrow stream."""
    pa = _needed("pyarrow", "pickle")
    stream = pa.BufferOutputStream()
    rows = pa.table(table)
    with importlib.import_module("pyarrow.ipc").new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    return unpickled, (stream.getvalue().to_pybytes(),)


def unpickled(data: bytes) -> Table:
    """Restores a table from the result of `reduce`."""
    from quarrier._native import Table

    _needed("pyarrow", "pickle")
    return Table.from_arrow(importlib.import_module("pyarrow.ipc").open_stream(data).read_all())
