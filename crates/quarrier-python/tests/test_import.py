"""`import quarrier` loads only what every program needs."""

from __future__ import annotations

import subprocess
import sys

# Modules that take longer to import than the package, each loaded by the first call that needs it.
LATER = [
    "asyncio",
    "ctypes",
    "fsspec",
    "http",
    "inspect",
    "json",
    "multiprocessing",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "quarrier.parallel",
    "subprocess",
    "tempfile",
]


def test_the_import_loads_no_module_that_is_only_needed_later() -> None:
    # Without `site`, which may load modules for other packages.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import quarrier\n"
        f"print([name for name in {LATER!r} if name in sys.modules])"
    )
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
