"""Runs `quarrier serve --data` for tests."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
from typing import Any

import psycopg
import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug"


class Server:
    """A server over a folder, with the same ports after each restart."""

    def __init__(self, folder: pathlib.Path, *options: str) -> None:
        binary = TARGET / "quarrier-sql"
        if not binary.exists():
            pytest.skip(f"there is no {binary}")
        self.port, self.http = free_port(), free_port()
        self.command = [str(binary), "serve", "--data", "d", "--quiet"]
        self.command += ["--listen", f"127.0.0.1:{self.port}"]
        self.command += ["--http", f"127.0.0.1:{self.http}", *options]
        self.folder = folder
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, cwd=self.folder, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("ready: ")

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def psycopg(self, **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="ann", dbname="quarrier", **options
        )


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
