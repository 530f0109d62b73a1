"""Sources as a file system of fsspec: `fsspec.open("quarrier://https://example.org/big.tif")`.

The part after `quarrier://` is anything that `quarrier.open` opens: a path, a URL, an image. fsspec
discovers it if the package is installed; `import quarrier` registers it too.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from fsspec.spec import AbstractFileSystem
from fsspec.utils import stringify_path

from quarrier._file import SourceFile
from quarrier._file import open as open_file
from quarrier._held import HeldFiles, range_of, read_spans

if TYPE_CHECKING:

    class _CachedType(type):
        """fsspec is untyped; this tells type checkers that its classes cache their instances."""

        def __init__(cls, *args: Any, **kwargs: Any) -> None: ...
        def __call__(cls, *args: Any, **kwargs: Any) -> Any: ...

else:
    _CachedType = type(AbstractFileSystem)


class SourceFileSystem(AbstractFileSystem, metaclass=_CachedType):  # type: ignore[misc]
    """A read-only file system of sources, with the options of `quarrier.open`.

    Local folders can be listed; URLs cannot.
    """

    protocol = "quarrier"
    root_marker = ""

    def __init__(
        self,
        cache: str | os.PathLike[str] | None = None,
        memory: int | str | None = None,
        requests: int | Literal["auto"] | None = None,
        raw: bool = False,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._held = HeldFiles(
            cache=cache, memory=memory, requests=requests, raw=raw, headers=headers
        )

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text: str = stringify_path(path)
        for start in ("quarrier://", "quarrier::"):
            text = text.removeprefix(start)
        # The end of a URL may be significant.
        return text if "://" in text else text.rstrip("/") or "/"

    def _open(self, path: str, mode: str = "rb", **_: Any) -> SourceFile:
        return open_file(path, mode, **self._held.settings)

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """The size of a source, or the entry of a local folder."""
        path = self._strip_protocol(path)
        if _is_folder(path):
            return {"name": path, "size": 0, "type": "directory"}
        return {"name": path, "size": self._held.using(path, _size_of), "type": "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The entries of a local folder; for a source, its own entry."""
        path = self._strip_protocol(path)
        if not _is_folder(path):
            found = [self.info(path)]
        else:
            found = [_entry(path, name) for name in sorted(os.listdir(path))]
        return found if detail else [each["name"] for each in found]

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """The bytes of a source from `start` to `end`; negative offsets count from its end."""

        def read(file: SourceFile) -> bytes:
            return file.read_at(*range_of(file, start, end))

        return self._held.using(self._strip_protocol(path), read)

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **_: Any,
    ) -> list[Any]:
        """Many ranges; those of one source are fetched concurrently. `max_gap` is ignored."""
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError(f"{len(paths)} paths, {len(starts)} starts and {len(ends)} ends")
        numbers: dict[str, list[int]] = {}
        for number, path in enumerate(paths):
            numbers.setdefault(self._strip_protocol(path), []).append(number)
        found: list[Any] = [None] * len(paths)
        for path, own in numbers.items():
            spans = [(starts[number], ends[number]) for number in own]
            try:
                read = functools.partial(read_spans, spans=spans)
                values: list[Any] = self._held.using(path, read)
            except Exception as error:
                if on_error != "return":
                    raise
                values = [error] * len(own)
            for number, value in zip(own, values, strict=True):
                found[number] = value
        return found


def _is_folder(path: str) -> bool:
    return "://" not in path and os.path.isdir(path)


def _entry(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        return {"name": path, "size": 0, "type": "directory"}
    # The size on disk: opening each file as an image would take too long.
    return {"name": path, "size": os.lstat(path).st_size, "type": "file"}


def _size_of(file: SourceFile) -> int:
    return file.size
