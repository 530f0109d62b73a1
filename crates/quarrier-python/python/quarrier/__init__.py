"""Searches, carves and queries raw data in place, and keeps sparse files.

>>> import quarrier
>>> found = quarrier.search(b"....GIF89a..", ["GIF8", quarrier.hex("38 3?")])
>>> [(finding.offset, finding.pattern) for finding in found]
[(4, 'GIF8'), (7, '38 3?')]

`quarrier.carve("disk.img", "recovered")` recovers the files in an image, deleted ones too.

A sparse file holds the fetched parts of a large one, and lists the missing ranges:

>>> file = quarrier.SparseFile("https://example.org/big.tif")
>>> file.write(0, b"II*\\0")
4
>>> file.need(0, 8)
[(4, 4)]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quarrier._carved import CarvedFile
from quarrier._errors import (
    ArrowColumnError,
    BeyondLengthError,
    BufferLayoutError,
    ColumnFileError,
    CompressedError,
    ConflictError,
    CorruptError,
    DeviceError,
    DictionaryError,
    DuplicateFileError,
    EngineError,
    FolderError,
    KernelError,
    MeasurementError,
    NoRoomError,
    NotHeldError,
    NotInstalledError,
    NotReadableError,
    OffsetOverflowError,
    PatternError,
    PatternLineError,
    PatternSetError,
    PinnedError,
    PlanError,
    QuarrierError,
    QueryError,
    RegionGoneError,
    RemoteChangedError,
    RemoteDeniedError,
    RemoteError,
    RemoteNotFoundError,
    RemoteRangesError,
    RowError,
    ServerError,
    ShrankError,
    SourceWarning,
    UnansweredError,
    UnknownColumnError,
    UnknownFileError,
    UnreadableWarning,
    WorkerDiedError,
    WorkerError,
    WorkerTimeoutError,
)
from quarrier._file import SourceFile, open
from quarrier._finding import Finding
from quarrier._fsspec import register_when_imported
from quarrier._gauge import Reading, gauge
from quarrier._native import (
    CarvedFiles,
    CostModel,
    Findings,
    Pattern,
    ReadAhead,
    RuleFindings,
    SparseFile,
    SparseStore,
    Store,
    Table,
    __version__,
    carve,
    files,
    hex,
    query,
    regex,
    search,
)
from quarrier._units import Unit, run, units

if TYPE_CHECKING:
    from quarrier import cluster, parallel
    from quarrier._live import Change, Subscription
    from quarrier._server import Connection, Marks, Writer, connect

__all__ = [
    "ArrowColumnError",
    "BeyondLengthError",
    "BufferLayoutError",
    "CarvedFile",
    "CarvedFiles",
    "Change",
    "ColumnFileError",
    "CompressedError",
    "ConflictError",
    "Connection",
    "CorruptError",
    "CostModel",
    "DeviceError",
    "DictionaryError",
    "DuplicateFileError",
    "EngineError",
    "Finding",
    "Findings",
    "FolderError",
    "KernelError",
    "Marks",
    "MeasurementError",
    "NoRoomError",
    "NotHeldError",
    "NotInstalledError",
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
    "Reading",
    "RegionGoneError",
    "RemoteChangedError",
    "RemoteDeniedError",
    "RemoteError",
    "RemoteNotFoundError",
    "RemoteRangesError",
    "RowError",
    "RuleFindings",
    "ServerError",
    "ShrankError",
    "SourceFile",
    "SourceWarning",
    "SparseFile",
    "SparseStore",
    "Store",
    "Subscription",
    "Table",
    "UnansweredError",
    "Unit",
    "UnknownColumnError",
    "UnknownFileError",
    "UnreadableWarning",
    "WorkerDiedError",
    "WorkerError",
    "WorkerTimeoutError",
    "Writer",
    "__version__",
    "carve",
    "cluster",
    "connect",
    "files",
    "gauge",
    "hex",
    "open",
    "parallel",
    "query",
    "regex",
    "run",
    "search",
    "units",
]

register_when_imported()


# Hidden from type checkers: with it, they would accept any name.
if not TYPE_CHECKING:
    # Modules that take longer to import than all others together, and the names they define.
    _LATER = {
        "Change": "quarrier._live",
        "Connection": "quarrier._server",
        "Marks": "quarrier._server",
        "Subscription": "quarrier._live",
        "Writer": "quarrier._server",
        "connect": "quarrier._server",
    }

    def __getattr__(name: str) -> Any:
        # Programs that do not use it should not wait for it.
        if name in ("cluster", "parallel"):
            return importlib.import_module(f"quarrier.{name}")
        if name in _LATER:
            value = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
            return value
        raise AttributeError(f"module 'quarrier' has no attribute {name!r}")
