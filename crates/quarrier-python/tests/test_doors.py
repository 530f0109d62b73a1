"""The table of sources and requests that every interface must answer alike, run on three of them.

The command line, SQL and Python must answer as `crates/quarrier/tests/doors.json` says. That
crate's own tests run the table on the facade below them.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from range_server import RangeServer

import quarrier

REPOSITORY = Path(__file__).parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"
TABLE = json.loads((REPOSITORY / "crates/quarrier/tests/doors.json").read_text())
FINDING = ("source", "offset", "length", "pattern")
FILE = ("source", "type", "offset", "length", "status")
FLAGS = {
    "ignore_case": "-i",
    "utf16": "--utf16",
    "utf16be": "--utf16be",
    "xor": "--xor",
    "base64": "--base64",
    "direct": "--direct",
}
VALUES = {
    "aligned": "--aligned",
    "regex_max_length": "--regex-max-length",
    "encodings": "--encodings",
    "workers": "--workers",
    "readers": "--readers",
    "buffers": "--buffers",
    "buffer_size": "--buffer-size",
}

Case = dict[str, Any]
Row = list[Any]


def bytes_of(pieces: list[dict[str, Any]]) -> bytes:
    def piece(one: dict[str, Any]) -> bytes:
        match one:
            case {"hex": str(digits)}:
                return bytes.fromhex(digits)
            case {"zeros": int(count)}:
                return bytes(count)
            case {"repeat": str(text), "count": int(count)}:
                return text.encode() * count
            case _:
                return str(one["text"]).encode()

    return b"".join(map(piece, pieces))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, pieces in TABLE["files"].items():
        (tmp_path / name).write_bytes(bytes_of(pieces))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(options: dict[str, Any]) -> list[str]:
    """The options of a request as arguments of the command line."""
    flags = [flag for name, flag in FLAGS.items() if options.get(name)]
    values = [
        word for name, flag in VALUES.items() if name in options for word in (flag, options[name])
    ]
    bounds = options.get("range")
    return [*flags, *map(str, values), *(["--range", "{}..{}".format(*bounds)] if bounds else [])]


def run(program: str, *arguments: str, notice: str | None = None) -> list[dict[str, Any]] | str:
    """The rows, or the one line of an error message. Checks that the notice is printed once."""
    done = subprocess.run([TARGET / program, *arguments], capture_output=True, text=True)
    if done.returncode == 2:
        assert done.stdout == "" and done.stderr.count("\n") == 1, done
        return done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if program == "quarrier":
        assert done.returncode == (0 if rows else 1), done.stderr
    if notice is not None:
        assert done.stderr.count(f"quarrier: {notice}") == 1, done.stderr
        assert done.returncode != 3, done.stderr
    return rows


def search_on_the_command_line(case: Case) -> list[dict[str, Any]] | str:
    Path("patterns.txt").write_text("\n".join(case["patterns"]))
    options = words(case.get("options", {}))
    return run(
        *("quarrier", "search", "--format", "json", "-f", "patterns.txt", *options),
        case["source"],
        notice=case.get("notice"),
    )


def search_in_sql(case: Case) -> list[dict[str, Any]] | str:
    Path("patterns.txt").write_text("\n".join(case["patterns"]))
    options = " ".join(f'"{word}"' for word in words(case.get("options", {})))
    call = f"search('{case['source']}', 'patterns.txt', '{options}')"
    return run(
        "quarrier-sql", "--format", "json", f"SELECT * FROM {call}", notice=case.get("notice")
    )


def pattern_of(line: str) -> Any:
    for prefix, make in (
        ("re:", lambda text: quarrier.regex(text.encode())),
        ("hex:", quarrier.hex),
    ):
        if line.startswith(prefix):
            return make(line.removeprefix(prefix))
    return line


def search_in_python(case: Case) -> list[dict[str, Any]]:
    options = dict(case.get("options", {}))
    if "range" in options:
        options["range"] = tuple(options["range"])
    patterns = [pattern_of(line) for line in case["patterns"]]
    return quarrier.search(case["source"], patterns, **options).to_pylist()


def carve_on_the_command_line(case: Case) -> list[dict[str, Any]] | str:
    arguments = ("carve", "--dry-run", "--format", "json", case["source"])
    return run("quarrier", *arguments, notice=case.get("notice"))


def carve_in_sql(case: Case) -> list[dict[str, Any]] | str:
    statement = f"SELECT * FROM carve('{case['source']}')"
    return run("quarrier-sql", "--format", "json", statement, notice=case.get("notice"))


def carve_in_python(case: Case) -> list[dict[str, Any]]:
    return quarrier.carve(case["source"], dry_run=True).to_pylist()


def check(case: Case, columns: tuple[str, ...], answered: list[dict[str, Any]] | str) -> None:
    if isinstance(answered, str):
        assert case.get("error", "no error") in answered
        assert case.get("never", "\0") not in answered
    else:
        assert [[row[name] for name in columns] for row in answered] == case["rows"]


def check_python(case: Case, columns: tuple[str, ...], ask: Any) -> None:
    if "error" not in case:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check(case, columns, ask(case))
        notices = [
            str(one.message) for one in caught if issubclass(one.category, quarrier.SourceWarning)
        ]
        assert [case.get("notice", "\0") in notice for notice in notices] == (
            [True] if "notice" in case else []
        )
        return
    with pytest.raises(Exception) as raised:
        ask(case)
    names = [one.__name__ for one in type(raised.value).__mro__]
    assert case["exception"] in names
    assert case["error"] in str(raised.value) and case.get("never", "\0") not in str(raised.value)


def named(case: Case) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", TABLE["search"], ids=named)
def test_search_answers_alike_through_every_door(case: Case) -> None:
    check(case, FINDING, search_on_the_command_line(case))
    check(case, FINDING, search_in_sql(case))
    check_python(case, FINDING, search_in_python)


@pytest.mark.parametrize("case", TABLE["carve"], ids=named)
def test_carve_answers_alike_through_every_door(case: Case) -> None:
    check(case, FILE, carve_on_the_command_line(case))
    check(case, FILE, carve_in_sql(case))
    check_python(case, FILE, carve_in_python)


@contextmanager
def streamed(case: Case) -> Iterator[Case]:
    """The case; if it has `stream`, its source is a pipe that delivers the bytes once."""
    if not case.get("stream"):
        yield case
        return
    os.mkfifo("pipe")
    content = Path(case["source"]).read_bytes()
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(content))
    writer.start()
    try:
        yield {**case, "source": "pipe"}
    finally:
        writer.join(60)
        os.unlink("pipe")


def filter_on_the_command_line(case: Case) -> list[dict[str, Any]] | str:
    columns = ",".join(case["columns"])
    options = ["--input-format", case["format"]] if "format" in case else []
    return run(
        "quarrier",
        *("filter", "--quiet", "--format", "json", "--columns", columns),
        *(*options, case["condition"], case["source"]),
    )


def table_in_sql(case: Case) -> list[dict[str, Any]] | str:
    source = f"'{case['source']}'"
    if "format" in case:
        source = f"messages({source}, '{case['format']}')"
    chosen = ", ".join(case.get("columns", "*"))
    where = f" WHERE {case['condition']}" if "condition" in case else ""
    order = " ORDER BY filename" if "*" in case["source"] and "several" in case else ""
    return run("quarrier-sql", "--format", "json", f"SELECT {chosen} FROM {source}{where}{order}")


def table_in_python(case: Case) -> list[dict[str, Any]]:
    table = quarrier.Table.from_messages(case["source"], format=case.get("format", "auto"))
    assert table.rejected == case.get("rejected", table.rejected)
    if "condition" in case:
        table = table.query(f"SELECT {', '.join(case['columns'])} FROM m WHERE {case['condition']}")
    return table.to_pylist()


@pytest.mark.parametrize("case", TABLE["filter"], ids=named)
def test_filter_answers_alike_through_every_door(case: Case) -> None:
    columns = tuple(case["columns"])
    with streamed(case) as asked:
        check(case, columns, filter_on_the_command_line(asked))
    # Without columns there is nothing to select, and a single column would be a table.
    if case.get("alone"):
        return
    with streamed(case) as asked:
        check(case, columns, table_in_sql(asked))
    with streamed(case) as asked:
        check_python(asked, columns, table_in_python)


@pytest.mark.parametrize("case", TABLE["tables"], ids=named)
def test_tables_are_alike_through_every_door(case: Case) -> None:
    columns = ("id", "side", "qty")
    with streamed(case) as asked:
        check(case, columns, table_in_sql(asked))
    with streamed(case) as asked:
        check_python(asked, columns, table_in_python)


def gauge_in_python(case: Case) -> list[dict[str, Any]]:
    readings = quarrier.gauge(*case["areas"], quick=True, path=case.get("folder", "."))
    return [reading._asdict() for reading in readings]


@pytest.mark.parametrize("case", TABLE["gauge"], ids=named)
def test_gauge_refuses_alike_through_every_door(case: Case) -> None:
    folder = case.get("folder", ".")
    check(case, (), run("quarrier", "gauge", "--quick", *case["areas"], "--path", folder))
    call = f"gauge('{case['areas'][0]}', '{folder}')"
    check(case, (), run("quarrier-sql", "--format", "json", f"SELECT * FROM {call}"))
    check_python(case, (), gauge_in_python)


def test_a_remote_source_is_a_source_through_every_door(folder: Path) -> None:
    data = (folder / "disk.img").read_bytes()
    with RangeServer({"disk.img": data}) as server:
        url = server.url("disk.img")
        case = {
            "source": url,
            "patterns": ["re:a+b"],
            "rows": [[url, 926, 3, "a+b"], [url, 930, 4, "a+b"]],
        }
        check(case, FINDING, search_on_the_command_line(case))
        check(case, FINDING, search_in_sql(case))
        check_python(case, FINDING, search_in_python)


def test_every_door_ignores_a_proxy_that_a_stranger_may_have_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("http_proxy", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    test_a_remote_source_is_a_source_through_every_door(folder)
