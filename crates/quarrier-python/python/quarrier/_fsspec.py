"""Registers the cache of `quarrier.compat.fsspec` with fsspec, whichever is imported first.

Importing fsspec takes as long as the rest of quarrier, and programs that do not use it should not
wait for it. fsspec discovers file systems of other packages, but not caches.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_MODULE = "fsspec.caching"


class _Watch:
    """Intercepts one import, once, to run code after it.

    A finder by duck typing: importing `importlib.abc` would load thirty modules.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def _register() -> None:
    # The module registers itself; if it is the one that imports fsspec, it is about to.
    importlib.import_module("quarrier.compat.fsspec")


def register_when_imported() -> None:
    """Registers the cache: now if fsspec is loaded, else as soon as it is."""
    if _MODULE in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Watch())
