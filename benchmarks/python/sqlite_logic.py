"""Runs SQLite's own query files in quarrier, and compares the answers with SQLite's.

    python sqlite_logic.py --program target/release/quarrier-sql FOLDER/select1.test …

The files are those of SQLite's sqllogictest (select1.test to select5.test), in a folder of yours. Tables become
JSON lines. An answer is equal, differs, or is a refusal; refusals are printed with their message, the most
frequent first. With --every N, only each Nth query runs.
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import tempfile

CREATE = re.compile(r"CREATE TABLE (\w+)\s*\((.*)\)$", re.S | re.I)
INSERT = re.compile(r"INSERT INTO (\w+)\s*(?:\(([^)]*)\))?\s*VALUES\s*\((.*)\)$", re.S | re.I)
HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})$")
VALUE = re.compile(r"'((?:[^']|'')*)'|([^,\s]+)")


def records(path):
    """The records of a file: their lines, without comments and without records for other engines."""
    for block in re.split(r"\n[ \t]*\n", path.read_text().replace("\r\n", "\n")):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        is_other = any(line.startswith("onlyif") for line in lines)
        lines = [line for line in lines if not line.startswith(("onlyif", "skipif"))]
        if lines and not is_other:
            yield lines


class Tables:
    """Tables as the file creates and fills them, and their data files."""

    def __init__(self, folder):
        self.folder = folder
        self.columns = {}
        self.rows = {}

    def change(self, statement):
        if match := CREATE.match(statement):
            name, columns = match.groups()
            self.columns[name] = [column.split()[0] for column in columns.split(",")]
            self.rows[name] = []
        elif match := INSERT.match(statement):
            name, columns, values = match.groups()
            named = columns.split(",") if columns else self.columns[name]
            self.rows[name].append(dict(zip(map(str.strip, named), map(value, VALUE.findall(values)))))
        elif not statement.upper().startswith("CREATE INDEX"):
            raise SystemExit(f"a statement that changes tables otherwise: {statement}")

    def write(self):
        """The arguments that name the files."""
        arguments = []
        for name, columns in self.columns.items():
            path = self.folder / f"{name}.ndjson"
            lines = ({column: row.get(column) for column in columns} for row in self.rows[name])
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            arguments += ["--table", f"{name}={path}"]
        return arguments


def value(found):
    text, other = found
    if not other:
        return text.replace("''", "'")
    return None if other.upper() == "NULL" else json.loads(other)


def shown(kind, value):
    """A value in the format of SQLite's files."""
    if value is None:
        return "NULL"
    if kind == "I":
        return str(int(float(value))) if not isinstance(value, str) else "0"
    if kind == "R":
        return f"{float(value):.3f}"
    return str(value) or "(empty)"


def answered(program, tables, kinds, sort, query):
    """The values, or the reason why there are none."""
    asked = subprocess.run(
        [program, "--format", "json", *tables, query], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        return None, asked.stderr.strip()
    lines = [json.loads(line) for line in asked.stdout.splitlines()]
    rows = [[shown(k, v) for k, v in zip(kinds, line.values())] for line in lines]
    if sort == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    return (sorted(values) if sort == "valuesort" else values), None


def is_equal(values, expected):
    if len(expected) == 1 and (match := HASHED.match(expected[0])):
        digest = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
        return len(values) == int(match[1]) and digest == match[2]
    return values == expected


def asked(program, tables, head, body):
    _, kinds, *sort = head.split()
    cut = body.index("----") if "----" in body else len(body)
    query, expected = "\n".join(body[:cut]), body[cut + 1 :]
    values, reason = answered(program, tables, kinds, sort[0] if sort else "nosort", query)
    if values is None:
        return "refused", reason, query
    if is_equal(values, expected):
        return "equal", "", query
    return "differs", f"{values[:8]} where {expected[:8]} is expected", query


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="quarrier-sql")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--shown", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    for path in arguments.files:
        with tempfile.TemporaryDirectory() as folder:
            tables, queries = Tables(pathlib.Path(folder)), []
            for head, *body in records(path):
                if head.startswith("statement"):
                    tables.change("\n".join(body))
                elif head.startswith("query"):
                    queries.append((head, body))
            named = tables.write()
            with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
                chosen = queries[:: arguments.every]
                heads, bodies = [head for head, _ in chosen], [body for _, body in chosen]
                ask = functools.partial(asked, arguments.program, named)
                results = list(pool.map(ask, heads, bodies))
        counts = collections.Counter(result for result, _, _ in results)
        print(f"{path.name}: {dict(counts)}", flush=True)
        for wanted in ["differs", "refused"]:
            reasons = collections.Counter(why for result, why, _ in results if result == wanted)
            for reason, count in reasons.most_common(arguments.shown):
                query = next(query for _, why, query in results if why == reason)
                print(f"  {wanted} {count}: {reason}\n    {query}", flush=True)


if __name__ == "__main__":
    main()
