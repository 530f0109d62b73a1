"""`quarrier.open`: sources as file objects."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from range_server import RangeServer

import quarrier

DATA = random.Random(5).randbytes(3_000_000)


def check_like_bytes_io(file: quarrier.SourceFile, data: bytes) -> None:
    """The same calls on the file and on `io.BytesIO` return the same."""
    oracle = io.BytesIO(data)
    rng = random.Random(7)
    assert file.size == len(data)
    for _ in range(300):
        match rng.randrange(5):
            case 0:
                size = rng.choice([0, 1, 10, 5_000, 200_000])
                assert file.read(size) == oracle.read(size)
            case 1:
                offset = rng.randrange(len(data) + 1_000)
                assert file.seek(offset) == oracle.seek(offset)
            case 2:
                offset = -rng.randrange(len(data))
                assert file.seek(offset, os.SEEK_END) == oracle.seek(offset, os.SEEK_END)
            case 3:
                ours, theirs = bytearray(1_000), bytearray(1_000)
                assert file.readinto(ours) == oracle.readinto(theirs)
                assert ours == theirs
            case _:
                assert file.tell() == oracle.tell()
    file.seek(len(data) - 100)
    assert file.read() == data[-100:]
    assert file.read(1) == b""
    assert file.read_at(10, 5) == data[10:15]


def test_a_notice_of_the_source_is_a_warning_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "packed.lz"
    path.write_bytes(b"LZIP\x01an invoice")
    with pytest.warns(quarrier.SourceWarning, match=r"packed\.lz: is compressed by lzip"):
        file = quarrier.open(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(quarrier.search(file, "invoice")) == 1


def test_the_mode_is_that_of_an_opener_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with quarrier.open(path, "rb") as file:
        assert (file.mode, file.read(10)) == ("rb", DATA[:10])
    with quarrier.open(str(path), mode="rb") as file:
        assert file.read(10) == DATA[:10]
    for mode in ["r", "wb", "rb+", "ab", ""]:
        with pytest.raises(ValueError, match="only read, as bytes: give 'rb'"):
            quarrier.open(path, mode)


def test_a_raw_source_is_its_own_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(b"an invoice")
    contents = {
        "image.gz": packed,
        "image.001": b"first",
        "image.002": b"second",
        "packed.lz": b"LZIP\x01an invoice",
        "disk.img#1": b"no partition",
        "[ab]*": b"no glob",
        "empty": b"",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        with warnings.catch_warnings(), quarrier.open(tmp_path / name, raw=True) as file:
            warnings.simplefilter("error")
            assert (file.size, file.read()) == (len(data), data)
            with pickle.loads(pickle.dumps(file)) as again:
                assert again.read_at(0, 100) == data
    with quarrier.open(tmp_path / "image.gz") as file:
        assert file.read() == b"an invoice"
    with quarrier.open(tmp_path / "image.gz", raw=True) as file:
        assert [found.offset for found in quarrier.search(file, [packed[:4]])] == [0]
    for name in ["*", "disk.img#2"]:
        with pytest.raises(FileNotFoundError):
            quarrier.open(tmp_path / name, raw=True)
    with RangeServer({"image.gz": packed}) as server:
        with quarrier.open(server.url("image.gz"), raw=True) as file:
            assert file.read() == packed
            assert file.counters() is not None
        with quarrier.open(server.url("image.gz")) as file:
            assert file.read() == b"an invoice"


def test_a_local_file_reads_like_bytes_io(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with quarrier.open(path) as file:
        assert file.name == str(path)
        assert file.counters() is None
        check_like_bytes_io(file, DATA)
    assert file.closed
    with pytest.raises(ValueError, match="closed file"):
        file.read(1)


def test_parts_of_a_split_image_are_one_file(tmp_path: Path) -> None:
    for number, start in enumerate(range(0, len(DATA), 1_000_000), start=1):
        (tmp_path / f"image.{number:03}").write_bytes(DATA[start : start + 1_000_000])
    with quarrier.open(tmp_path / "image.001") as file:
        check_like_bytes_io(file, DATA)


def test_a_remote_file_reads_like_bytes_io() -> None:
    with RangeServer({"file": DATA}) as server, quarrier.open(server.url("file")) as file:
        check_like_bytes_io(file, DATA)
        # Held bytes between missing ranges may be fetched twice.
        assert server.take_tally().body_bytes <= 2 * len(DATA)


def test_errors_of_sources_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        quarrier.open(tmp_path / "missing")
    with pytest.raises(OSError, match="folder"):
        quarrier.open(tmp_path)
    with RangeServer({}) as server, pytest.raises(FileNotFoundError, match="404"):
        quarrier.open(server.url("missing"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file?secret=1"
        with pytest.raises(OSError, match=r"127\.0\.0\.1") as caught:
            quarrier.open(url)
        assert "secret" not in str(caught.value)


def test_a_source_that_cannot_be_opened_leaves_nothing_to_close(tmp_path: Path) -> None:
    program = """
