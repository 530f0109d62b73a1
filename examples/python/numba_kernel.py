"""A kernel that numba compiles, on processes and on threads: the mean of two moving averages."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from quarrier import parallel

try:
    import numba
except ImportError:
    print("numba is not installed; pip install numba")
    sys.exit(0)

HALF = 5


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def smooth(out: Any, lead: int, first: Any, second: Any) -> None:
    """The mean of the two means of up to 11 neighbours in either array, for each index."""
    for index in range(len(out)):
        begin = max(0, index + lead - HALF)
        end = min(len(first), index + lead + HALF + 1)
        a = b = 0
        for at in range(begin, end):
            a += first[at]
            b += second[at]
        out[index] = (a // (end - begin) + b // (end - begin)) // 2


def main() -> None:
    """Checks that both ways give the result of a sequential run."""
    random = np.random.default_rng(1)
    first, second = random.integers(0, 256, (2, 2_000_000), np.uint8)
    wanted = np.empty_like(first)
    # This also compiles it, so that forked workers inherit the compiled kernel.
    smooth(wanted, 0, first, second)
    for mode in ("process", "thread"):
        found = parallel.map(smooth, first, second, halo=HALF, mode=mode)  # type: ignore[arg-type]
        assert (found == wanted).all()
        print(f'mode="{mode}": {len(found):,} means, the first {found[:5]}')


if __name__ == "__main__":
    main()
