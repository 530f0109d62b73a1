"""quarrier.search with rules: rows, scopes, options, errors."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import quarrier

RULES = """
rule invoice : money paper {
    strings: $a = "invoice" nocase $w = "total" wide
    condition: any of them
}
rule small { condition: filesize < 100 }
"""
TEXT = b"an Invoice, t\0o\0t\0a\0l\0"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "r.yar"
    path.write_text(RULES)
    return path


def row(source: str, rule: str, tags: list[str], found: tuple[str, int, bytes] | None) -> Any:
    string, offset, match = found or (None, None, None)
    return {
        "source": source,
        "scope": "source",
        "rule": rule,
        "tags": tags,
        "string": string,
        "offset": offset,
        "length": match and len(match),
        "match": match,
    }


def expected(source: str) -> list[Any]:
    tags = ["money", "paper"]
    return [
        row(source, "invoice", tags, ("$a", 3, b"Invoice")),
        row(source, "invoice", tags, ("$w", 12, b"t\0o\0t\0a\0l\0")),
        row(source, "small", [], None),
    ]


def test_rows_are_those_of_the_command_line_from_bytes_and_paths(
    rules: Path, tmp_path: Path
) -> None:
    found = quarrier.search(TEXT, rules=[rules])
    assert found.to_pylist() == list(found) == expected("<bytes>")
    assert (len(found), found.notices, found.unreadable) == (3, [], [])
    path = tmp_path / "note"
    path.write_bytes(TEXT)
    assert quarrier.search(path, rules=str(rules)).to_pylist() == expected(str(path))
    with quarrier.open(path) as file:
        assert quarrier.search(file, rules=rules).to_pylist() == expected(str(path))
    assert found[0] == found[-3] == expected("<bytes>")[0]
    assert found[1:] == expected("<bytes>")[1:]
    assert found[::-2] == expected("<bytes>")[::-2]
    with pytest.raises(TypeError):
        found["rule"]  # type: ignore[call-overload]
    with pytest.raises(IndexError, match="row 3 of 3"):
        found[3]
    assert "3 rows" in repr(found)
    assert "<th>scope</th>" in found._repr_html_()


def test_arrow_rows_join_tags_by_spaces(rules: Path) -> None:
    found = quarrier.search(TEXT, rules=rules)
    table = pa.table(found)
    as_words = [{**one, "tags": " ".join(one["tags"])} for one in expected("<bytes>")]
    assert table.to_pylist() == as_words
    assert table.schema.field("match").type == pa.binary()
    assert quarrier.search(b"x" * 200, rules=rules).to_arrow().num_rows == 0


def test_members_are_scopes_where_requested(rules: Path, tmp_path: Path) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/packed.txt", b"an invoice " * 100)
        archive.writestr("stored.txt", b"an invoice", zipfile.ZIP_STORED)
    data = memory.getvalue()
    scopes = {
        (one["scope"], one["offset"])
        for one in quarrier.search(data, rules=rules, scopes="members")
        if one["rule"] == "invoice"
    }
    stored = data.index(b"an invoice") + 3
    assert scopes == {("source!a/packed.txt", None), ("source!stored.txt", stored)}
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tape:
        for name in ["one", "two"]:
            entry = tarfile.TarInfo(name)
            entry.size = len(TEXT)
            tape.addfile(entry, io.BytesIO(TEXT))
    found = quarrier.search(path, rules=rules, scopes="members")
    assert [one["scope"] for one in found] == ["source!one"] * 3 + ["source!two"] * 3


def test_max_count_ends_the_rows(rules: Path) -> None:
    assert quarrier.search(TEXT, rules=rules, max_count=1).to_pylist() == expected("<bytes>")[:1]
    assert len(quarrier.search(TEXT, rules=rules, max_count=0)) == 0


def test_skipped_scopes_are_warnings(rules: Path) -> None:
    data = b"an invoice".rjust(5000)
    with pytest.warns(UserWarning, match="rules are not evaluated over all of the source"):
        found = quarrier.search(data, rules=rules, rules_max_size="1K")
    assert (len(found), len(found.notices)) == (0, 1)


def test_a_notice_of_the_source_is_a_warning(rules: Path, tmp_path: Path) -> None:
    path = tmp_path / "packed.lz"
    path.write_bytes(b"LZIP\x01an invoice")
    with pytest.warns(quarrier.SourceWarning, match="is compressed by lzip") as caught:
        found = quarrier.search(path, rules=rules)
    assert [str(one.message) for one in caught] == found.notices


def test_invalid_rule_searches_are_refused(rules: Path, tmp_path: Path) -> None:
    search: Any = quarrier.search
    for options in [{"patterns": "x"}, {"utf16": True}, {"range": (0, 4)}, {"features": "email"}]:
        with pytest.raises(quarrier.PlanError, match="cannot be combined with rules"):
            search(TEXT, rules=rules, **options)
    with pytest.raises(quarrier.PlanError, match="no scope 'slack'"):
        search(TEXT, rules=rules, scopes="slack")
    with pytest.raises(quarrier.PlanError, match="rules_timeout"):
        search(TEXT, rules=rules, rules_timeout=-1)
    with pytest.raises(TypeError, match="none is given"):
        search(TEXT, rules=[])
    with pytest.raises(TypeError, match="needs patterns, features or rules"):
        search(TEXT)
    unit = quarrier.units([rules], size="1M")[0]
    with pytest.raises(quarrier.PlanError, match="a whole source"):
        search(unit, rules=rules)
    wrong = tmp_path / "wrong.yar"
    wrong.write_text("rule a {\n  condition: $b\n}")
    with pytest.raises(quarrier.QuarrierError, match="line 2, column 14: unknown variable"):
        search(TEXT, rules=wrong)
    with pytest.raises(FileNotFoundError):
        search(TEXT, rules=tmp_path / "none.yar")
