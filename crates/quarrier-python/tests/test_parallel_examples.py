"""The examples run, and check their own results."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "python"


@pytest.mark.parametrize("name", ["histogram", "mandelbrot", "numba_kernel"])
def test_the_example_runs(name: str) -> None:
    subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], check=True, timeout=300)
