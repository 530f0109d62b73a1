"""quarrier.carve: files, rows, resuming, errors."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import zipfile
import zlib

import pyarrow as pa
import pytest

import quarrier


def gif(words: bytes) -> bytes:
    """A GIF of 2 by 2 pixels with a comment."""
    comment = b"\x21\xfe" + bytes([len(words)]) + words + b"\0"
    head = b"GIF89a\x02\x00\x02\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff"
    return head + comment + b"\x2c\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x02\x84\x51\x00\x3b"


def image() -> bytes:
    broken = gif(b"c")[:-1] + b"\x77"
    return bytes(1000) + gif(b"a") + bytes(3000) + gif(b"b") + bytes(500) + broken + bytes(99)


def test_files_are_written_and_rows_are_those_of_the_report(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "disk.img"
    path.write_bytes(image())
    files = quarrier.carve(path, tmp_path / "out")
    assert (len(files), [file.status for file in files]) == (3, ["valid", "valid", "partial"])
    report = (tmp_path / "out" / "report.jsonl").read_text().splitlines()
    assert files.to_pylist() == [json.loads(line) for line in report]
    first = files[0]
    assert (first.source, first.type, first.offset) == (str(path), "gif", 1000)
    assert first.extents == [(1000, len(gif(b"a")))]
    assert (tmp_path / "out" / first.path).read_bytes() == gif(b"a")
    assert first.sha256 == hashlib.sha256(gif(b"a")).hexdigest()
    assert files[-1] == list(files)[2]
    assert repr(files) == f"<quarrier.CarvedFiles: 3 of {path}>"
    assert files.unreadable == []
    with pytest.raises(IndexError):
        files[3]


def test_sources_that_are_not_text_have_names_of_their_own(tmp_path: pathlib.Path) -> None:
    for number, byte in enumerate((b"\xfe", b"\xff")):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/" + byte + b".img")
        pathlib.Path(path).write_bytes(image())
        out = tmp_path / f"out{number}"
        files = quarrier.carve(path, out)
        shown = str(tmp_path / rf"\x{byte.hex()}.img")
        assert (len(files), {file.source for file in files}) == (3, {shown})
        assert json.loads((out / "case.json").read_text())["source"]["name"] == shown
        assert quarrier.carve(shown, dry_run=True).to_pylist() == files.to_pylist()


def test_arrow_rows_are_those_of_the_report(tmp_path: pathlib.Path) -> None:
    files = quarrier.carve(image(), tmp_path / "out")
    table = pa.table(files)
    assert table.to_pylist() == files.to_pylist()
    assert table.schema.field("offset").type == pa.uint64()


def test_keep_selects_the_files_written(tmp_path: pathlib.Path) -> None:
    def count(**options) -> int:
        count.calls += 1  # type: ignore[attr-defined]
        return len(quarrier.carve(image(), tmp_path / str(count.calls), **options))  # type: ignore[attr-defined]

    count.calls = 0  # type: ignore[attr-defined]
    assert count(keep="valid") == 2
    assert count(types=["gif"]) == 3
    assert count(range=(1001, 1 << 40)) == 2
    assert count(workers=3, thorough=True, max_size=1 << 20) == 3
    assert count(max_size="1M", max_memory="64MiB") == 3
    for option in ("max_size", "max_memory"):
        with pytest.raises(quarrier.PlanError, match="'1 apple' is not a size"):
            count(**{option: "1 apple"})


def test_a_dry_run_has_the_same_rows_and_writes_nothing(tmp_path: pathlib.Path) -> None:
    written = quarrier.carve(image(), tmp_path / "out")
    assert quarrier.carve(image(), dry_run=True).to_pylist() == written.to_pylist()
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(quarrier.PlanError, match="folder"):
        quarrier.carve(image())
    with pytest.raises(quarrier.PlanError, match="dry run"):
        quarrier.carve(image(), tmp_path / "other", dry_run=True)


def test_embedded_files_have_the_path_through_their_archive(tmp_path: pathlib.Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pictures/a.gif", gif(b"inside"))
    source = bytes(512) + packed.getvalue() + bytes(100)
    outer, inner = quarrier.carve(source, tmp_path / "out", embedded=True)
    assert (outer.type, outer.container) == ("zip", None)
    assert (inner.type, inner.container) == ("gif", "zip@0x200!pictures/a.gif")
    assert (tmp_path / "out" / inner.path).read_bytes() == gif(b"inside")
    dry = quarrier.carve(source, dry_run=True, embedded=True)
    assert [file.container for file in dry] == [None, inner.container]
    assert pa.table(dry).column("container").to_pylist() == [None, inner.container]
    assert dry.skipped is None
    assert len(quarrier.carve(source, dry_run=True)) == 1


def test_unallocated_carves_only_free_bytes(tmp_path: pathlib.Path) -> None:
    with pytest.raises(quarrier.QuarrierError, match="without unallocated=True"):
        quarrier.carve(image(), dry_run=True, unallocated=True)


def test_user_defined_signatures_are_carved(tmp_path: pathlib.Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[[signature]]\nname = "acme"\nheader = "AC BE 01 02"\nfooter = "ED FE"\nmax_size = 99\n'
    )
    source = bytes(100) + b"\xac\xbe\x01\x02 text \xed\xfe" + bytes(100)
    files = quarrier.carve(source, tmp_path / "out", signatures=own)
    assert [(file.type, file.offset, file.length) for file in files] == [("acme", 100, 12)]
    own.write_text("[[signature]]\nname = 7\n")
    with pytest.raises(quarrier.PlanError, match="line 2"):
        quarrier.carve(source, tmp_path / "other", signatures=own)


def test_each_invalid_request_has_its_exception(tmp_path: pathlib.Path) -> None:
    with pytest.raises(quarrier.PlanError, match="nonsense"):
        quarrier.carve(image(), tmp_path / "a", types=["nonsense"])
    with pytest.raises(quarrier.PlanError, match="keep"):
        quarrier.carve(image(), tmp_path / "a", keep="some")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        quarrier.carve(tmp_path / "missing", tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        quarrier.carve(image(), tmp_path / "no" / "folder")
    with pytest.raises(TypeError):
        quarrier.carve(7, tmp_path / "a")  # type: ignore[arg-type]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    with pytest.raises(quarrier.FolderError, match="not empty"):
        quarrier.carve(image(), tmp_path / "full")
    assert sorted(os.listdir(tmp_path / "full")) == ["letter"]


def test_a_resumed_run_keeps_finished_files_and_lists_them(tmp_path: pathlib.Path) -> None:
    first = quarrier.carve(image(), tmp_path / "out", resume=True)
    again = quarrier.carve(image(), tmp_path / "out", resume=True)
    assert again.to_pylist() == first.to_pylist()


PROGRAM = """
import sys, quarrier
try:
    print("ready", flush=True)
    quarrier.carve(sys.argv[1], sys.argv[2], workers=1)
except KeyboardInterrupt:
    print("interrupted")
else:
    print("ended by itself")
"""


def test_ctrl_c_ends_a_run_that_can_be_resumed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "large.img"
    with path.open("wb") as file:
        # Half a gigabyte without holes, with a picture in every 64 KiB.
        block = (gif(zlib.compress(os.urandom(90))) + os.urandom(1 << 16))[: 1 << 16]
        for _ in range(1 << 13):
            file.write(block)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said in ("interrupted\n", "ended by itself\n")
    files = quarrier.carve(path, tmp_path / "out", resume=True, workers=2)
    assert len(files) == 1 << 13


def test_an_open_source_is_carved_and_listed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "disk.img"
    path.write_bytes(image())
    expected = quarrier.carve(path, dry_run=True).to_pylist()
    with quarrier.open(path) as file:
        assert quarrier.carve(file, dry_run=True).to_pylist() == expected
        with pytest.raises(quarrier.QuarrierError, match="no file system"):
            quarrier.files(file)


def test_files_of_a_source_without_a_file_system_are_an_error() -> None:
    with pytest.raises(quarrier.QuarrierError, match="no file system"):
        quarrier.files(bytes(100_000))
