"""Generates the orders for the engines: 5,000 symbols of very different frequency, 100,000 accounts, prices with
two decimals, ascending times, notes of about 20 letters of which 30 % are NULL. For a number of rows they are
the same on every machine.

    python orders.py ROWS FOLDER [--text ROWS]     orders-ROWS.parquet, .ndjson and .fix

`make_json` and `make_csv` write the same JSON lines, and CSV, ten times as fast, by DuckDB.
"""

from __future__ import annotations

import argparse
import string
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20130613
SYMBOLS, ACCOUNTS, NOTES = 5_000, 100_000, 200_000
BATCH_ROWS = 1_000_000
FIRST_NANOSECOND = 1_700_000_000_000_000_000
STATUS = {
    "NEW": 0.35,
    "PARTIAL": 0.2,
    "FILLED": 0.25,
    "CANCELED": 0.15,
    "REJECTED": 0.03,
    "EXPIRED": 0.02,
}
SIDE = {"B": 0.48, "S": 0.47, "H": 0.05}
WORDS = (  # noqa: SIM905 (a list of 24 strings is harder to read)
    "algo vwap twap iceberg manual block cross hedge rebal client desk prime "
    "dark sweep close open late abort cabal abcde urgent review fix42 route"
).split()
# FIX codes these as numbers.
FIX_STATUS = {
    "NEW": "0",
    "PARTIAL": "1",
    "FILLED": "2",
    "CANCELED": "4",
    "REJECTED": "8",
    "EXPIRED": "C",
}
FIX_SIDE = {"B": "1", "S": "2", "H": "5"}
SOH = "\x01"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("symbol", pa.string()),
        ("side", pa.string()),
        ("price", pa.float64()),
        ("qty", pa.int32()),
        ("ts", pa.int64()),
        ("account", pa.string()),
        ("status", pa.string()),
        ("note", pa.string()),
    ]
)


