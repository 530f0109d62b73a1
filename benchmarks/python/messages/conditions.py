"""The queries: four single ones, twenty that run together, and two hundred of the same forms."""

from __future__ import annotations

from orders import FIRST_NANOSECOND

#: Symbols, most frequent first, each with its median price.
Top = list[tuple[str, float]]


def single(top: Top) -> dict[str, str]:
    """Statements that run one at a time."""
    symbol, price = top[3]
    return {
        "Q1": f"SELECT count(*) FROM m WHERE symbol = '{symbol}' AND price > {price} AND qty BETWEEN 100 AND 500",
        "Q2": "SELECT count(*) FROM m WHERE status IN ('REJECTED', 'EXPIRED') AND note LIKE '%abc%'",
        "Q3": "SELECT count(*) FROM m WHERE price > 50 AND qty > 100",
        "Q4": "SELECT id, ts, symbol, price FROM m WHERE status = 'FILLED' AND qty > 1000 "
        "ORDER BY ts DESC LIMIT 100",
    }


def twenty(top: Top, turn: int = 0) -> list[str]:
    """Twenty conditions; each turn has the same forms with other constants. The last one is answered with ids,
    the others with counts."""
    conditions = []
    for i in range(6):
        symbol, price = top[(5 + 7 * i + 41 * turn) % 2000]
        conditions.append(
            f"symbol = '{symbol}' AND price > {price} "
            f"AND qty BETWEEN {50 + 10 * i + turn} AND {400 + 50 * i + turn}"
        )
    for i in range(4):
        low = 20 + 20 * i + turn
        conditions.append(f"price BETWEEN {low} AND {low + 5} AND qty > {200 * (i + 1) + turn}")
    first, second = [("REJECTED", "EXPIRED"), ("NEW", "EXPIRED"), ("CANCELED", "REJECTED")][turn % 3]
    part = ["abc", "dark", "bor", "ix42", "swe", "urg", "late", "esk", "one", "vwap"][turn % 10]
    word = ["urgent", "algo", "dark", "late", "prime", "desk", "open", "close", "block", "route"][turn % 10]
    conditions.append(f"status IN ('{first}', '{second}') AND note LIKE '%{part}%'")
    conditions.append(f"status = 'CANCELED' AND note LIKE '{word}%'")
    conditions.append(f"note IS NULL AND qty > {2000 + turn}")
    conditions.append(
        f"side <> 'B' AND status NOT IN ('NEW', 'FILLED') AND price * qty > {1_000_000 + 1000 * turn}"
    )
    accounts = ", ".join(f"'ACC{number + turn:06d}'" for number in (1, 77, 1234, 99_900))
    symbols = ", ".join(f"'{symbol}'" for symbol, _ in top[100 + 5 * turn : 105 + 5 * turn])
    conditions.append(f"account IN ({accounts}) OR symbol IN ({symbols})")
    since = FIRST_NANOSECOND + 10**9 * (turn + 1)
    conditions.append(f"ts BETWEEN {since} AND {since + 2 * 10**9} AND side = 'H'")
    conditions.append(f"symbol LIKE '{chr(ord('A') + turn % 26)}%' AND qty NOT BETWEEN 10 AND {1000 + turn}")
    conditions.append(f"account LIKE 'ACC00{turn % 10}0__' AND status = 'FILLED'")
    conditions.append(f"NOT (price < {100 + turn} OR qty < {50 + turn}) AND status <> 'NEW'")
    conditions.append(f"symbol = '{top[turn][0]}' AND status = 'PARTIAL' AND qty > {4000 + turn}")
    return conditions


def statements(conditions: list[str]) -> list[str]:
    """Twenty conditions as statements: counts, and ids for the last one."""
    counted = [f"SELECT count(*) FROM m WHERE {condition}" for condition in conditions[:-1]]
    return [*counted, f"SELECT id FROM m WHERE {conditions[-1]}"]
