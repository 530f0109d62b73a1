"""Workers that fill one shared array, without a copy."""

from __future__ import annotations

from quarrier.parallel._array import SharedArray, empty
from quarrier.parallel._init import init
from quarrier.parallel._map import map
from quarrier.parallel._pool import Pool, pool
from quarrier.parallel._reduce import reduce
from quarrier.parallel._scan import scan
from quarrier.parallel._state import PerWorker, per_worker
from quarrier.parallel._stencil import stencil
from quarrier.parallel._submit import submit

__all__ = [
    "PerWorker",
    "Pool",
    "SharedArray",
    "empty",
    "init",
    "map",
    "per_worker",
    "pool",
    "reduce",
    "scan",
    "stencil",
    "submit",
]
