"""quarrier.cluster, on processes of this machine."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pyarrow.csv
import pyarrow.parquet
import pytest

import quarrier
from quarrier import cluster

REPOSITORY = pathlib.Path(__file__).parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"

GIF = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c000000000100010000020144003b"
)


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    """`scripts/python.sh build` builds the program of clusters."""
    assert (TARGET / "quarrier-cluster").exists(), "run scripts/python.sh build first"
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{TARGET}{os.pathsep}{before}"
    yield
    os.environ["PATH"] = before


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Cluster]:
    with cluster.local(workers=2) as lab:
        yield lab


@pytest.fixture
def disks(tmp_path: pathlib.Path) -> list[pathlib.Path]:
    disks = []
    for number in range(3):
        disk = tmp_path / f"disk{number}"
        disk.write_bytes(b"an invoice of 2026, Ab\0" * 500 + bytes(4096) + GIF + bytes(600))
        disks.append(disk)
    return disks


def test_a_search_has_the_rows_of_one_process(
    lab: cluster.Cluster, disks: list[pathlib.Path]
) -> None:
    patterns = [
        "invoice",
        b"\x00an",
        quarrier.hex("32 3? 32"),
        quarrier.regex("[a-z]+b"),
        "-o",
        re.compile("Ab"),
    ]
    rows = lab.search(disks, patterns, unit_size=1000).to_pylist()
    expected = [
        (str(disk), finding.offset, finding.length)
        for disk in disks
        for finding in quarrier.search(disk, patterns)
    ]
    assert len(expected) > 3000
    assert [(row["source"], row["offset"], row["length"]) for row in rows] == expected


def test_options_and_files_of_patterns(
    lab: cluster.Cluster, disks: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    names = tmp_path / "names"
    names.write_text("INVOICE\nab\n")
    whole = lab.search(
        disks[0], names, ignore_case=True, word=True, range=(0, 2000), to=tmp_path / "to"
    )
    found = quarrier.search(
        disks[0], ["INVOICE", "ab"], ignore_case=True, word=True, range=(0, 2000)
    )
    assert [row["offset"] for row in whole.to_pylist()] == [finding.offset for finding in found]
    assert list((tmp_path / "to").rglob("*.arrow"))


def test_nothing_found_is_an_empty_table(lab: cluster.Cluster, disks: list[pathlib.Path]) -> None:
    assert len(lab.search(disks, "nowhere to be found")) == 0
    assert len(lab.carve(disks, types=["pdf"])) == 0


def test_carving_has_the_files_of_one_process(
    lab: cluster.Cluster, disks: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    rows = lab.carve(disks, tmp_path / "out", types=["gif"]).to_pylist()
    assert [(row["source"], row["type"]) for row in rows] == [(str(disk), "gif") for disk in disks]
    for row in rows:
        assert (tmp_path / "out" / row["path"]).read_bytes() == GIF
    assert len(lab.carve(disks[0], valid_only=True)) == 1


def test_a_statement_has_the_rows_of_one_process(
    lab: cluster.Cluster, tmp_path: pathlib.Path
) -> None:
    messages = tmp_path / "orders.csv"
    messages.write_text("id,qty\n" + "".join(f"{row},{row % 7}\n" for row in range(500)))
    file = tmp_path / "orders.parquet"
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(messages), file)
    rows = lab.sql("SELECT qty, count(*) AS n FROM o GROUP BY qty ORDER BY qty", tables={"o": file})
    assert rows.to_pylist() == [{"qty": qty, "n": len(range(qty, 500, 7))} for qty in range(7)]
    same = lab.sql(f"SELECT qty, count(*) AS n FROM '{messages}' GROUP BY qty ORDER BY qty")
    assert same.to_pylist() == rows.to_pylist()
    with pytest.raises(quarrier.QuarrierError, match="is not spread"):
        lab.sql(f"SELECT max(_line) FROM '{messages}'")
    with pytest.raises(quarrier.QuarrierError, match="nothing"):
        lab.sql("SELECT nothing FROM o", tables={"o": file})


def test_errors_have_the_message_of_the_program(
    lab: cluster.Cluster, disks: list[pathlib.Path]
) -> None:
    with pytest.raises(quarrier.QuarrierError, match="gone"):
        lab.search(disks[0].with_name("gone"), "a")
    with pytest.raises(quarrier.QuarrierError, match="does not answer"):
        cluster.connect("127.0.0.1:1").search(disks[0], "a")
    with pytest.raises(TypeError, match="a pattern is"):
        lab.search(disks[0], [3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no source"):
        lab.search([], "a")
    with pytest.raises(ValueError, match="at least one worker"):
        cluster.local(workers=0)


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(quarrier.QuarrierError, match="make cluster"):
        cluster.local()


def test_a_cluster_ends_with_its_process() -> None:
    code = """
import os, signal, subprocess
from quarrier import cluster
lab = cluster.local(workers=1)
print(lab._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    pid = int(ended.stdout)
    for _ in range(100):
        if not pathlib.Path(f"/proc/{pid}/exe").exists():
            return
        subprocess.run(["sleep", "0.1"], check=True)
    pytest.fail("the cluster goes on")
