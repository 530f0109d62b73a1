"""Random conditions over random tables: quarrier, DuckDB and SQLite must give the same answers.

    cargo build --example ask -p quarrier-filter
    python benchmarks/python/agreement.py target/debug/examples/ask [CONDITIONS [SEED]]

A condition is generated as a tree and written in the dialect of each engine (`//` is DuckDB's integer division).
Expressions in which an engine departs from SQL-92 are not generated for it; docs/sql.md lists them. The program
prints each difference with the condition, the row and the answers, and then ends with status 1.
"""

import json
import random
import sqlite3
import subprocess
import sys

import duckdb

ROWS = 48
BATCH = 25

FIELDS = [
    ("i", "integer"), ("j", "integer"), ("big", "integer"), ("d", "decimal"), ("e", "decimal"),
    ("f", "float"), ("g", "float"), ("b", "boolean"), ("c", "boolean"),
    ("s", "text"), ("t", "text"), ("day", "date"), ("moment", "timestamp"),
]  # fmt: skip
KIND = dict(FIELDS)
DUCK = {"integer": "BIGINT", "decimal": "DECIMAL(18,2)", "float": "DOUBLE", "boolean": "BOOLEAN",
        "text": "VARCHAR", "date": "DATE", "timestamp": "TIMESTAMP"}  # fmt: skip
LITE = {"integer": "INTEGER", "float": "REAL", "boolean": "INTEGER", "text": "TEXT"}

TEXTS = ["", " ", "a", "A", "b", "ab", "aB", "abc", "a_c", "a%c", "a\\c", "é", "éa", "日本", "🜚", "a b",
         " a", "a ", "ba", "aa", "aaa", "it's", "Zz", "0", "10", "9", "-1", "null", "ａ", "~"]  # fmt: skip
BIG = [-(2**63), -(2**63) + 1, 2**63 - 1, 2**53, 2**53 + 1, -1, 0, 1, 10**18]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e300, -1e300, 5e-324, 0.1, 0.30000000000000004,
          float("nan"), float("inf"), float("-inf"), 9007199254740993.0, 3.0, 7.0]  # fmt: skip
DAYS = ["1970-01-01", "2000-02-29", "1999-12-31", "2020-01-31", "2020-02-01", "2024-02-29",
        "1900-03-01", "2199-12-31", "2020-03-01"]  # fmt: skip
TIMES = ["1970-01-01 00:00:00", "2000-02-29 23:59:59.999999", "2020-01-31 12:00:00",
         "1999-12-31 23:59:59", "2020-02-01 00:00:00", "2024-02-29 06:07:08.5"]  # fmt: skip


def value(r, kind):
    if r.random() < 0.15:
        return None
    if kind == "integer":
        return str(r.randint(-4, 12))
    if kind == "decimal":
        return f"{r.choice([r.randint(-500, 1500), r.randint(-9, 9) * 50]) / 100:.2f}"
    if kind == "float":
        return repr(r.choice(FLOATS))
    if kind == "boolean":
        return r.choice(["true", "false"])
    return r.choice({"text": TEXTS, "date": DAYS, "timestamp": TIMES}[kind])


def table(r):
    rows = [[value(r, kind) for _, kind in FIELDS] for _ in range(ROWS)]
    place = [name for name, _ in FIELDS].index("big")
    for row in rows:
        row[place] = r.choice([None, *map(str, BIG)])
    return rows


# Trees: (ours, duck, lite); None if the engine lacks the expression or gives it another meaning.


def lit(text, duck="", lite=""):
    return (text, duck if duck != "" else text, lite if lite != "" else text)


def form(pattern, *parts):
    """The pattern filled with the parts, for each engine that supports all of them."""
    return tuple(
        None if any(part[n] is None for part in parts) else pattern.format(*(p[n] for p in parts))
        for n in range(3)
    )


def each(patterns, *parts):
    """Like form, with a pattern for each engine; None if an engine has none."""
    return tuple(None if patterns[n] is None else form(patterns[n], *parts)[n] for n in range(3))


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def column(name):
    is_lite = KIND[name] in LITE
    return (name, name, name if is_lite else None)