import sys, quarrier
try:
    quarrier.open(sys.argv[1])
except FileNotFoundError:
    print("refused")
"""
    # Before Python 3.13, only this mode reports errors of a file's finalizer.
    command = [sys.executable, "-X", "dev", "-c", program, str(tmp_path / "missing")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("refused\n", "")


def test_the_directory_of_an_archive_costs_one_request() -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        for i in range(100):
            members.writestr(f"member {i}", random.Random(i).randbytes(10_000))
    data = archive.getvalue()
    with RangeServer({"a.zip": data}) as server, quarrier.open(server.url("a.zip")) as file:
        assert len(zipfile.ZipFile(file).namelist()) == 100
        tally = server.take_tally()
        assert (tally.requests, tally.body_bytes) == (1, 64 << 10)


def test_threads_that_read_the_same_bytes_fetch_them_once() -> None:
    with RangeServer({"file": DATA}, 0.01) as server, quarrier.open(server.url("file")) as file:
        with ThreadPoolExecutor(8) as threads:
            offsets = [(i % 4) * 700_000 + 50_000 for i in range(64)]
            for offset, data in zip(
                offsets, threads.map(lambda o: file.read_at(o, 100_000), offsets), strict=True
            ):
                assert data == DATA[offset : offset + 100_000]
        assert server.take_tally().body_bytes <= 2 * len(DATA)


def test_a_cache_folder_keeps_fetched_bytes(tmp_path: Path) -> None:
    with RangeServer({"file": DATA}) as server:
        for _ in range(2):
            with quarrier.open(server.url("file"), cache=tmp_path / "cache") as file:
                assert file.read() == DATA
            tally = server.take_tally()
        # The second time it requests only the version.
        assert tally.requests == 1
        assert tally.body_bytes <= 16 << 10


def test_a_remote_file_is_searched() -> None:
    data = bytearray(DATA)
    data[1_234_567:1_234_573] = b"needle"
    with RangeServer({"file": bytes(data)}) as server:
        found = quarrier.search(server.url("file"), ["needle"])
    assert [finding.offset for finding in found] == [1_234_567]


def test_a_key_interrupts_a_read_that_waits_for_the_network() -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    with RangeServer({"file": DATA}) as server, quarrier.open(server.url("file")) as file:
        server.latency_seconds = 10.0
        threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            file.read_at(2_000_000, 10)
        assert time.monotonic() - begin < 9.0
        server.latency_seconds = 0.0
        assert file.read_at(2_000_000, 10) == DATA[2_000_000:2_000_010]


def test_a_forked_child_opens_its_files_again() -> None:
    script = """
