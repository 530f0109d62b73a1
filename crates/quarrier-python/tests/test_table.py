"""quarrier.Table: from messages and Arrow, rows, Arrow out."""

from __future__ import annotations

import datetime
import decimal
import gzip
import math
import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quarrier

LINES = b'{"side":"B","qty":7,"price":1.25}\n{"side":"S","qty":8,"leg":[{"x":true}]}\n{broken\n'
ROWS = [
    {"side": "B", "qty": 7, "price": decimal.Decimal("1.25"), "leg[0].x": None},
    {"side": "S", "qty": 8, "price": None, "leg[0].x": True},
]


def table(columns: dict[str, Any]) -> quarrier.Table:
    return quarrier.Table.from_arrow(pa.table(columns))


def test_messages_become_rows_and_rejects_are_listed(tmp_path: pathlib.Path) -> None:
    path, packed = tmp_path / "orders.ndjson", tmp_path / "orders.ndjson.gz"
    path.write_bytes(LINES)
    packed.write_bytes(gzip.compress(LINES))
    for source in (path, str(path), packed, LINES, memoryview(LINES)):
        loaded = quarrier.Table.from_messages(source)
        assert loaded.to_pylist() == ROWS
        assert len(loaded) == 2
        assert loaded.rejected == 1
        (reject,) = loaded.rejects
        assert (reject["line"], reject["offset"]) == (3, LINES.index(b"{br"))
        assert reject["bytes"].startswith(b"{broken")
    assert loaded.schema == {
        "side": "VARCHAR",
        "qty": "BIGINT",
        "price": "DECIMAL(19,2)",
        "leg[0].x": "BOOLEAN",
    }


def test_an_invalid_source_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        quarrier.Table.from_messages(tmp_path / "none")
    with pytest.raises(TypeError, match="a source is a path or a bytes-like object"):
        quarrier.Table.from_messages(7)  # type: ignore[arg-type]
    with pytest.raises(quarrier.PlanError, match="no format 'yaml'"):
        quarrier.Table.from_messages(b"", format="yaml")  # type: ignore[arg-type]
    with pytest.raises(quarrier.PlanError, match="'many' is not a count"):
        quarrier.Table.from_messages(b"", workers="many")  # type: ignore[arg-type]
    damaged = gzip.compress(LINES)[:-9]
    with pytest.raises(quarrier.CompressedError):
        quarrier.Table.from_messages(damaged)


def test_every_type_survives_arrow() -> None:
    day = datetime.date(2024, 2, 29)
    time = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    columns = {
        "truth": pa.array([True, None]),
        "number": pa.array([2**63 - 1, None]),
        "exact": pa.array([decimal.Decimal("-1.50"), None], pa.decimal128(9, 2)),
        "float": pa.array([0.1, None]),
        "day": pa.array([day, None]),
        "time": pa.array([time, None], pa.timestamp("us")),
        "text": pa.array(["é", None]),
        "coded": pa.array(["x", None]).dictionary_encode(),
        "nothing": pa.nulls(2),
    }
    held = table(columns)
    expected = pa.table(columns)
    assert held.to_pylist() == expected.to_pylist()
    shown = pa.table(held)
    assert shown.column("time").type == pa.timestamp("ns")
    assert shown.column("text").type == pa.dictionary(pa.int32(), pa.string())
    assert shown.schema == pa.schema(held)
    for name in columns:
        if name != "time":
            assert shown.column(name).to_pylist() == expected.column(name).to_pylist()


def test_numbers_beyond_64_bits_stay_exact() -> None:
    most = decimal.Decimal("9" * 30 + "." + "9" * 8)
    columns = {
        "unsigned": pa.array([2**64 - 1, 2**64 - 2, None], pa.uint64()),
        "exact": pa.array([most, most.copy_negate(), None], pa.decimal128(38, 8)),
    }
    held = table(columns)
    assert held.schema == {"unsigned": "DECIMAL(20,0)", "exact": "DECIMAL(38,8)"}
    assert held.rounded == {}
    found = held.query("SELECT exact FROM m WHERE unsigned = 18446744073709551614").to_pylist()
    assert found == [{"exact": most.copy_negate()}]
    shown = pa.table(held)
    assert shown.column("unsigned").type == pa.decimal128(20, 0)
    assert shown.column("unsigned").to_pylist() == [2**64 - 1, 2**64 - 2, None]
    assert shown.column("exact").to_pylist() == [most, most.copy_negate(), None]


def test_values_that_lose_digits_are_counted() -> None:
    lines = b'{"a":9007199254740993,"b":1}\n{"a":1e0,"b":' + b"9" * 39 + b"}\n"
    assert quarrier.Table.from_messages(lines).rounded == {"a": 1, "b": 1}


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(),
            st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        )
    )
)
def test_any_rows_survive_arrow(rows: list[tuple[int | None, float | None, str | None]]) -> None:
    numbers, floats, strings = ([row[at] for row in rows] for at in range(3))
    columns = {
        "number": pa.array(numbers, pa.int64()),
        "float": pa.array(floats, pa.float64()),
        "text": pa.array(strings, pa.string()),
    }
    for held in (table(columns), quarrier.Table.from_arrow(pa.table(table(columns)))):
        shown = pa.table(held)
        assert shown.column("number").to_pylist() == numbers
        assert shown.column("text").to_pylist() == strings
        for is_, was in zip(shown.column("float").to_pylist(), floats, strict=True):
            assert is_ == was or (math.isnan(is_) and math.isnan(was))