def number(r, kind, depth):
    """Small integers, decimals or floats."""
    roll = r.random()
    if depth <= 0 or roll < 0.45:
        if r.random() < 0.6:
            return column(r.choice([n for n, k in FIELDS if k == kind and n != "big"]))
        if kind == "integer":
            return lit(str(r.randint(-3, 12)))
        if kind == "decimal":
            digits = f"{r.randint(-300, 1200) / 100:.2f}"
            return (digits, digits, None)
        return lit(r.choice(["0e0", "5e-1", "2.5e0", "-2.5e0", "1e300", "3e0", "1e-1"]))
    if roll < 0.75:
        op = r.choice("+-*" if kind != "float" else "+-")
        return form("({} " + op + " {})", number(r, kind, depth - 1), number(r, kind, 0))
    if roll < 0.80 and kind == "integer":
        a, k = number(r, kind, depth - 1), r.choice([-3, -2, 2, 3, 7])
        op, duck = r.choice([("/", "//"), ("%", "%")])
        # DuckDB rounds down if the divisor is negative.
        k = abs(k) if op == "/" else k
        a = form("ABS({})", a) if op == "/" else a
        return each((f"({{}} {op} {k})", f"({{}} {duck} {k})", f"({{}} {op} {k})"), a)
    if roll < 0.85 and kind == "integer":
        return r.choice([
            lambda: form("LENGTH({})", text(r, depth - 1)),
            lambda: each(("POSITION({} IN {})", "POSITION({} IN {})", "INSTR({1}, {0})"),
                         text(r, 0), text(r, depth - 1)),
            lambda: each(("OCTET_LENGTH({})", "STRLEN({})", "LENGTH(CAST({} AS BLOB))"),
                         text(r, depth - 1)),
            lambda: each((f"EXTRACT({(part := r.choice(['YEAR', 'MONTH', 'DAY']))} FROM {{}})",
                          f"EXTRACT({part} FROM {{}})", None), date(r, depth - 1)),
        ])()  # fmt: skip
    if roll < 0.90:
        return form("(- {})", number(r, kind, depth - 1))
    return chosen(r, depth, lambda d: number(r, kind, d))


def chosen(r, depth, draw):
    """CASE, COALESCE and NULLIF of any type."""
    roll = r.random()
    if roll < 0.35:
        return form("CASE WHEN {} THEN {} ELSE {} END", condition(r, depth - 1), draw(depth - 1),
                    draw(0))  # fmt: skip
    if roll < 0.45:
        return form("CASE WHEN {} THEN {} END", condition(r, depth - 1), draw(depth - 1))
    if roll < 0.55:
        return form("CASE {} WHEN {} THEN {} ELSE {} END", number(r, "integer", 0),
                    number(r, "integer", 0), draw(depth - 1), draw(0))  # fmt: skip
    if roll < 0.8:
        return form("COALESCE({}, {})", draw(depth - 1), draw(0))
    return form("NULLIF({}, {})", draw(depth - 1), draw(0))


def text(r, depth):
    roll = r.random()
    if depth <= 0 or roll < 0.55:
        if r.random() < 0.6:
            return column(r.choice("st"))
        return lit(quoted(r.choice(TEXTS)))
    if roll < 0.65:
        return form("({} || {})", text(r, depth - 1), text(r, 0))
    if roll < 0.73:
        start, count = r.randint(1, 4), r.randint(0, 3)
        standard = f"SUBSTRING({{}} FROM {start} FOR {count})"
        return each((standard, standard, f"SUBSTR({{}}, {start}, {count})"), text(r, depth - 1))
    if roll < 0.79:
        return each(("TRIM(BOTH ' ' FROM {})", "TRIM({}, ' ')", "TRIM({})"), text(r, depth - 1))
    if roll < 0.85:
        function = r.choice(["UPPER", "LOWER"])
        both = f"{function}({{}})"
        # SQLite changes the case of ASCII letters only.
        return each((both, both, None), text(r, depth - 1))
    if roll < 0.90:
        return form("CAST({} AS VARCHAR)", number(r, "integer", depth - 1))
    return chosen(r, depth, lambda d: text(r, d))


def date(r, depth):
    roll = r.random()
    if depth <= 0 or roll < 0.6:
        if r.random() < 0.6:
            return ("day", "day", None)
        literal = f"DATE '{r.choice(DAYS)}'"
        return (literal, literal, None)
    if roll < 0.9:
        op, count, unit = r.choice("+-"), r.randint(0, 40), r.choice(["DAY", "MONTH", "YEAR"])
        sum_ = f"({{}} {op} INTERVAL '{count}' {unit})"
        return each((sum_, f"CAST({sum_} AS DATE)", None), date(r, depth - 1))
    return chosen(r, depth, lambda d: date(r, d))


