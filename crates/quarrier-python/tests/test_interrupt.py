"""Ctrl-C ends a search."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import quarrier

# The naive engine compares every pattern at every offset, which takes minutes.
PROGRAM = """
import sys, quarrier
try:
    print("ready", flush=True)
    patterns = [f"{number:04}" for number in range(2000)]
    quarrier.search(sys.argv[1], patterns, engine="naive", workers=1, buffer_size=65536)
except KeyboardInterrupt:
    print("interrupted")
else:
    print("ended by itself")
"""


def test_a_search_ends_soon_after_ctrl_c(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "large.img"
    path.write_bytes(b"abc12345" * (8 << 20))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert (said, process.returncode) == ("interrupted\n", 0)


def test_a_signal_handler_runs_while_a_search_does() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        done = threading.Event()

        def send() -> None:
            while not done.wait(0.02):
                signal.raise_signal(signal.SIGUSR1)

        thread = threading.Thread(target=send)
        thread.start()
        found = quarrier.search(bytes(32 << 20), b"\1", engine="naive", workers=1)
        done.set()
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(found) == 0
    assert seen, "no handler ran during the search"


def test_other_threads_run_while_a_search_does() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    quarrier.search(bytes(32 << 20), b"\1", engine="naive", workers=1)
    ran = counted - before
    done.set()
    thread.join()
    assert ran > 0


def test_an_exception_of_a_handler_comes_out_of_the_search() -> None:
    class StopError(Exception):
        pass

    def stop(number: int, frame: object) -> None:
        raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(StopError):
            while True:
                quarrier.search(bytes(256 << 20), b"\1\2", engine="naive", workers=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


LOAD = """
import sys, quarrier
try:
    print("ready", flush=True)
    while True:
        quarrier.Table.from_messages(sys.argv[1], workers=1)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_load_ends_soon_after_ctrl_c(tmp_path: pathlib.Path) -> None:
    # A hole takes no disk space, and minutes to read.
    path = tmp_path / "large.ndjson"
    path.write_bytes(b'{"side":"B","qty":7}\n' * 1_000)
    os.truncate(path, 1 << 40)
    with subprocess.Popen(
        [sys.executable, "-c", LOAD, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (said, process.returncode) == ("interrupted\n", 0)


PREPARING = """
import quarrier
table = quarrier.Table.from_messages(b'{"a":1}')
condition = ", ".join(str(number) for number in range(3000))
statements = [f"SELECT a FROM m WHERE a IN ({condition})"] * 5000
try:
    print("ready", flush=True)
    table.query_many(statements)
except KeyboardInterrupt:
    print("interrupted")
else:
    print("ended by itself")
"""


def test_ctrl_c_ends_the_preparation_of_statements() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PREPARING], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert (said, process.returncode) == ("interrupted\n", 0)
