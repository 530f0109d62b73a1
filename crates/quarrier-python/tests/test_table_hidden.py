"""The place and the bytes of messages: `_line`, `_offset` and `_message`."""

from __future__ import annotations

import gzip
import pathlib

import pytest

import quarrier

JSON = b'{"a":1,"b":"x"}\nno message\n\n{"a":2}\n{"a":3,"b":"y"}\n'

STATEMENTS = [
    ("SELECT _line, _offset, _message FROM m WHERE a = 2", [(4, 28, '{"a":2}')]),
    ("SELECT * FROM m WHERE _line = 4", [(2, None)]),
    ("SELECT *, _line FROM m WHERE _offset > 30", [(3, "y", 5)]),
    ("SELECT a FROM m WHERE _message LIKE '%y%'", [(3,)]),
    ("SELECT count(*) FROM m WHERE _line > 1", [(2,)]),
    ("SELECT a FROM m ORDER BY _line DESC LIMIT 1", [(3,)]),
]


def rows(table: quarrier.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(("sql", "expected"), STATEMENTS)
def test_statements_name_the_place_of_messages(
    tmp_path: pathlib.Path, sql: str, expected: list[tuple[object, ...]]
) -> None:
    path = tmp_path / "orders.ndjson"
    path.write_bytes(JSON)
    packed = tmp_path / "orders.ndjson.gz"
    packed.write_bytes(gzip.compress(JSON))
    for source in (path, packed):
        table = quarrier.Table.from_messages(source)
        assert rows(table.query(sql)) == expected
        assert rows(table.query(sql)) == expected
        assert table.query_many([sql, sql])[1].to_pylist() == table.query(sql).to_pylist()
        assert table.columns == ["a", "b"]
        assert rows(quarrier.query(sql, m=table)) == expected
        assert rows(quarrier.query(sql, m=source)) == expected
    assert rows(quarrier.query(sql, m=JSON)) == expected


def test_a_removed_source_is_an_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "orders.ndjson"
    path.write_bytes(JSON)
    table = quarrier.Table.from_messages(path)
    path.write_bytes(JSON + JSON)
    with pytest.raises(quarrier.QuarrierError, match="was changed"):
        table.query("SELECT _line FROM m")
    assert rows(table.query("SELECT a FROM m WHERE b = '_line' OR a = 2")) == [(2,)]
    with pytest.raises(quarrier.QuarrierError, match=r"quarrier\.query"):
        quarrier.Table.from_messages(JSON).query("SELECT _line FROM m")


def test_kept_bytes_need_no_source(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "orders.ndjson"
    path.write_bytes(JSON)
    table = quarrier.Table.from_messages(path, keep_bytes=True)
    path.unlink()
    assert rows(table.query("SELECT _message FROM m WHERE a = 2")) == [('{"a":2}',)]
