"""A kernel that Cython compiles, on processes and on threads: a moving average."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

import numpy as np

from quarrier import parallel

HALF = 5
SOURCE = pathlib.Path(__file__).with_name("smoothing.pyx")


def compiled(folder: pathlib.Path) -> Any:
    """Compiles the module into the folder, and imports it. Workers import it from there."""
    code = folder / "smoothing.c"
    subprocess.run([sys.executable, "-m", "cython", "-o", code, SOURCE], check=True)
    library = folder / f"smoothing{sysconfig.get_config_var('EXT_SUFFIX')}"
    headers = f"-I{sysconfig.get_path('include')}"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", headers, code, "-o", library], check=True)
    sys.path.insert(0, str(folder))
    return importlib.import_module("smoothing")


def main() -> None:
    """Checks that all ways give the result of numpy."""
    values = np.random.default_rng(1).integers(0, 256, 2_000_000, np.uint8)
    sums = np.cumsum(np.concatenate([np.zeros(1, np.int64), values]))
    index = np.arange(len(values))
    begin, end = np.maximum(index - HALF, 0), np.minimum(index + HALF + 1, len(values))
    wanted = (sums[end] - sums[begin]) // (end - begin)
    with tempfile.TemporaryDirectory() as folder:
        smooth = compiled(pathlib.Path(folder)).smooth
        for mode in ("process", "thread"):
            found = parallel.map(smooth, values, halo=HALF, mode=mode)  # type: ignore[arg-type]
            assert (found == wanted).all()
            print(f'mode="{mode}": {len(found):,} means, the first {found[:5]}')
        with parallel.pool():
            found = parallel.map(smooth, values, halo=HALF)
            assert (found == wanted).all()
            print(f"in a pool: {len(found):,} means, the first {found[:5]}")


if __name__ == "__main__":
    if importlib.util.find_spec("Cython") is None:
        print("Cython is not installed; pip install cython")
        sys.exit(0)
    main()
