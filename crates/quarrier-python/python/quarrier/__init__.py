"""Searches raw data where it lies, at the speed of the machine.

>>> import quarrier
>>> found = quarrier.search(b"....GIF89a..", ["GIF8", quarrier.hex("38 3?")])
>>> [(finding.offset, finding.pattern) for finding in found]
[(4, 'GIF8'), (7, '38 3?')]
"""

from __future__ import annotations

from quarrier._errors import (
    BufferLayoutError,
    EngineError,
    NotReadableError,
    PatternError,
    PatternLineError,
    PatternSetError,
    PlanError,
    QuarrierError,
    ShrankError,
)
from quarrier._finding import Finding
from quarrier._native import Findings, Pattern, hex, regex, search

__all__ = [
    "BufferLayoutError",
    "EngineError",
    "Finding",
    "Findings",
    "NotReadableError",
    "Pattern",
    "PatternError",
    "PatternLineError",
    "PatternSetError",
    "PlanError",
    "QuarrierError",
    "ShrankError",
    "hex",
    "regex",
    "search",
]
