"""The native half of the package, in Rust."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, final

from typing_extensions import Buffer

from quarrier._finding import Finding

__all__ = ["Findings", "Pattern", "hex", "regex", "search"]

@final
class Pattern:
    @property
    def text(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Findings:
    @property
    def engine(self) -> str: ...
    @property
    def unreadable(self) -> list[tuple[int, int]]: ...
    def to_pylist(self) -> list[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Finding: ...
    def __iter__(self) -> Iterator[Finding]: ...

_AnyPattern: TypeAlias = str | bytes | Pattern

def hex(text: str, /) -> Pattern: ...
def regex(expression: bytes | str, /) -> Pattern: ...
def search(
    source: str | os.PathLike[str] | Buffer,
    patterns: _AnyPattern | Sequence[_AnyPattern] | Mapping[str, _AnyPattern],
    *,
    ignore_case: bool = False,
    utf16: bool = False,
    max_count: int | None = None,
    range: tuple[int, int] | None = None,
    aligned: int = 1,
    regex_max_length: int = 65536,
    workers: int | None = None,
    readers: int | None = None,
    buffers: int | None = None,
    buffer_size: int | None = None,
    access: Literal["auto", "window", "read", "queue", "uring"] = "auto",
    direct: bool = False,
    engine: str = "auto",
) -> Findings: ...