def moment(r, depth):
    roll = r.random()
    if depth <= 0 or roll < 0.5:
        if r.random() < 0.6:
            return ("moment", "moment", None)
        literal = f"TIMESTAMP '{r.choice(TIMES)}'"
        return (literal, literal, None)
    if roll < 0.9:
        unit = r.choice(["SECOND", "MINUTE", "HOUR", "DAY", "MONTH"])
        sum_ = f"({{}} {r.choice('+-')} INTERVAL '{r.randint(0, 99)}' {unit})"
        return each((sum_, sum_, None), moment(r, depth - 1))
    return chosen(r, depth, lambda d: moment(r, d))


def pair(r, depth):
    """How to draw two comparable values."""
    roll = r.random()
    if roll < 0.22:
        return lambda d: number(r, "integer", d)
    if roll < 0.30:
        return lambda d: r.choice([("big",) * 3, lit(str(r.choice([*BIG[1:], 5])))])
    if roll < 0.40:
        return lambda d: number(r, "decimal", d)
    if roll < 0.44:
        return lambda d: number(r, r.choice(["integer", "decimal"]), 0)
    if roll < 0.56:
        return lambda d: no_nan(number(r, "float", d))
    if roll < 0.60:
        return lambda d: no_nan(number(r, r.choice(["integer", "float"]), 0))
    if roll < 0.82:
        return lambda d: text(r, d)
    if roll < 0.90:
        return lambda d: date(r, d)
    if roll < 0.97:
        return lambda d: moment(r, d)
    return lambda d: column(r.choice("bc"))


def no_nan(tree):
    """SQLite stores NaN as NULL, which changes the meaning of comparisons."""
    return (tree[0], tree[1], None)


def pattern(r):
    return "".join(r.choice(["a", "b", "c", "%", "%", "_", "A", "é", " "]) for _ in range(r.randint(0, 5)))


def predicate(r, depth):
    roll = r.random()
    draw = pair(r, depth)
    if roll < 0.35:
        return form("{} " + r.choice(["=", "<>", "<", "<=", ">", ">="]) + " {}", draw(depth), draw(depth))
    negated = r.choice(["", "NOT "])
    if roll < 0.47:
        return form("{} " + negated + "BETWEEN {} AND {}", draw(depth), draw(0), draw(0))
    if roll < 0.52:
        symmetric = "({0} " + negated + "BETWEEN SYMMETRIC {1} AND {2})"
        either = negated + "({0} BETWEEN {1} AND {2} OR {0} BETWEEN {2} AND {1})"
        return each((symmetric, either, either), draw(0), draw(0), draw(0))
    if roll < 0.64:
        values = [draw(0) for _ in range(r.randint(1, 4))]
        if r.random() < 0.2:
            values.append(lit("NULL"))
        return form("{} " + negated + "IN (" + ", ".join(["{}"] * len(values)) + ")", draw(depth), *values)
    if roll < 0.76:
        like = "{} " + negated + "LIKE " + quoted(pattern(r))
        return form(like, text(r, depth))
    if roll < 0.80:
        escaped = pattern(r).replace("_", "!_", 1).replace("b", "!!", 1)
        return form("{} " + negated + f"LIKE {quoted(escaped)} ESCAPE '!'", text(r, depth))
    if roll < 0.82:
        return form("{} " + negated + "LIKE {}", text(r, depth), column(r.choice("st")))
    if roll < 0.90:
        return form("{} IS " + negated + "NULL", draw(depth))
    if roll < 0.95:
        # DuckDB compares rows as structs, and its order includes NULL.
        op = r.choice(["=", "<>", "<", "<=", ">", ">="])
        other = pair(r, 0)
        parts = [draw(0), other(0), draw(0), other(0)]
        rows = form("(({}, {}) " + op + " ({}, {}))", *parts)
        strict = op.rstrip("=") if op not in ("=", "<>") else op
        written = {"=": "({0} = {2} AND {1} = {3})", "<>": "({0} <> {2} OR {1} <> {3})"}.get(
            op, f"({{0}} {strict} {{2}} OR ({{0}} = {{2}} AND {{1}} {op} {{3}}))"
        )
        return (rows[0], form(written, *parts)[1], rows[2])
    return column(r.choice("bc"))


