"""Both packages have the same version, and each requires that version of the other."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

import quarrier

CRATES = Path(__file__).parents[2]


def test_both_packages_pin_each_other() -> None:
    light = tomllib.loads((CRATES / "quarrier-python/pyproject.toml").read_text())
    full = tomllib.loads((CRATES / "quarrier-python-sql/pyproject.toml").read_text())
    assert light["project"]["optional-dependencies"]["sql"] == [
        f"quarrier-sql=={quarrier.__version__}"
    ]
    assert full["project"]["dependencies"] == [f"quarrier=={quarrier.__version__}"]


def test_the_native_half_is_the_one_that_is_installed(request: pytest.FixtureRequest) -> None:
    package = "quarrier" if request.config.getoption("--without-sql") else "quarrier_sql"
    file = sys.modules["quarrier._native"].__file__
    assert file is not None and Path(file).parent.name == package
