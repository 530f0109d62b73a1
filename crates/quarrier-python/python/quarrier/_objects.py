"""Objects by their keys below a URL or a folder, for the stores of other libraries."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from quarrier._file import First, SourceFile
from quarrier._held import HeldFiles, Span, read_spans

_REMOTE_SCHEMES = ("http", "https", "s3", "gs", "az")
# Characters that a path of a URL may contain.
_SAFE = "/!$&'()*+,;=:@-._~"


class Objects:
    """The objects below `root`, each read as its own bytes."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        cache: str | os.PathLike[str] | None = None,
        memory: int | str | None = None,
        requests: int | Literal["auto"] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.root = os.fspath(root)
        scheme, separator, _ = self.root.partition("://")
        self.is_remote = bool(separator)
        self._scheme = scheme.lower() if separator else ""
        if self.is_remote and self._scheme not in _REMOTE_SCHEMES:
            raise ValueError(
                f"{self.shown}: is neither a folder nor a URL that can be read: https://, http://, "
                "s3://, gs:// or az://"
            )
        self._held = HeldFiles(
            cache=cache, memory=memory, requests=requests, raw=True, headers=headers
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The options with which objects are opened."""
        return self._held.settings

    @property
    def shown(self) -> str:
        """The root without secrets."""
        if not self.is_remote:
            return self.root
        parts = urlsplit(self.root)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}" + ("?…" if parts.query else "")

    def name_of(self, key: str) -> str:
        """The path or URL of an object. A key cannot lead out of the root."""
        if any(part in ("", ".", "..") for part in key.split("/")):
            raise ValueError(f"the key {key!r} has an empty part, or one that is '.' or '..'")
        if not self.is_remote:
            return os.path.join(self.root, key)
        if not self._scheme.startswith("http"):
            return f"{self.root.rstrip('/')}/{key}"
        # A signature in the query may be for all objects.
        base, question, query = self.root.partition("?")
        return f"{base.rstrip('/')}/{quote(key, safe=_SAFE)}{question}{query}"

    def read(self, key: str, spans: Sequence[Span]) -> list[bytes]:
        """Reads spans of an object; if it is remote, by few concurrent requests."""
        first = first_of(spans[0]) if spans else None
        return self._held.using(self._file_of(key), lambda file: read_spans(file, spans), first)

    def open(self, key: str, first: First | None = None) -> SourceFile:
        """An object as a file. Other callers may share it, so only read it at offsets."""
        return self._held.using(self._file_of(key), lambda file: file, first)

    def _file_of(self, key: str) -> str:
        name = self.name_of(key)
        if not self.is_remote and os.path.isdir(name):
            raise IsADirectoryError(f"{name}: is a folder")
        return name

    def below(self, prefix: str) -> Iterator[str]:
        """The keys of all objects in a folder of a local root, and in the folders below it."""
        for folder, folders, files in os.walk(self._folder(prefix)):
            folders.sort()
            for name in sorted(files):
                yield os.path.relpath(os.path.join(folder, name), self.root)

    def children(self, prefix: str) -> list[str]:
        """The names of all objects and folders in a folder of a local root."""
        try:
            return sorted(os.listdir(self._folder(prefix)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _folder(self, prefix: str) -> str:
        if self.is_remote:
            raise NotImplementedError(f"{self.shown}: objects behind a URL cannot be listed")
        prefix = prefix.strip("/")
        return self.name_of(prefix) if prefix else self.root

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Objects)
            and self.root == other.root
            and self.settings == other.settings
        )

    __hash__ = None  # type: ignore[assignment]


def first_of(span: Span) -> First | None:
    """The first request for an object of unknown length, if a span of it will be read."""
    start, end = span
    if start is not None and start < 0:
        return None, -start
    start = start or 0
    if end is None:
        # All bytes up to the end; the client limits the request.
        return start, sys.maxsize
    return None if end < 0 else (start, max(0, end - start))
