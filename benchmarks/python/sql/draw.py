"""Random statements: joins, grouping, HAVING, DISTINCT, subqueries, set operations, windows, ORDER BY with LIMIT
if the order is total.

The output columns of statement 17 are called `s17_0`, `s17_1` …, so that rows identify their statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from files import TABLES
from values import Column, Draw, Sql, form, join, same


@dataclass
class Statement:
    """SQL for both, the types of the columns, and whether the statement fixes the order of the rows."""

    sql: Sql
    kinds: list[str]
    is_ordered: bool
    features: Counter[str] = field(default_factory=Counter)


@dataclass
class Query:
    """A query that may stand in brackets: its SQL, and its columns by name and type."""

    sql: Sql
    columns: list[Column]


@dataclass
class Statements(Draw):
    """Generates whole statements."""

    aliases: int = 0
    is_mixed: bool = False
    features: Counter[str] = field(default_factory=Counter)

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    # FROM.

    def table(self, depth: int) -> tuple[Sql, list[Column]]:
        """A relation after FROM with an alias, and its qualified columns."""
        alias = self.alias()
        if depth > 0 and self.chance(0.2):
            self.features["derived table"] += 1
            inner = self.query(depth - 1, [f"{alias}c{n}" for n in range(3)])
            return form("({}) AS " + alias, inner.sql), [(f"{alias}.{name}", kind) for name, kind in inner.columns]
        table = self.r.choice(TABLES)
        return same(f"{table.relation(self.is_mixed)} AS {alias}"), [
            (f"{alias}.{name}", kind) for name, kind in table.columns
        ]

    def source(self, depth: int) -> tuple[Sql, list[Column]]:
        """One to three tables, joined."""
        sql, scope = self.table(depth)
        for _ in range(self.r.choice([0, 0, 1, 1, 2]) if depth > 0 else 0):
            other, columns = self.table(depth - 1)
            joins = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]
            how = self.r.choice(joins)
            self.features[how.lower()] += 1
            if how == "CROSS JOIN":
                # Keep the number of rows small enough to inspect.
                sql = form("{} CROSS JOIN (SELECT * FROM {} WHERE {}) AS " + (name := self.alias()), sql,
                           other, form("{} < 4", self.some_id(columns)))  # fmt: skip
                columns = [(f"{name}.{column.split('.', 1)[1]}", kind) for column, kind in columns]
                scope = scope + columns
                continue
            on = self.join_condition(scope, columns)
            # DuckDB supports full joins only on equalities.
            if how != "FULL JOIN" and self.chance(0.3):
                on = form("{} AND {}", on, self.condition(scope + columns, 1))
            sql = form("{} " + how + " {} ON {}", sql, other, on)
            scope = scope + columns
        return sql, scope

    def some_id(self, columns: Sequence[Column]) -> Sql:
        return self.column(columns, "int") or same("0")

    def join_condition(self, left: Sequence[Column], right: Sequence[Column]) -> Sql:
        for kind in self.r.sample(["int", "int", "text", "date"], 4):
            ours, theirs = self.column(left, kind), self.column(right, kind)
            if ours and theirs:
                return form("{} = {}", ours, theirs)
        return form("{} = {}", self.some_id(left), self.some_id(right))

    # Subqueries.

    def subquery(self, scope: Sequence[Column]) -> Sql:
        """A condition with a subquery of another table."""
        table, columns = self.table(0)
        roll, negated = self.r.random(), self.r.choice(["", "NOT "])
        kind = self.kind(scope, "iiiittda")
        inner = self.column(columns, kind)
        correlation = self.join_condition(scope, columns)
        own = self.condition(columns, 1) if self.chance(0.6) else same("1 = 1")
        if roll < 0.3 or not inner:
            self.features[f"{negated.lower()}exists"] += 1
            if self.chance(0.3):
                own = self.condition([*columns, *scope], 1)
            return form(negated + "EXISTS (SELECT * FROM {} WHERE {} AND {})", table, correlation, own)
        outer = self.leaf(scope, kind)
        if roll < 0.6:
            self.features[f"{negated.lower()}in"] += 1
            where = form("{} AND {}", correlation, own) if self.chance(0.3) else own
            return form("{} " + negated + "IN (SELECT {} FROM {} WHERE {})", outer, inner, table, where)
        if roll < 0.8:
            op = self.r.choice(["=", "<", "<=", ">", ">="])
            quantifier = self.r.choice(["ANY", "ALL", "SOME"])
            self.features[f"{quantifier.lower()}"] += 1
            duck = "ANY" if quantifier == "SOME" else quantifier
            self.used["some"] += quantifier == "SOME"
            text = "{} " + op + " {} (SELECT {} FROM {} WHERE {})"
            return form(text, outer, (quantifier, duck), inner, table, own)
        self.features["scalar subquery"] += 1
        return form(self.r.choice(["{} = ", "{} > ", "{} <= "]) + "{}", outer, self.scalar(scope, kind))

    def scalar(self, scope: Sequence[Column], kind: str) -> Sql:
        """A subquery with one value, correlated or not."""
        table, columns = self.table(0)
        inner = self.column(columns, kind)
        value = form(self.r.choice(["MIN", "MAX"]) + "({})", inner) if inner else self.literal(kind)
        if kind == "int" and self.chance(0.5):
            value = same("COUNT(*)")
        elif not inner:
            value = form("MAX({})", value)
        where = self.condition(columns, 0) if self.chance(0.5) else same("1 = 1")
        if self.chance(0.5):
            self.features["correlated"] += 1
            where = form("{} AND {}", self.join_condition(scope, columns), where)
        return form("(SELECT {} FROM {} WHERE {})", value, table, where)

    def where(self, scope: Sequence[Column], depth: int) -> Sql:
        if self.chance(0.4):
            return same("")
        # Each condition removes rows: use few of them, so that some rows remain to compare.
        deep = self.r.choice([0, 0, 1, 2])
        return form(" WHERE {}", self.condition(scope, deep, lambda: self.subquery(scope)))

    # Queries.

    def query(self, depth: int, names: list[str]) -> Query:
        """A query of any form, with these output names or the first few of them."""
        forms = [self.plain, self.plain, self.grouped, self.grouped, self.windowed]
        if depth > 0:
            forms += [self.set_operation, self.distinct]
        return self.r.choice(forms)(depth, names)

    def outputs(self, values: Sequence[tuple[Sql, str]], names: list[str]) -> tuple[Sql, list[Column]]:
        named = [form("{} AS " + name, value) for (value, _), name in zip(values, names)]
        return join(", ", named), [(name, kind) for name, (_, kind) in zip(names, values)]

    def plain(self, depth: int, names: list[str], kinds: Sequence[str] | None = None) -> Query:
        sql, scope = self.source(depth)
        kinds = kinds or [self.kind(scope) for _ in range(self.r.randint(1, len(names)))]
        values = []
        for kind in kinds:
            if depth > 0 and self.chance(0.08):
                self.features["scalar subquery"] += 1
                values.append((self.scalar(scope, kind), kind))
            else:
                values.append((self.value(scope, kind, 2), kind))
        listed, columns = self.outputs(values, names)
        return Query(form("SELECT {} FROM {}{}", listed, sql, self.where(scope, depth)), columns)

    def distinct(self, depth: int, names: list[str]) -> Query:
        self.features["distinct"] += 1
        query = self.plain(depth, names[:2])
        return Query((query.sql[0].replace("SELECT", "SELECT DISTINCT", 1),
                      query.sql[1].replace("SELECT", "SELECT DISTINCT", 1)), query.columns)  # fmt: skip

    def aggregate(self, scope: Sequence[Column]) -> tuple[Sql, str]:
        roll = self.r.random()
        if roll < 0.2:
            return same("COUNT(*)"), "int"
        kind = self.kind(scope, "iiiddfft")
        value = self.value(scope, kind, 1)
        if roll < 0.35:
            return form("COUNT(" + self.r.choice(["", "DISTINCT "]) + "{})", value), "int"
        if roll < 0.6 or kind not in ("int", "dec", "float"):
            return form(self.r.choice(["MIN", "MAX"]) + "({})", value), kind
        if roll < 0.85:
            distinct = "DISTINCT " if kind != "float" and self.chance(0.2) else ""
            return form(f"SUM({distinct}{{}})", value), kind
        return form("AVG({})", value), "float"

    def grouped(self, depth: int, names: list[str]) -> Query:
        self.features["group by"] += 1
        sql, scope = self.source(depth)
        keys = []
        for _ in range(self.r.choice([0, 1, 1, 1, 2])):
            kind = self.kind(scope, "iittab")
            key = self.column(scope, kind) if self.chance(0.7) else self.value(scope, kind, 1)
            # A constant cannot be a key, because DuckDB takes integers as positions in the list.
            if key and "." in key[0]:
                keys.append((key, kind))
        room = max(1, len(names) - len(keys))
        values = [*keys, *(self.aggregate(scope) for _ in range(self.r.randint(1, room)))]
        listed, columns = self.outputs(values, names)
        by = form(" GROUP BY {}", join(", ", [key for key, _ in keys])) if keys else same("")
        having = same("")
        if self.chance(0.35):
            self.features["having"] += 1
            aggregate, kind = self.aggregate(scope)
            op = self.r.choice([">", "<", ">=", "<=", "<>"])
            having = form(" HAVING {} " + op + " {}", aggregate, self.literal(kind))
        return Query(form("SELECT {} FROM {}{}{}{}", listed, sql, self.where(scope, depth), by, having), columns)

    def set_operation(self, depth: int, names: list[str]) -> Query:
        operation = self.r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
        self.features[operation.lower()] += 1
        first = self.plain(0, names[:2])
        kinds = [kind for _, kind in first.columns]
        second = self.plain(0, names[:2], kinds)
        return Query(form("{} " + operation + " {}", first.sql, second.sql), first.columns)

    def windowed(self, depth: int, names: list[str]) -> Query:
        self.features["window"] += 1
        sql, scope = self.source(min(depth, 1))
        # A total order of the rows, by the ids of all tables.
        order = [name for name, kind in scope if kind != "float"] or [name for name, _ in scope]
        total = ", ".join(f"{name} NULLS LAST" for name in order)
        values: list[tuple[Sql, str]] = [(self.value(scope, kind := self.kind(scope), 1), kind)]
        for _ in range(self.r.randint(1, max(1, len(names) - 1))):
            values.append(self.window(scope, total))
        listed, columns = self.outputs(values, names)
        return Query(form("SELECT {} FROM {}{}", listed, sql, self.where(scope, 0)), columns)

    def window(self, scope: Sequence[Column], total: str) -> tuple[Sql, str]:
        part = self.column(scope, self.kind(scope, "iitb"))
        partition = form("PARTITION BY {} ", part) if part and self.chance(0.6) else same("")
        key_kind = self.kind(scope, "iidat")
        key = form("{}" + self.r.choice(["", " DESC"]) + self.r.choice([" NULLS FIRST", " NULLS LAST"]),
                   self.column(scope, key_kind) or self.leaf(scope, "int"))  # fmt: skip
        ordered = form("{}ORDER BY {}, " + total, partition, key)
        roll = self.r.random()
        if roll < 0.25:
            name = self.r.choice(["RANK", "DENSE_RANK"])
            return form(name + "() OVER ({}ORDER BY {})", partition, key), "int"
        kind = self.kind(scope, "iiddft")
        value = self.column(scope, kind) or self.literal(kind)
        if roll < 0.4:
            return form("ROW_NUMBER() OVER ({})", ordered), "int"
        if roll < 0.55:
            name = self.r.choice(["LAG", "LEAD"])
            return form(f"{name}({{}}, {self.r.randint(1, 3)}) OVER ({{}})", value, ordered), kind
        if roll < 0.65:
            name = self.r.choice(["FIRST_VALUE", "LAST_VALUE"])
            frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            return form(name + "({}) OVER ({} " + frame + ")", value, ordered), kind
        aggregate, its = self.r.choice([("COUNT", "int"), ("MIN", kind), ("MAX", kind), ("SUM", kind)])
        if kind not in ("int", "dec", "float") and aggregate == "SUM":
            aggregate, its = "COUNT", "int"
        if roll < 0.75:
            return form(aggregate + "({}) OVER ({})", value, partition), its
        if roll < 0.85:  # up to the last peer of the row
            return form(aggregate + "({}) OVER ({}ORDER BY {})", value, partition, key), its
        frame = f"ROWS BETWEEN {self.r.randint(0, 3)} PRECEDING AND {self.r.randint(0, 2)} FOLLOWING"
        return form(aggregate + "({}) OVER ({} " + frame + ")", value, ordered), its

    # Whole statements.

    def statement(self, number: int) -> Statement:
        self.features.clear()
        names = [f"s{number}_{n}" for n in range(4)]
        query = self.query(self.r.choice([0, 1, 1, 2]), names)
        sql, is_ordered = query.sql, False
        if self.chance(0.1):
            self.features["with"] += 1
            cte = self.query(1, [f"w{n}" for n in range(3)])
            listed = ", ".join(f"w.{name} AS {out}" for (name, _), out in zip(cte.columns, names))
            where = self.where([(f"w.{name}", kind) for name, kind in cte.columns], 0)
            sql = form("WITH w AS ({}) SELECT " + listed + " FROM w{}", cte.sql, where)
            query = Query(sql, [(out, kind) for (_, kind), out in zip(cte.columns, names)])
        if self.chance(0.35):
            is_ordered = True
            self.features["order by"] += 1
            # By all columns: rows that are equal in all of them cannot be distinguished.
            keys = [f"{name}{self.r.choice(['', ' DESC'])} NULLS {self.r.choice(['FIRST', 'LAST'])}"
                    for name, _ in query.columns]  # fmt: skip
            sql = form("{} ORDER BY " + ", ".join(keys), sql)
            if self.chance(0.6):
                self.features["limit"] += 1
                sql = form("{}" + f" LIMIT {self.r.choice([0, 1, 3, 10])}", sql)
                if self.chance(0.3):
                    sql = form("{}" + f" OFFSET {self.r.choice([1, 5, 60])}", sql)
        return Statement(sql, [kind for _, kind in query.columns], is_ordered, Counter(self.features))
