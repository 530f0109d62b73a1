"""quarrier.query: one statement over files, tables and data frames."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from quarrier._errors import QuarrierError, QueryError, UnansweredError
from quarrier._native import Table, statement_files, statement_for_datafusion, statement_table

_ALL_OF_SQL = "joins, grouping and the rest of SQL need: pip install quarrier[sql]"


def query(sql: str, /, **tables: Any) -> Table:
    r"""Answers a statement over tables given by name, or over files: `FROM 'orders.ndjson'`.

    A table is a path, a `Table`, or whatever shows itself as Arrow data: pyarrow, pandas, polars.
    `SELECT … FROM … [WHERE …] [ORDER BY …] [LIMIT …]` over one table is answered by its shared
    scan; everything else by DataFusion, where `quarrier[sql]` is installed. What that would answer
    otherwise than SQL-92 is put in other words first, or refused with an `UnansweredError`:
    SIMILAR TO, row values, BETWEEN SYMMETRIC, LIKE with a pattern that is calculated.

    Not checked there, other than over one table: kinds that do not compare. DataFusion takes text
    for numbers (`a.text = b.number` in a join) where SQL-92 wants a CAST, and UNKNOWN for FALSE in
    NOT IN (SELECT …) of a query that names columns outside of it. `quarrier query` minds both.

    >>> orders = b'{"side": "B", "qty": 7}\n{"side": "S", "qty": 8}\n'
    >>> query("SELECT qty FROM orders WHERE side = 'S'", orders=orders).to_pylist()
    [{'qty': 8}]
    """
    files: dict[str, Table] = {}
    try:
        name, is_file = statement_table(sql)
    except QueryError as error:
        return _by_datafusion(sql, files, tables, error)
    if is_file:
        table = files[name] = _load(name)
    else:
        known = _known(tables, name)
        table = tables[known] = _load(tables[known])
    try:
        return table.query(sql, name=name)
    except UnansweredError as error:
        return _by_datafusion(sql, files, tables, error)


def _known(tables: Mapping[str, Any], name: str) -> str:
    """The table of this name as it was given, whatever its case where only one is meant."""
    if name in tables:
        return name
    alike = [known for known in tables if known.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    message = (
        f"there is no table '{name}'; give it one, query(sql, {name}=…), or name a file in single "
        "quotes, FROM 'orders.ndjson'"
    )
    raise QuarrierError(message)


def _load(table: Any) -> Table:
    if isinstance(table, Table):
        return table
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        return Table.from_arrow(table)
    return Table.from_messages(table)


def _by_datafusion(
    sql: str, files: Mapping[str, Table], tables: Mapping[str, Any], refused: QueryError
) -> Table:
    """The answer of DataFusion to what `refused` says that a table does not answer.

    Raises what it says itself where the text is no SQL there either.
    """
    try:
        meant = statement_for_datafusion(sql)
    except UnansweredError:
        raise
    except QueryError as wrong:
        raise (wrong if isinstance(refused, UnansweredError) else refused) from None
    if importlib.util.find_spec("datafusion") is None:
        message = f"{refused}; {_ALL_OF_SQL}"
        raise QueryError(message, refused.line, refused.column, refused.reason) from refused
    datafusion = importlib.import_module("datafusion")
    # Names mean what they are written as: columns of FIX messages are written large.
    # 1.5 is exact, as SQL-92 has it.
    config = datafusion.SessionConfig(
        {
            "datafusion.sql_parser.enable_ident_normalization": "false",
            "datafusion.sql_parser.parse_float_as_decimal": "true",
        }
    )
    context = datafusion.SessionContext(config)
    for file in statement_files(sql):
        context.from_arrow(files[file] if file in files else _load(file), _quoted(file))
    for name, table in tables.items():
        context.from_arrow(_load(table), _quoted(name))
    try:
        answer = context.sql(meant)
        return Table.from_arrow(answer)
    except QuarrierError:
        raise
    except Exception as error:
        # It raises no class of its own.
        raise QueryError(f"DataFusion: {error}", 0, 0, str(error)) from refused


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