def batches(rows: int) -> Iterator[pa.Table]:
    """Yields the first `rows` orders, up to a million at a time."""
    base = np.random.default_rng(SEED)
    letters = np.array(list(string.ascii_uppercase))
    symbols: dict[str, None] = {}
    while len(symbols) < SYMBOLS:
        symbols["".join(letters[base.integers(0, 26, base.integers(2, 6))])] = None
    frequency = 1.0 / np.arange(1, SYMBOLS + 1) ** 1.1
    symbol_steps = np.cumsum(frequency / frequency.sum())
    level = np.round(np.exp(base.normal(4.0, 1.0, SYMBOLS)), 2)
    words = np.array(WORDS, dtype=object)
    picks = [words[base.integers(0, len(words), NOTES)] for _ in range(3)]
    numbers = base.integers(0, 100_000, NOTES)
    pools = {
        "symbol": pa.array(list(symbols)),
        "account": pa.array([f"ACC{number:06d}" for number in range(ACCOUNTS)]),
        "status": pa.array(list(STATUS)),
        "side": pa.array(list(SIDE)),
        "note": pa.array([f"{a} {b} {c} {n}" for a, b, c, n in zip(*picks, numbers, strict=True)]),
    }
    last = FIRST_NANOSECOND
    for start in range(0, rows, BATCH_ROWS):
        many = min(BATCH_ROWS, rows - start)
        random = np.random.default_rng([SEED, start // BATCH_ROWS])

        def take(pool: str, places: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
            return pools[pool].take(pa.array(places, mask=missing))

        symbol = np.searchsorted(symbol_steps, random.random(many)).clip(0, SYMBOLS - 1)
        ts = last + np.cumsum(random.integers(1, 2_000, many))
        last = int(ts[-1])
        status = np.searchsorted(np.cumsum(list(STATUS.values())), random.random(many)).clip(0, 5)
        side = np.searchsorted(np.cumsum(list(SIDE.values())), random.random(many)).clip(0, 2)
        yield pa.table(
            [
                pa.array(np.arange(start, start + many)),
                take("symbol", symbol),
                take("side", side),
                pa.array(np.round(level[symbol] * np.exp(random.normal(0, 0.05, many)), 2)),
                pa.array(np.maximum(1, random.lognormal(5, 1.2, many)).clip(1, 1_000_000).astype(np.int32)),
                pa.array(ts),
                take("account", (random.random(many) ** 2 * ACCOUNTS).astype(np.int64)),
                take("status", status),
                take("note", random.integers(0, NOTES, many), random.random(many) < 0.30),
            ],
            schema=SCHEMA,
        )


def make(rows: int, folder: Path) -> Path:
    """Writes the orders as Parquet, once."""
    path = folder / f"orders-v1-{rows}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        with pq.ParquetWriter(part, SCHEMA, compression="zstd") as writer:
            for batch in batches(rows):
                writer.write_table(batch)
        part.rename(path)
    return path


def make_text(rows: int, folder: Path) -> tuple[Path, Path]:
    """Writes the orders as JSON lines and as FIX 4.4 with checksums, one message a line, once."""
    json_path, fix_path = (folder / f"orders-v1-{rows}.{kind}" for kind in ("ndjson", "fix"))
    if not (json_path.exists() and fix_path.exists()):
        with (
            json_path.with_suffix(".part").open("w") as lines,
            fix_path.with_suffix(".part2").open("w") as fix,
        ):
            for batch in batches(rows):
                for part in batch.to_batches(100_000):
                    orders = list(zip(*part.to_pydict().values(), strict=True))
                    lines.writelines(map(as_json, orders))
                    fix.writelines(map(as_fix, orders))
        json_path.with_suffix(".part").rename(json_path)
        fix_path.with_suffix(".part2").rename(fix_path)
    return json_path, fix_path


def make_json(rows: int, folder: Path) -> Path:
    """Writes the orders as JSON lines, once."""
    return converted(rows, folder, "ndjson", "FORMAT json")


def make_csv(rows: int, folder: Path) -> Path:
    """Writes the orders as CSV with a header, once. A missing note is an empty field."""
    return converted(rows, folder, "csv", "FORMAT csv, HEADER true")


def converted(rows: int, folder: Path, kind: str, options: str) -> Path:
    path = folder / f"orders-v1-{rows}.{kind}"
    if not path.exists():
        import duckdb

        part = path.with_suffix(".part")
        duckdb.execute(f"COPY (SELECT * FROM '{make(rows, folder)}') TO '{part}' ({options})")
        part.rename(path)
    return path


def as_json(order: tuple) -> str:
    number, symbol, side, price, qty, ts, account, status, note = order
    note = "null" if note is None else f'"{note}"'
    return (
        f'{{"id":{number},"symbol":"{symbol}","side":"{side}","price":{price},"qty":{qty},"ts":{ts},'
        f'"account":"{account}","status":"{status}","note":{note}}}\n'
    )


def as_fix(order: tuple) -> str:
    number, symbol, side, price, qty, ts, account, status, note = order
    fields = [
        "35=8", "49=GEN", "56=BENCH", f"34={number + 1}", f"52={ts}", f"37={number}",
        f"55={symbol}",
        f"54={FIX_SIDE[side]}", f"44={price}", f"38={qty}", f"60={ts}", f"1={account}",
        f"39={FIX_STATUS[status]}", *([] if note is None else [f"58={note}"]),
    ]  # fmt: skip
    body = SOH.join(fields) + SOH
    message = f"8=FIX.4.4{SOH}9={len(body)}{SOH}{body}"
    return f"{message}10={sum(message.encode()) & 255:03d}{SOH}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--text", type=int, default=0, help="rows as JSON lines and FIX")
    arguments = parser.parse_args()
    print(make(arguments.rows, arguments.folder))
    if arguments.text:
        print(*make_text(arguments.text, arguments.folder))
