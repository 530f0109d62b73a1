"""Stands in for the package svfsc 0.4.1: `import quarrier.compat.svfsc as svfsc`.

Names, arguments, results, exceptions and their messages are those of svfsc. The differences are
promises that svfsc breaks: adjacent blocks are merged whatever the order of writes, any write that
differs from the held bytes is detected and loses nothing, and offsets below 0 or from 2**64 on are
an error (`quarrier.OffsetOverflowError`). `size_of` returns the memory used here.

New code should use `quarrier.SparseFile` and `quarrier.SparseStore`.
"""

from __future__ import annotations

from quarrier.compat.svfsc._file import cSVF
from quarrier.compat.svfsc._system import cSVFS

PY_THREAD_SAFE = 1
SVFS_CPP_VERSION = "0.4.1"
SVFS_CPP_VERSION_MAJOR = 0
SVFS_CPP_VERSION_MINOR = 4
SVFS_CPP_VERSION_PATCH = 1
SVFS_CPP_VERSION_SUFFIX = ""
SVFS_THREAD_SAFE = 0
SVF_THREAD_SAFE = 0

__all__ = [
    "PY_THREAD_SAFE",
    "SVFS_CPP_VERSION",
    "SVFS_CPP_VERSION_MAJOR",
    "SVFS_CPP_VERSION_MINOR",
    "SVFS_CPP_VERSION_PATCH",
    "SVFS_CPP_VERSION_SUFFIX",
    "SVFS_THREAD_SAFE",
    "SVF_THREAD_SAFE",
    "cSVF",
    "cSVFS",
]
