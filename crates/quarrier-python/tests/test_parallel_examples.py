"""The examples run, and check their own results."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "python"


@pytest.mark.parametrize("name", ["histogram", "mandelbrot", "numba_kernel", "cython_kernel"])
def test_the_example_runs(name: str) -> None:
    command = [sys.executable, EXAMPLES / f"{name}.py"]
    done = subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE, text=True)
    assert "not installed" not in done.stdout, "the tests need all packages of the examples"
