"""quarrier.Table.from_messages: every format, detected by content and by name."""

from __future__ import annotations

import decimal
import gzip
import pathlib
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import quarrier

ROWS: list[dict[str, Any]] = [{"side": "B", "qty": 7}, {"side": "S", "qty": 8}]
CSV = b"side,qty\nB,7\nS,8\n"
XML = b"<log><m><side>B</side><qty>7</qty></m><m><side>S</side><qty>8</qty></m></log>"
JSON = b'{"side":"B","qty":7}\n{"side":"S","qty":8}\n'

DICTIONARY = b"""<fix><fields><field number="55" name="Ticker" type="STRING"/>
<field number="9001" name="Desk" type="INT"/></fields></fix>"""


def fix(body: str) -> bytes:
    """A message with its length and checksum added."""
    fields = body.replace("|", "\x01")
    message = f"8=FIX.4.4\x019={len(fields)}\x01{fields}"
    return f"{message}10={sum(message.encode()) % 256:03}\x01\n".encode()


FIX = fix("35=D|55=AAPL|44=1.25|9001=7|")


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def test_files_of_every_format_become_the_same_rows(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "orders"
    for content in (JSON, CSV, XML, gzip.compress(CSV)):
        path.write_bytes(content)
        assert quarrier.Table.from_messages(path).to_pylist() == ROWS, content
        assert quarrier.Table.from_messages(content).to_pylist() == ROWS, content
    parquet.write_table(arrow(ROWS), path)
    assert quarrier.Table.from_messages(path).to_pylist() == ROWS
    assert quarrier.Table.from_messages(path, format="parquet").to_pylist() == ROWS
    feather.write_feather(arrow(ROWS), str(path), compression="zstd")
    assert quarrier.Table.from_messages(path).to_pylist() == ROWS
    assert quarrier.Table.from_messages(path.read_bytes(), format="arrow").to_pylist() == ROWS
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow(ROWS).schema) as out:
        out.write_table(arrow(ROWS))
    assert quarrier.Table.from_messages(path).to_pylist() == ROWS


def test_a_named_format_overrides_the_content(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "orders.json"
    path.write_bytes(CSV)
    assert quarrier.Table.from_messages(path).rejected == 3
    assert quarrier.Table.from_messages(path, format="csv").to_pylist() == ROWS
    formats: list[tuple[Literal["json", "xml"], bytes]] = [("json", JSON), ("xml", XML)]
    for name, content in formats:
        assert quarrier.Table.from_messages(content, format=name).to_pylist() == ROWS


def test_fix_is_read_by_the_dictionary_given(tmp_path: pathlib.Path) -> None:
    dictionary, log = tmp_path / "desk.xml", tmp_path / "log"
    dictionary.write_bytes(DICTIONARY)
    log.write_bytes(FIX)
    builtin = quarrier.Table.from_messages(log)
    assert builtin.query("SELECT Symbol, Price FROM m").to_pylist() == [
        {"Symbol": "AAPL", "Price": decimal.Decimal("1.25")}
    ]
    formats: tuple[Literal["auto", "fix"], ...] = ("auto", "fix")
    for name in formats:
        own = quarrier.Table.from_messages(log, format=name, dictionary=str(dictionary))
        assert own.query("SELECT Ticker, Desk FROM m").to_pylist() == [
            {"Ticker": "AAPL", "Desk": 7}
        ]
    nvfix = b"BeginString=FIX.4.4\x01MsgType=D\x01Symbol=AAPL\x01\n"
    shown = quarrier.Table.from_messages(nvfix).query("SELECT Symbol FROM m")
    assert shown.to_pylist() == [{"Symbol": "AAPL"}]


def test_a_dictionary_that_cannot_be_used_says_why(tmp_path: pathlib.Path) -> None:
    dictionary = tmp_path / "desk.xml"
    with pytest.raises(FileNotFoundError):
        quarrier.Table.from_messages(FIX, dictionary=dictionary)
    dictionary.write_bytes(b"<fix><fields>")
    with pytest.raises(quarrier.DictionaryError, match=r"desk\.xml") as raised:
        quarrier.Table.from_messages(FIX, dictionary=dictionary)
    assert raised.value.path == dictionary
    with pytest.raises(quarrier.PlanError, match="for FIX and NVFIX; the messages are json"):
        quarrier.Table.from_messages(JSON, dictionary=dictionary)


def test_a_damaged_file_of_columns_is_an_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "orders.parquet"
    parquet.write_table(arrow(ROWS), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(quarrier.ColumnFileError, match=r"orders\.parquet: it is damaged") as raised:
        quarrier.Table.from_messages(path)
    assert raised.value.source == str(path)


def test_bytes_of_messages_are_kept_on_request() -> None:
    for content in (JSON, CSV.partition(b"\n")[2], FIX):
        head = b"side,qty\n" if content[1:2] == b"," else b""
        kept = quarrier.Table.from_messages(head + content, keep_bytes=True)
        rows = kept.query("SELECT _message FROM m").to_pylist()
        assert [row["_message"].encode() for row in rows] == content.splitlines()
    kept = quarrier.Table.from_messages(JSON, keep_bytes=True)
    found = kept.query("SELECT _message FROM m WHERE qty > 7").to_pylist()
    assert found == [{"_message": '{"side":"S","qty":8}'}]
    assert "_message" not in quarrier.Table.from_messages(JSON).schema
    arrays = pa.table(kept).column("_message").to_pylist()
    assert arrays == JSON.decode().splitlines()
    sink = pa.BufferOutputStream()
    parquet.write_table(arrow(ROWS), sink)
    with pytest.raises(quarrier.QuarrierError, match="no original messages"):
        quarrier.Table.from_messages(sink.getvalue(), keep_bytes=True)
