"""TPC-H or TPC-DS data and queries from DuckDB's generators: as Parquet, and as JSON lines with a message per
row.

    python tpc_data.py FOLDER tpch|tpcds [SCALE]

The generators are extensions of DuckDB, in packages for one version of it each, so this program has a separate
environment: see `tpc-requirements.txt`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import duckdb

#: The function of the generator, by the name of the benchmark.
GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def extension(name: str) -> Path:
    """The extension's file in its package."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("tpc_data.py: install tpc-requirements.txt; it has the generators")
    for folder in spec.submodule_search_locations:
        for path in Path(folder).rglob(f"{name}.duckdb_extension*"):
            return path
    sys.exit(f"tpc_data.py: the package duckdb-extension-{name} has no extension in it")


def loaded(name: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute(f"LOAD '{extension(name)}'")
    return connection


def main() -> None:
    folder, name = Path(sys.argv[1]), sys.argv[2]
    scale = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    done = folder / "queries.json"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    connection = loaded(name)
    connection.execute(f"CALL {GENERATORS[name]}(sf = {scale})")
    for (table,) in connection.execute("SHOW TABLES").fetchall():
        path = folder / table
        connection.execute(f"COPY {table} TO '{path}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        connection.execute(f"COPY {table} TO '{path}.ndjson' (FORMAT json)")
    queries = connection.execute(f"SELECT query FROM {name}_queries() ORDER BY query_nr").fetchall()
    # Written last: if it exists, the data are complete.
    done.write_text(json.dumps([query.strip().rstrip(";") for (query,) in queries]))


if __name__ == "__main__":
    main()
