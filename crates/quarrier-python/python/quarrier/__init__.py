"""Searches raw data where it lies, at the speed of the machine, and keeps sparse files.

>>> import quarrier
>>> found = quarrier.search(b"....GIF89a..", ["GIF8", quarrier.hex("38 3?")])
>>> [(finding.offset, finding.pattern) for finding in found]
[(4, 'GIF8'), (7, '38 3?')]

A sparse file holds what was fetched of a big one, and knows what is missing:

>>> file = quarrier.SparseFile("https://example.org/big.tif")
>>> file.write(0, b"II*\\0")
4
>>> file.need(0, 8)
[(4, 4)]
"""

from __future__ import annotations

from quarrier._errors import (
    ArrowColumnError,
    BeyondLengthError,
    BufferLayoutError,
    CompressedError,
    ConflictError,
    CorruptError,
    DuplicateFileError,
    EngineError,
    NotHeldError,
    NotReadableError,
    OffsetOverflowError,
    PatternError,
    PatternLineError,
    PatternSetError,
    PinnedError,
    PlanError,
    QuarrierError,
    QueryError,
    RemoteChangedError,
    RemoteDeniedError,
    RemoteError,
    RemoteNotFoundError,
    RemoteRangesError,
    RowError,
    ShrankError,
    UnknownFileError,
)
from quarrier._file import SourceFile, open
from quarrier._finding import Finding
from quarrier._fsspec import register_when_imported
from quarrier._native import (
    CostModel,
    Findings,
    Pattern,
    ReadAhead,
    SparseFile,
    SparseStore,
    Table,
    hex,
    regex,
    search,
)

__all__ = [
    "ArrowColumnError",
    "BeyondLengthError",
    "BufferLayoutError",
    "CompressedError",
    "ConflictError",
    "CorruptError",
    "CostModel",
    "DuplicateFileError",
    "EngineError",
    "Finding",
    "Findings",
    "NotHeldError",
    "NotReadableError",
    "OffsetOverflowError",
    "Pattern",
    "PatternError",
    "PatternLineError",
    "PatternSetError",
    "PinnedError",
    "PlanError",
    "QuarrierError",
    "QueryError",
    "ReadAhead",
    "RemoteChangedError",
    "RemoteDeniedError",
    "RemoteError",
    "RemoteNotFoundError",
    "RemoteRangesError",
    "RowError",
    "ShrankError",
    "SourceFile",
    "SparseFile",
    "SparseStore",
    "Table",
    "UnknownFileError",
    "hex",
    "open",
    "regex",
    "search",
]

register_when_imported()
