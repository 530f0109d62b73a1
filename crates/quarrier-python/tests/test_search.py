"""quarrier.search: sources, patterns, options, rows, errors."""

from __future__ import annotations

import array
import mmap
import os
import pathlib
import pickle
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import quarrier

TEXT = b"one two three two one"


def places(found: quarrier.Findings) -> list[tuple[int, int, str]]:
    return [(row.offset, row.length, row.pattern) for row in found]


def test_every_occurrence_is_found_in_order_of_offset_then_pattern() -> None:
    found = quarrier.search(b"aaaa", ["aa", "a"])
    assert places(found) == [
        (0, 2, "aa"), (0, 1, "a"), (1, 2, "aa"), (1, 1, "a"), (2, 2, "aa"), (2, 1, "a"), (3, 1, "a")
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1")])
def test_any_exporter_of_bytes_is_a_source(kind) -> None:
    found = quarrier.search(kind(TEXT), "two")
    assert places(found) == [(4, 3, "two"), (14, 3, "two")]


def test_paths_and_maps_are_sources(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "disk.img"
    path.write_bytes(TEXT)
    for source in (path, str(path)):
        found = quarrier.search(source, [b"two"])
        assert places(found) == [(4, 3, "two"), (14, 3, "two")]
        assert found[0].source == str(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert len(quarrier.search(mapped, "two")) == 2


def test_an_empty_source_has_no_findings() -> None:
    assert len(quarrier.search(b"", "x")) == 0


def test_patterns_are_literals_hex_and_regexes_with_names() -> None:
    patterns = {
        "word": "three",
        "bytes": b"\x00\xff",
        "hex": quarrier.hex("74 ?? 6F"),
        "regex": quarrier.regex(rb"t[a-z]o\b"),
        "high": quarrier.regex(b"\xff+"),
    }
    found = quarrier.search(TEXT + b"\x00\xff\xff", patterns)
    assert [(row.name, row.offset, row.length) for row in found] == [
        ("hex", 4, 3),
        ("regex", 4, 3),
        ("word", 8, 5),
        ("hex", 14, 3),
        ("regex", 14, 3),
        ("bytes", 21, 2),
        ("high", 22, 2),
    ]
    assert {row.name: row.pattern for row in found}["bytes"] == r"\x00\xff"


def test_options_are_those_of_the_command_line() -> None:
    assert len(quarrier.search(b"TWO two", "two", ignore_case=True)) == 2
    assert places(quarrier.search(b"..t\0w\0o\0", "two", utf16=True)) == [(2, 6, "two")]
    assert places(quarrier.search(TEXT, "two", max_count=1)) == [(4, 3, "two")]
    assert places(quarrier.search(TEXT, "two", range=(5, 100))) == [(14, 3, "two")]
    assert places(quarrier.search(TEXT, "two", aligned=7)) == [(14, 3, "two")]
    assert len(quarrier.search(TEXT * 99, "two", workers=2, buffers=3, buffer_size=65536)) == 198
    assert quarrier.search(TEXT, "two", engine="naive").engine == "naive"


def test_devices_have_the_findings_of_the_cpu() -> None:
    def search(device: str) -> quarrier.Findings:
        patterns = ["two", quarrier.hex("?0 74"), quarrier.regex(rb"t[a-z]o")]
        return quarrier.search(TEXT * 9999, patterns, device=device)

    expected = search("cpu").to_pylist()
    for device in ("gpu", "all"):
        try:
            found = search(device)
        except quarrier.DeviceError as error:
            assert "no GPU device" in str(error)
        else:
            assert found.to_pylist() == expected
            assert found.engine.startswith("gpu-gram")


def test_rows_are_named_tuples_dicts_and_arrow_columns() -> None:
    found = quarrier.search(TEXT, {"n": "two"})
    expected = {
        "source": "<bytes>",
        "offset": 4,
        "length": 3,
        "pattern": "two",
        "name": "n",
        "match": b"two",
    }
    assert found[0]._asdict() == expected
    assert found[-1].offset == 14
    assert found.to_pylist()[0] == expected
    table = pa.table(found)
    assert table.to_pylist() == found.to_pylist()
    assert table.column_names == ["source", "offset", "length", "pattern", "name", "match"]
    assert pa.table(quarrier.search(TEXT, "x")).num_rows == 0
    with pytest.raises(IndexError):
        found[2]


def test_a_match_is_the_bytes_found() -> None:
    text = b"key=\xc3\xa9\xff; A\0b\0"
    found = quarrier.search(
        text, [quarrier.regex(b"key=[^;]*"), "ab"], ignore_case=True, utf16=True
    )
    assert [row.match for row in found] == [b"key=\xc3\xa9\xff", b"A\0b\0"]
    assert pa.table(found).column("match").to_pylist() == [row.match for row in found]
    long = quarrier.search(b"a" * 9000, quarrier.regex(b"a+"))
    assert (long[0].length, len(long[0].match)) == (9000, 4096)


def test_literals_have_forms_and_words() -> None:
    text = "Счёт".encode("cp1251") + b" AB ABC"
    assert places(quarrier.search(text, "счёт", encodings="cp1251", ignore_case=True))[0][0] == 0
    assert len(quarrier.search(text, "AB", word=True)) == 1
    with pytest.raises(quarrier.QuarrierError, match="no encoding 'nonsense'"):
        quarrier.search(text, "a", encodings="nonsense")


def test_features_are_validated() -> None:
    found = quarrier.search(b"4111111111111111 4111111111111112", [], features="card")
    assert [(row.name, row.match) for row in found] == [("card", b"4111111111111111")]


def test_a_folder_is_all_files_below_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/.hidden", "a"):
        (tmp_path / name).write_bytes(b"a needle")
    found = quarrier.search(tmp_path, "needle")
    assert [row.source for row in found] == [str(tmp_path / "a"), str(tmp_path / "b/.hidden")]


def test_many_findings_are_several_batches() -> None:
    found = quarrier.search(bytes(200_000), b"\0")
    table = pa.table(found)
    assert table.num_rows == len(found) == 200_000
    assert table["offset"].to_pylist() == list(range(200_000))
    assert len(table["offset"].chunks) > 1
    assert sum(1 for _ in found) == 200_000


def test_invalid_sources_and_patterns_are_type_errors() -> None:
    for source, patterns in [(1, "x"), (None, "x"), (b"x", 5), (b"x", [5]), (b"x", {1: "x"})]:
        with pytest.raises(TypeError):
            quarrier.search(source, patterns)  # type: ignore[call-overload]


def test_each_refusal_has_its_class() -> None:
    cases = [
        (quarrier.PatternError, lambda: quarrier.hex("F")),
        (quarrier.PatternError, lambda: quarrier.search(b"x", quarrier.regex("("))),
        (quarrier.PatternError, lambda: quarrier.search(b"x", "")),
        (quarrier.PatternSetError, lambda: quarrier.search(b"x", [])),
        (quarrier.EngineError, lambda: quarrier.search(b"x", "x", engine="warp")),
        (quarrier.DeviceError, lambda: quarrier.search(b"x", "x", device="warp")),
        (quarrier.DeviceError, lambda: quarrier.search(b"x", "x", device="gpu:999")),
        (quarrier.PlanError, lambda: quarrier.search(b"x", "x", range=(5, 4))),
        (quarrier.PlanError, lambda: quarrier.search(b"x", "x", range=(5, 9))),
        (quarrier.PlanError, lambda: quarrier.search(b"x", "x", access="teleport")),
        (quarrier.PlanError, lambda: quarrier.search(b"x", "x", aligned=0)),
        (quarrier.PlanError, lambda: quarrier.search(b"x", "x", workers=5000)),
    ]
    for expected, refused in cases:
        with pytest.raises(expected) as caught:
            refused()
        assert isinstance(caught.value, quarrier.QuarrierError)
        assert isinstance(caught.value, ValueError)


def test_an_error_has_its_parts_and_can_be_pickled() -> None:
    with pytest.raises(quarrier.PatternError) as caught:
        quarrier.search(b"a" * 100, quarrier.regex("a+"), regex_max_length=10)
    assert caught.value.pattern == "a+"
    assert "raise regex_max_length" in caught.value.reason
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.pattern) == (str(caught.value), "a+")


def test_a_match_that_ends_far_beyond_the_bound_is_an_error() -> None:
    with pytest.raises(quarrier.PatternError) as caught:
        quarrier.search(b"--a" + b"x" * 70_000 + b"b", quarrier.regex("ax*b"))
    assert caught.value.pattern == "ax*b"
    assert "65536 bytes at offset 2;" in caught.value.reason


def test_refusals_of_the_system_are_os_errors(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        quarrier.search(tmp_path / "missing", "x")
    assert caught.value.filename == str(tmp_path / "missing")
    # A folder stands for the files in it.
    assert list(quarrier.search(tmp_path, "x")) == []


def test_a_buffer_in_pieces_is_refused() -> None:
    for pieces in (memoryview(TEXT)[::2], np.zeros((4, 4), "u1")[:, 1]):
        with pytest.raises(quarrier.BufferLayoutError, match="not contiguous"):
            quarrier.search(pieces, "x")


def test_a_buffer_is_released_after_the_search() -> None:
    data = bytearray(TEXT)
    quarrier.search(data, "two")
    data.extend(b"grows again")
    items = array.array("Q", [1, 2, 3])
    assert len(quarrier.search(items, b"\x02")) == 1
    items.append(4)


def test_paths_that_are_not_text_are_opened(tmp_path: pathlib.Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.img")
    pathlib.Path(path).write_bytes(TEXT)
    assert len(quarrier.search(path, "two")) == 2
    other = os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.img")
    pathlib.Path(other).write_bytes(TEXT)
    shown = [str(tmp_path / name) for name in (r"\xfe.img", r"\xff.img")]
    for place in (tmp_path, tmp_path / "*.img"):
        assert [row.source for row in quarrier.search(place, "two")] == sorted(shown * 2)
    # A name from a row finds its file.
    for name, given in zip(shown, (other, path), strict=True):
        for source in (name, given, pathlib.Path(given)):
            assert {row.source for row in quarrier.search(source, "two")} == {name}
    with pytest.raises(FileNotFoundError):
        quarrier.search(str(tmp_path / r"\xfd.img"), "two")


def test_a_glob_is_its_files_and_split_parts_are_one(tmp_path: pathlib.Path) -> None:
    for name, data in (("a.bin", b"..x"), ("b.bin", b"x..x"), ("i.001", b".x"), ("i.002", b"x.")):
        (tmp_path / name).write_bytes(data)
    found = quarrier.search(tmp_path / "?.bin", ["x"])
    places = [(pathlib.Path(finding.source).name, finding.offset) for finding in found]
    assert places == [("a.bin", 2), ("b.bin", 0), ("b.bin", 3)]
    assert [(row["source"], row["offset"]) for row in found.to_pylist()] == [
        (finding.source, finding.offset) for finding in found
    ]
    assert pa.table(found)["source"].to_pylist() == [finding.source for finding in found]
    assert found[-1] == list(found)[-1] and "2 sources" in repr(found)
    assert len(quarrier.search(tmp_path / "?.bin", ["x"], max_count=2)) == 2
    assert [finding.offset for finding in quarrier.search(tmp_path / "i.0*", ["xx"])] == [1]
    with quarrier.open(tmp_path / "i.0*") as image:
        assert image.read() == b".xx."
    with pytest.raises(quarrier.NotReadableError, match="names 2 sources"):
        quarrier.open(tmp_path / "?.bin")
    with pytest.raises(FileNotFoundError):
        quarrier.search(tmp_path / "none.*", ["x"])


def test_an_open_file_is_searched(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"..x")
    with quarrier.open(tmp_path / "a.bin") as file:
        assert [finding.offset for finding in quarrier.search(file, ["x"])] == [2]


def test_auto_0_and_none_let_quarrier_choose() -> None:
    options = ("workers", "readers", "buffers", "buffer_size")
    for auto in ("auto", 0, None):
        chosen: dict[str, Any] = dict.fromkeys(options, auto)
        assert len(quarrier.search(b"..x", ["x"], device="auto", **chosen)) == 1
    for option in options:
        with pytest.raises(quarrier.PlanError, match=r"'auto'|is not a size"):
            quarrier.search(b"x", ["x"], **{option: "many"})  # type: ignore[arg-type]
        with pytest.raises(OverflowError):
            quarrier.search(b"x", ["x"], **{option: -1})  # type: ignore[arg-type]


def test_sizes_are_numbers_or_strings_as_on_the_command_line() -> None:
    def offsets(**options: int | str) -> list[int]:
        return [found.offset for found in quarrier.search(TEXT * 99, "two", **options)]  # type: ignore[arg-type]

    assert offsets(aligned="0x10") == offsets(aligned=16) != offsets()
    assert offsets(buffer_size="64KiB", regex_max_length="1kB") == offsets()
    for option in ("aligned", "regex_max_length", "buffer_size"):
        with pytest.raises(quarrier.PlanError, match="'2 apples' is not a size"):
            offsets(**{option: "2 apples"})
        with pytest.raises(TypeError):
            quarrier.search(b"x", "x", **{option: 1.5})  # type: ignore[arg-type]


@pytest.mark.parametrize("direct", [False, True])
def test_all_parts_of_a_split_image_are_searched(direct: bool) -> None:
    # This folder's file system supports O_DIRECT, which that of /tmp may not.
    with tempfile.TemporaryDirectory(dir=pathlib.Path(__file__).parent) as folder:
        first = pathlib.Path(folder) / "image.001"
        for number in range(1, 4):
            part = b"-" * 10_000 + b"needle" + b"-" * 2_282
            first.with_suffix(f".{number:03}").write_bytes(part)
        found = quarrier.search(first, "needle", direct=direct)
        assert [row.offset for row in found] == [10_000, 22_288, 34_576]


def test_an_unknown_name_is_an_error_for_type_checkers_too() -> None:
    with pytest.raises(AttributeError, match="serach"):
        quarrier.serach  # type: ignore[attr-defined]  # noqa: B018