def condition(r, depth):
    roll = r.random()
    if depth <= 0 or roll < 0.4:
        return form("({})", predicate(r, min(depth, 2)))
    if roll < 0.75:
        count = r.randint(2, 3)
        op = r.choice([" AND ", " OR "])
        return form("(" + op.join(["{}"] * count) + ")", *(condition(r, depth - 1) for _ in range(count)))
    if roll < 0.87:
        return form("(NOT {})", condition(r, depth - 1))
    truth = r.choice(["TRUE", "FALSE", "UNKNOWN"])
    negated = r.choice(["", "NOT "])
    plain = f"({{}} IS {negated}{truth})"
    null = f"({{}} IS {negated}NULL)"
    other = plain if truth != "UNKNOWN" else null
    return each((plain, other, other), condition(r, depth - 1))


def letters(values):
    return "".join("U" if value is None else "T" if value else "F" for value in values)


def asked(connection, conditions):
    """The answers to several conditions; evaluated one by one if any of them fails."""
    try:
        rows = connection.execute(f"SELECT {', '.join(conditions)} FROM m ORDER BY id").fetchall()
        return [letters(column) for column in zip(*rows)]
    except (duckdb.Error, sqlite3.Error) as error:
        if len(conditions) == 1:
            return [f"!{str(error).splitlines()[0]}"]
        return [asked(connection, [text])[0] for text in conditions]


def load(rows):
    duck = duckdb.connect()
    duck.execute("SET threads = 1")
    fields = ", ".join(f"{name} {DUCK[kind]}" for name, kind in FIELDS)
    duck.execute(f"CREATE TABLE m (id INTEGER, {fields})")
    duck.executemany(
        f"INSERT INTO m VALUES ({', '.join('?' * (len(FIELDS) + 1))})",
        [[n, *row] for n, row in enumerate(rows)],
    )
    lite = sqlite3.connect(":memory:")
    lite.execute("PRAGMA case_sensitive_like = ON")
    fields = ", ".join(f"{name} {LITE.get(kind, 'TEXT')}" for name, kind in FIELDS)
    lite.execute(f"CREATE TABLE m (id INTEGER, {fields})")
    python = {"integer": int, "float": float, "boolean": lambda text: int(text == "true")}
    lite.executemany(
        f"INSERT INTO m VALUES ({', '.join('?' * (len(FIELDS) + 1))})",
        [
            [
                n,
                *(cell if cell is None else python.get(k, str)(cell) for cell, (_, k) in zip(row, FIELDS)),
            ]
            for n, row in enumerate(rows)
        ],
    )
    return duck, lite


def agree(ours, theirs):
    """Whether the answers agree; if a row has no value here, the other engine must fail as a whole."""
    if ours.startswith("!"):
        return False
    return "E" in ours if theirs.startswith("!") else ours == theirs


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    done = compared_duck = compared_lite = faults = 0
    shares = dict.fromkeys("TFUE", 0)
    wrong = []
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ours:
        while done < count and len(wrong) < 20:
            r = random.Random(f"{seed}/{done}")
            rows = table(r)
            duck, lite = load(rows)
            trees = [condition(r, r.choice([1, 2, 2, 3])) for _ in range(40 * BATCH)]
            case = {"fields": FIELDS, "rows": rows, "conditions": [tree[0] for tree in trees]}
            ours.stdin.write(json.dumps(case) + "\n")
            ours.stdin.flush()
            answers = [ours.stdout.readline().rstrip("\n") for _ in trees]
            for engine, connection, n in (("DuckDB", duck, 1), ("SQLite", lite, 2)):
                there = [(tree, answer) for tree, answer in zip(trees, answers) if tree[n] is not None]
                for start in range(0, len(there), BATCH):
                    batch = there[start : start + BATCH]
                    for (tree, answer), theirs in zip(batch, asked(connection, [t[n] for t, _ in batch])):
                        compared_duck += n == 1
                        compared_lite += n == 2
                        faults += "E" in answer
                        if not agree(answer, theirs):
                            wrong.append((engine, tree, answer, theirs, rows))
            done += len(trees)
            for answer in answers:
                for letter in shares:
                    shares[letter] += answer.count(letter)
    for engine, tree, answer, theirs, rows in wrong[:20]:
        place = next((n for n, (a, b) in enumerate(zip(answer, theirs)) if a != b), 0)
        print(f"{engine} differs: {tree[0]}")
        print(f"  row {dict(zip(KIND, rows[place]))}")
        print(f"  ours {answer}\n  its  {theirs}")
    print(
        f"{done} conditions of seed {seed}, {ROWS} rows each: {compared_duck} compared with DuckDB "
        f"{duckdb.__version__}, {compared_lite} with SQLite {sqlite3.sqlite_version}; in {faults} "
        f"a row without a value; {len(wrong)} differ; answers: {shares}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
