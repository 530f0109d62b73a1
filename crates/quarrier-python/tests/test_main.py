"""`python -m quarrier` runs the program, wherever pip has put it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarrier import __main__ as command_line


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": str(folder)}
    command = [sys.executable, "-m", "quarrier", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def program(folder: Path) -> Path:
    path = folder / "quarrier"
    path.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 3\n')
    path.chmod(0o755)
    return path


def test_the_program_gets_the_arguments_and_gives_the_exit_code(tmp_path: Path) -> None:
    program(tmp_path)
    done = run(tmp_path, "search", "a b", "f")
    assert (done.stdout, done.returncode) == ("search|a b|f|", 3)


def test_a_missing_program_is_an_error_of_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "search")
    assert (done.stdout, done.returncode) == ("", 2)
    assert "make install" in done.stderr and done.stderr.count("\n") == 1


def test_the_program_of_the_environment_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = program(tmp_path)

    def path(name: str, scheme: str = "venv") -> str:
        assert name == "scripts"
        return str(tmp_path if scheme == "venv" else tmp_path / "user")

    monkeypatch.setattr(command_line.sysconfig, "get_path", path)
    assert next(command_line.places()) == own
