"""TPC-H data and queries, from DuckDB's generator: Parquet, and JSON lines with a message a row.

    python tpch_data.py FOLDER [SCALE]

The generator is an extension of DuckDB, which is a package of its own for one version of it: this
program has an environment of its own, see `tpch-requirements.txt`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import duckdb

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def extension() -> Path:
    """The file of the extension in its package."""
    spec = importlib.util.find_spec("duckdb_extension_tpch")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("tpch_data.py: install tpch-requirements.txt; it has the generator")
    for folder in spec.submodule_search_locations:
        for path in Path(folder).rglob("tpch.duckdb_extension*"):
            return path
    sys.exit("tpch_data.py: the package duckdb-extension-tpch has no extension in it")


def loaded() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.execute(f"LOAD '{extension()}'")
    return connection


def main() -> None:
    folder, scale = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    done = folder / "queries.json"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    connection = loaded()
    connection.execute(f"CALL dbgen(sf = {scale})")
    for table in TABLES:
        path = folder / table
        connection.execute(f"COPY {table} TO '{path}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        connection.execute(f"COPY {table} TO '{path}.ndjson' (FORMAT json)")
    queries = connection.execute("SELECT query FROM tpch_queries() ORDER BY query_nr").fetchall()
    # Written last: what is there is whole.
    done.write_text(json.dumps([query.strip().rstrip(";") for (query,) in queries]))


if __name__ == "__main__":
    main()