def test_one_record_batch_is_a_table_too() -> None:
    batch = pa.record_batch({"a": [1, 2]})

    class OnlyArray:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return batch.__arrow_c_array__(requested_schema)

    assert quarrier.Table.from_arrow(OnlyArray()).to_pylist() == [{"a": 1}, {"a": 2}]
    with pytest.raises(TypeError, match="not of one array"):
        array = pa.array([1])

        class OnlyOne:
            def __arrow_c_array__(self, requested_schema: object = None) -> object:
                return array.__arrow_c_array__(requested_schema)

        quarrier.Table.from_arrow(OnlyOne())


def test_objects_without_arrow_data_are_refused() -> None:
    with pytest.raises(TypeError, match="'list' does not export Arrow data"):
        quarrier.Table.from_arrow([1])
    with pytest.raises(quarrier.ArrowColumnError, match="leave it out, or cast it") as raised:
        table({"good": [1], "bad": [[1]]})
    assert raised.value.column == "bad"

    def broken() -> Any:
        yield pa.record_batch({"a": [1]})
        raise RuntimeError("gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), broken())
    with pytest.raises(quarrier.QuarrierError, match="gone"):
        quarrier.Table.from_arrow(reader)


def test_a_notice_of_the_source_is_a_warning(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "packed.csv"
    path.write_bytes(b"LZIP\x01,a\n1,2\n")
    with pytest.warns(quarrier.SourceWarning, match=r"packed\.csv: is compressed by lzip"):
        assert len(quarrier.Table.from_messages(path)) == 1


def test_columns_are_packed_narrow() -> None:
    rows = 200_000
    numbers = np.arange(rows)
    held = table(
        {
            "id": numbers,
            "price": np.round(numbers % 60_000 / 100, 2),
            "status": np.array(["NEW", "FILLED"])[numbers % 2],
        }
    )
    # A row takes two bytes, two bytes and a bit.
    assert held.nbytes < 4.3 * rows
    assert repr(held) == "<quarrier.Table: 200000 rows, 3 columns>"
    shown = pa.table(held)
    assert shown.column("price").to_numpy().tolist() == np.round(numbers % 60_000 / 100, 2).tolist()


def test_arrow_floats_are_shared_and_outlive_the_table() -> None:
    floats = np.random.default_rng(7).random(1_000)
    shown = pa.table(table({"a": floats}))
    assert shown.column("a").to_pylist() == floats.tolist()


ORDERS = {
    "id": [1, 2, 3, 4],
    "symbol": ["A", "B", None, "A"],
    "price": [1.5, 2.5, 3.5, None],
    "qty": [10, 20, 30, 40],
}


def test_a_query_gives_a_table_of_the_requested_rows_and_columns() -> None:
    held = table(ORDERS)
    found = held.query(
        "SELECT qty, symbol FROM m WHERE price > 2 OR symbol = 'A' ORDER BY qty DESC"
    )
    assert found.to_pylist() == [
        {"qty": 40, "symbol": "A"},
        {"qty": 30, "symbol": None},
        {"qty": 20, "symbol": "B"},
        {"qty": 10, "symbol": "A"},
    ]
    assert pa.table(found).column_names == ["qty", "symbol"]
    assert held.query("SELECT * FROM m WHERE qty > 40").to_pylist() == []
    assert held.query("SELECT * FROM m LIMIT 1 OFFSET 1").to_pylist() == [
        {"id": 2, "symbol": "B", "price": 2.5, "qty": 20}
    ]


def test_many_queries_share_a_pass_and_have_separate_answers() -> None:
    held = table(ORDERS)
    counts = held.query_many([f"SELECT COUNT(*) FROM m WHERE qty > {n}" for n in range(0, 50, 10)])
    assert [next(iter(count.to_pylist()[0].values())) for count in counts] == [4, 3, 2, 1, 0]
    assert held.query_many([]) == []
    explained = held.explain(["SELECT COUNT(*) FROM m WHERE qty > 10"])
    assert "bytes of columns touched" in explained
    assert "qty" in explained


def test_calculated_columns_have_their_names() -> None:
    found = table(ORDERS).query("SELECT price * qty AS worth, symbol || '!' AS s FROM m")
    assert found.to_pylist() == [
        {"worth": 15.0, "s": "A!"},
        {"worth": 50.0, "s": "B!"},
        {"worth": 105.0, "s": None},
        {"worth": None, "s": "A!"},
    ]
    assert found.query("SELECT s FROM m WHERE worth = 50").to_pylist() == [{"s": "B!"}]


def test_invalid_statements_have_a_reason_and_a_position() -> None:
    held = table(ORDERS)
    with pytest.raises(quarrier.QueryError) as raised:
        held.query("SELECT id FROM m\nWHERE quantity > 1")
    assert (raised.value.line, raised.value.column) == (2, 7)
    with pytest.raises(quarrier.RowError) as failed:
        held.query("SELECT id FROM m WHERE 1 / (qty - 30) > 0")
    assert failed.value.row == 2
    with pytest.raises(quarrier.RowError):
        held.query("SELECT 1 / (qty - 30) AS x FROM m")
