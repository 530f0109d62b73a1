"""Random values and conditions of SQL-92, each in two versions: ours, and DuckDB's.

A piece of SQL is a pair of strings. Where DuckDB gives the same SQL another meaning, its version is reworded to
mean the same: each such place names its rule in `REWORDED`, and the program counts the uses of each rule.
Nothing is left out of a comparison.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from files import DAYS, MOMENTS, TEXTS

Sql = tuple[str, str]
#: A column that can be named: its name, and its type.
Column = tuple[str, str]

#: How DuckDB departs from SQL-92, and how its version is reworded.
REWORDED = {
    "division": "7 / 2 is 3.5 there: written 7 // 2",
    "row values": "rows compare as structs, where NULL has a place: written out by columns",
    "symmetric": "no BETWEEN SYMMETRIC: written as two BETWEENs",
    "unknown": "no IS UNKNOWN: written IS NULL",
    "date sum": "a date and an interval make a timestamp there: cast to DATE",
    "octets": "OCTET_LENGTH is for bytes there: written STRLEN",
    "some": "no SOME: written ANY",
}


def same(text: str) -> Sql:
    return (text, text)


def form(pattern: str, *parts: Sql) -> Sql:
    return (pattern.format(*(p[0] for p in parts)), pattern.format(*(p[1] for p in parts)))


def join(separator: str, parts: Sequence[Sql]) -> Sql:
    return (separator.join(p[0] for p in parts), separator.join(p[1] for p in parts))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass
class Draw:
    """Draws from one random stream, and counts the rules by which SQL was reworded."""

    r: random.Random
    used: Counter[str] = field(default_factory=Counter)

    def chance(self, share: float) -> bool:
        return self.r.random() < share

    def each(self, rule: str, ours: str, duck: str, *parts: Sql) -> Sql:
        self.used[rule] += 1
        return (form(ours, *parts)[0], form(duck, *parts)[1])

    # Values.

    def column(self, scope: Sequence[Column], kind: str) -> Sql | None:
        names = [name for name, its in scope if its == kind]
        return same(self.r.choice(names)) if names else None

    def literal(self, kind: str) -> Sql:
        r = self.r
        if kind == "int":
            return same(str(r.randint(-3, 12)))
        if kind == "dec":
            return same(f"{r.randint(-300, 1200) / 100:.2f}")
        if kind == "float":
            return same(f"{r.randint(-20, 40) / 4}e0")
        if kind == "text":
            return same(quoted(r.choice(TEXTS)))
        if kind == "date":
            return same(f"DATE '{r.choice(DAYS)}'")
        if kind == "ts":
            return same(f"TIMESTAMP '{r.choice(MOMENTS).replace('T', ' ')}'")
        return same(r.choice(["TRUE", "FALSE"]))

    def leaf(self, scope: Sequence[Column], kind: str) -> Sql:
        named = self.column(scope, kind) if self.chance(0.75) else None
        return named or self.literal(kind)

    def value(self, scope: Sequence[Column], kind: str, depth: int) -> Sql:
        """A value of a type; `depth` limits its nesting."""
        if depth <= 0 or self.chance(0.45):
            return self.leaf(scope, kind)
        if self.chance(0.2):
            return self.chosen(scope, kind, depth)
        return getattr(self, f"value_{kind}")(scope, depth)

    def chosen(self, scope: Sequence[Column], kind: str, depth: int) -> Sql:
        """CASE, COALESCE, NULLIF."""
        roll, value = self.r.random(), self.value
        if roll < 0.4:
            return form(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.condition(scope, depth - 1),
                value(scope, kind, depth - 1),
                self.leaf(scope, kind),
            )
        if roll < 0.5:
            return form(
                "CASE WHEN {} THEN {} END",
                self.condition(scope, depth - 1),
                value(scope, kind, depth - 1),
            )
        if roll < 0.6:
            return form(
                "CASE {} WHEN {} THEN {} ELSE {} END",
                self.leaf(scope, "int"),
                self.literal("int"),
                value(scope, kind, depth - 1),
                self.leaf(scope, kind),
            )
        name = "COALESCE" if roll < 0.8 else "NULLIF"
        return form(name + "({}, {})", value(scope, kind, depth - 1), self.leaf(scope, kind))

    def value_int(self, scope: Sequence[Column], depth: int) -> Sql:
        roll, value = self.r.random(), self.value
        if roll < 0.5:
            op = self.r.choice("+-*")
            return form("({} " + op + " {})", value(scope, "int", depth - 1), self.leaf(scope, "int"))
        if roll < 0.6:
            divisor = self.r.choice([2, 3, 7])
            # Rounding towards 0 and rounding down differ for negative numbers.
            return self.each(
                "division", f"(ABS({{}}) / {divisor})", f"(ABS({{}}) // {divisor})", value(scope, "int", depth - 1)
            )
        if roll < 0.65:
            return form(f"({{}} % {self.r.choice([2, 3, 7])})", value(scope, "int", depth - 1))
        if roll < 0.75:
            return form("CHAR_LENGTH({})", value(scope, "text", depth - 1))
        if roll < 0.8:
            return form("POSITION({} IN {})", self.literal("text"), value(scope, "text", depth - 1))
        if roll < 0.85:
            return self.each("octets", "OCTET_LENGTH({})", "STRLEN({})", value(scope, "text", depth - 1))
        if roll < 0.93:
            part = self.r.choice(["YEAR", "MONTH", "DAY"])
            return form(f"EXTRACT({part} FROM {{}})", value(scope, "date", depth - 1))
        return form("(- {})", value(scope, "int", depth - 1))

    def value_dec(self, scope: Sequence[Column], depth: int) -> Sql:
        op = self.r.choice("+-")
        other = self.leaf(scope, self.r.choice(["dec", "int"]))
        return form("({} " + op + " {})", self.value(scope, "dec", depth - 1), other)

    def value_float(self, scope: Sequence[Column], depth: int) -> Sql:
        if self.chance(0.3):
            return form("CAST({} AS DOUBLE PRECISION)", self.value(scope, "int", depth - 1))
        op = self.r.choice("+-*")
        return form("({} " + op + " {})", self.value(scope, "float", depth - 1), self.literal("float"))

    def value_text(self, scope: Sequence[Column], depth: int) -> Sql:
        roll, inner = self.r.random(), self.value(scope, "text", depth - 1)
        if roll < 0.35:
            return form("({} || {})", inner, self.leaf(scope, "text"))
        if roll < 0.55:
            return form(f"SUBSTRING({{}} FROM {self.r.randint(1, 4)} FOR {self.r.randint(0, 3)})", inner)
        if roll < 0.7:
            return form("TRIM(BOTH ' ' FROM {})", inner)
        if roll < 0.85:
            return form(self.r.choice(["UPPER", "LOWER"]) + "({})", inner)
        return form("CAST({} AS VARCHAR)", self.value(scope, "int", depth - 1))

    def value_date(self, scope: Sequence[Column], depth: int) -> Sql:
        op, count, unit = self.r.choice("+-"), self.r.randint(0, 40), self.r.choice(["DAY", "MONTH", "YEAR"])
        sum_ = f"({{}} {op} INTERVAL '{count}' {unit})"
        return self.each("date sum", sum_, f"CAST({sum_} AS DATE)", self.value(scope, "date", depth - 1))

    def value_ts(self, scope: Sequence[Column], depth: int) -> Sql:
        unit = self.r.choice(["SECOND", "MINUTE", "HOUR", "DAY", "MONTH"])
        op, count = self.r.choice("+-"), self.r.randint(0, 99)
        return form(f"({{}} {op} INTERVAL '{count}' {unit})", self.value(scope, "ts", depth - 1))

    def value_bool(self, scope: Sequence[Column], depth: int) -> Sql:
        return form("({})", self.condition(scope, depth - 1))

    # Conditions.

    def kind(self, scope: Sequence[Column], weights: str = "iiiiddfftttttaab") -> str:
        """A type of which the scope has a column."""
        names = {"i": "int", "d": "dec", "f": "float", "t": "text", "a": "date", "b": "bool", "s": "ts"}
        have = {kind for _, kind in scope}
        return self.r.choice([names[w] for w in weights + "s" if names[w] in have] or ["int"])

    def pattern(self) -> str:
        letters = ["a", "b", "c", "%", "%", "_", "A", "é", " "]
        return "".join(self.r.choice(letters) for _ in range(self.r.randint(0, 5)))

    def predicate(self, scope: Sequence[Column], depth: int) -> Sql:
        roll, kind = self.r.random(), self.kind(scope)

        def draw(deeper: int = 0) -> Sql:
            return self.value(scope, kind, deeper)

        negated = self.r.choice(["", "NOT "])
        if roll < 0.4:
            op = self.r.choice(["=", "<>", "<", "<=", ">", ">="])
            return form("{} " + op + " {}", draw(depth), draw(depth - 1))
        if roll < 0.5:
            return form("{} " + negated + "BETWEEN {} AND {}", draw(depth), draw(), draw())
        if roll < 0.54:
            either = negated + "({0} BETWEEN {1} AND {2} OR {0} BETWEEN {2} AND {1})"
            ours = "({0} " + negated + "BETWEEN SYMMETRIC {1} AND {2})"
            return self.each("symmetric", ours, either, draw(), draw(), draw())
        if roll < 0.66:
            values = [draw() for _ in range(self.r.randint(1, 4))]
            values += [same("NULL")] if self.chance(0.15) else []
            return form("{} " + negated + "IN ({})", draw(depth), join(", ", values))
        if roll < 0.76:
            like = "{} " + negated + "LIKE " + quoted(self.pattern())
            return form(like, self.value(scope, "text", depth))
        if roll < 0.81:
            escaped = self.pattern().replace("_", "!_", 1).replace("b", "!!", 1)
            like = "{} " + negated + f"LIKE {quoted(escaped)} ESCAPE '!'"
            return form(like, self.value(scope, "text", depth))
        if roll < 0.9:
            return form("{} IS " + negated + "NULL", draw(depth))
        if roll < 0.95:
            return self.rows(scope)
        return self.column(scope, "bool") or form("{} IS NOT NULL", draw())

    def rows(self, scope: Sequence[Column]) -> Sql:
        """A comparison of two rows of two values."""
        first, second = self.kind(scope), self.kind(scope)
        parts = [self.leaf(scope, kind) for kind in (first, second, first, second)]
        op = self.r.choice(["=", "<>", "<", "<=", ">", ">="])
        strict = op.rstrip("=") if op not in ("=", "<>") else op
        written = {"=": "({0} = {2} AND {1} = {3})", "<>": "({0} <> {2} OR {1} <> {3})"}.get(
            op, f"({{0}} {strict} {{2}} OR ({{0}} = {{2}} AND {{1}} {op} {{3}}))"
        )
        return self.each("row values", "(({0}, {1}) " + op + " ({2}, {3}))", written, *parts)

    def condition(self, scope: Sequence[Column], depth: int, more: Callable[[], Sql] | None = None) -> Sql:
        """A condition; `more` also draws those with a subquery."""
        roll = self.r.random()
        if more and roll < 0.25:
            return more()
        if depth <= 0 or roll < 0.55:
            return form("({})", self.predicate(scope, min(depth, 1)))
        if roll < 0.8:
            parts = [self.condition(scope, depth - 1, more) for _ in range(self.r.randint(2, 3))]
            return form("({})", join(self.r.choice([" AND ", " OR "]), parts))
        if roll < 0.9:
            return form("(NOT {})", self.condition(scope, depth - 1, more))
        truth, negated = self.r.choice(["TRUE", "FALSE", "UNKNOWN"]), self.r.choice(["", "NOT "])
        inner = self.condition(scope, depth - 1)
        if truth == "UNKNOWN":
            return self.each("unknown", f"({{}} IS {negated}UNKNOWN)", f"({{}} IS {negated}NULL)", inner)
        return form(f"({{}} IS {negated}{truth})", inner)