import os, sys, quarrier
with quarrier.open(sys.argv[1]) as file:
    data = file.read()
    file.seek(5)
    child = os.fork()
    assert file.read(1_000) == data[5:1_005]
    assert file.read_at(2_000_000, 1_000) == data[2_000_000:2_001_000]
    with quarrier.open(sys.argv[1]) as again:
        assert len(again.read_at(1_000_000, 10)) == 10
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    with RangeServer({"file": DATA}) as server:
        command = [sys.executable, "-c", script, server.url("file")]
        subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_many_ranges_are_read_at_once(kind: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    ranges = [(rng.randrange(3_100_000), rng.choice([0, 1, 100, 70_000])) for _ in range(100)]
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with RangeServer({"file": DATA}) as server:
        with quarrier.open(path if kind == "local" else server.url("file")) as file:
            file.seek(7)
            found = file.read_ranges(ranges)
            assert found == [DATA[offset : offset + length] for offset, length in ranges]
            assert file.read_ranges(iter(ranges[:1])) == found[:1]
            assert file.read_ranges([]) == []
            assert asyncio.run(file.read_ranges_async(iter(ranges))) == found
            assert asyncio.run(file.read_at_async(*ranges[1])) == found[1]
            assert file.tell() == 7
            for wrong in [(-1, 5), (5, -1)]:
                with pytest.raises(ValueError, match="negative"):
                    file.read_ranges([wrong])
        with pytest.raises(ValueError, match="closed"):
            file.read_ranges(ranges)


def test_more_ranges_than_are_read_at_once_are_read(tmp_path: Path) -> None:
    length = 90 << 20
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(length)
        for at in range(0, length, 1 << 20):
            file.seek(at)
            file.write(at.to_bytes(8))
    # A large one, one beyond the end, and small ones.
    ranges = [(0, 40 << 20), (30 << 20, 2**64 - 1), (length, 1), (2**64 - 1, 2**64 - 1)]
    ranges += [(at % length, 8) for at in range(0, 3_000 << 20, 1 << 20)]
    with quarrier.open(path) as source:
        found = source.read_ranges(ranges)
    assert [len(data) for data in found[:4]] == [40 << 20, 60 << 20, 0, 0]
    assert found[1][:8] == (30 << 20).to_bytes(8)
    assert all(data == at.to_bytes(8) for (at, _), data in zip(ranges[4:], found[4:], strict=True))


def test_coroutines_read_at_the_same_time() -> None:
    async def read(file: quarrier.SourceFile) -> list[bytes]:
        offsets = range(100_000, 3_000_000, 400_000)
        return await asyncio.gather(*(file.read_at_async(at, 100) for at in offsets))

    with (
        RangeServer({"file": DATA}) as server,
        quarrier.open(server.url("file"), requests=16) as file,
    ):
        server.latency_seconds = 0.3
        begin = time.monotonic()
        found = asyncio.run(read(file))
        seconds = time.monotonic() - begin
    assert found == [DATA[at : at + 100] for at in range(100_000, 3_000_000, 400_000)]
    # One after the other they would take 2.4 seconds.
    assert seconds < 1.5


def test_remote_ranges_take_few_concurrent_requests() -> None:
    near = [(1_000 * number + 200_000, 100) for number in range(100)]
    far = [(at, 100) for at in range(1_000_000, 3_000_000, 400_000)]
    with RangeServer({"file": DATA}, latency_seconds=0.05) as server:
        with quarrier.open(server.url("file"), memory="1M") as file:
            server.take_tally()
            found = file.read_ranges(far + near)
        assert found == [DATA[offset : offset + length] for offset, length in far + near]
        assert server.take_tally().requests <= 6


def test_a_range_that_cannot_be_read_fails_the_call() -> None:
    with RangeServer({"file": DATA}) as server, quarrier.open(server.url("file")) as file:
        server.files["file"] = memoryview(DATA[:-1])
        with pytest.raises(quarrier.RemoteChangedError):
            file.read_ranges([(at, 100) for at in range(500_000, 3_000_000, 500_000)])


def test_a_pickled_file_keeps_its_position(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with quarrier.open(path) as file:
        file.seek(1_000)
        with pickle.loads(pickle.dumps(file)) as again:
            assert (again.tell(), again.read(10)) == (1_000, DATA[1_000:1_010])
        path.write_bytes(DATA[:-1])
        with pytest.raises(OSError, match="has 2999999 bytes, had 3000000"):
            pickle.loads(pickle.dumps(file))


def test_headers_are_sent_and_not_shown() -> None:
    with RangeServer({"data": DATA}, required=("X-Key", "hidden")) as server:
        url = server.url("data")
        with pytest.raises(quarrier.RemoteDeniedError):
            quarrier.open(url)
        with quarrier.open(url, headers={"x-key": "hidden"}) as file:
            assert file.read(10) == DATA[:10]
            assert "hidden" not in repr(file)
            assert pickle.loads(pickle.dumps(file)).read(10) == DATA[10:20]
        for headers in ({"Range": "hidden"}, {"X-Key": "hidden\n"}, {"two words": "hidden"}):
            with pytest.raises(ValueError, match="headers: ") as failure:
                quarrier.open(url, headers=headers)
            assert "hidden" not in str(failure.value)


def test_a_search_of_a_remote_source_takes_no_sample() -> None:
    with RangeServer({"file": DATA}) as server:
        found = quarrier.search(server.url("file"), [DATA[2_999_000:2_999_020]])
        assert [row.offset for row in found] == [2_999_000]
        searched = server.take_tally()
        # A sample reads 64 places; the search then reads each byte once, in order.
        assert searched.requests < 20
        assert searched.body_bytes <= len(DATA) + 64 * 1024
        with quarrier.open(server.url("file")) as file:
            server.take_tally()
            assert len(quarrier.search(file, [DATA[2_999_000:2_999_020]])) == 1
            assert server.take_tally().requests < 20


def test_a_proxy_is_taken_as_curl_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"]:
        monkeypatch.delenv(name, raising=False)
    with RangeServer({"file": DATA}) as server:
        # Web servers set this from the request header Proxy, which a stranger controls.
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        with quarrier.open(server.url("file")) as file:
            assert file.read(10) == DATA[:10]
        monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
        with pytest.raises(quarrier.QuarrierError):
            quarrier.open(server.url("file"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with quarrier.open(server.url("file")) as file:
            assert file.read(10) == DATA[:10]
