"""Stores: after `append` returns, its messages are there when the folder is opened again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import quarrier


def test_appended_messages_can_be_queried_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "orders.ndjson"
    path.write_text('{"symbol": "WQY", "qty": 7}\n{"symbol": "VGI", "qty": 8}\nno message\n')
    with quarrier.Store(tmp_path / "d") as store:
        assert store.append("orders", path) == (2, 1)
        assert store.append("orders", path) == (0, 0)  # it continues where it was
        assert store.append("orders", [{"symbol": "AAA", "qty": 9}]) == (1, 0)
        assert store.append("orders", b'{"symbol":"BBB","qty":10}\n', compress=True) == (1, 0)
        assert store.append("fills", b"id,price\n1,2.5\n", format="csv") == (1, 0)
        assert store.tables == {"orders": 4, "fills": 1}
        answer = store.query("SELECT symbol FROM orders WHERE qty > 7 ORDER BY qty")
        assert answer.to_pylist() == [{"symbol": "VGI"}, {"symbol": "AAA"}, {"symbol": "BBB"}]
        assert len(store.table("fills")) == 1
        assert store.damages == []
    with pytest.raises(quarrier.QuarrierError, match="closed"):
        _ = store.tables
    again = quarrier.Store(tmp_path / "d", read_only=True)
    assert again.tables == {"orders": 4, "fills": 1}
    with pytest.raises(quarrier.QuarrierError, match="reading only"):
        again.append("orders", b"{}\n")
    with pytest.raises(quarrier.QuarrierError, match="has no table 'nothing'"):
        again.table("nothing")


def test_a_notice_of_the_source_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "packed.csv"
    path.write_bytes(b"LZIP\x01,a\n1,2\n")
    warns = pytest.warns(quarrier.SourceWarning, match=r"packed\.csv: is compressed by lzip")
    with quarrier.Store(tmp_path / "d") as store, warns:
        assert store.append("t", path) == (1, 0)


def test_the_error_of_a_second_writer_names_the_first(tmp_path: Path) -> None:
    code = "import sys, quarrier; s = quarrier.Store(sys.argv[1]); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(tmp_path / "d")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with pytest.raises(quarrier.QuarrierError, match=f"process {first.pid} writes"):
            quarrier.Store(tmp_path / "d")
        first.communicate(b"\n")
    quarrier.Store(tmp_path / "d").close()


def test_damage_is_a_warning_and_all_else_is_there(tmp_path: Path) -> None:
    with quarrier.Store(tmp_path / "d") as store:
        store.append("t", b'{"n":1}\n')
        store.append("t", b'{"n":2}\n')
    segment = tmp_path / "d" / "log" / "0000000000000001.qlog"
    damaged = bytearray(segment.read_bytes())
    damaged[damaged.index(b'{"n":1}') + 5] ^= 1
    segment.write_bytes(damaged)
    with pytest.warns(quarrier.UnreadableWarning, match="the messages of marks 1 to 1 are lost"):
        store = quarrier.Store(tmp_path / "d", read_only=True)
    assert len(store.damages) == 1
    assert store.table("t").to_pylist() == [{"n": 2}]
