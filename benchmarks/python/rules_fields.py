"""The fields that the modules of YARA-X have for a file, as rules: each compares a field with its value."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

#: The modules that both have, and that read the file.
MODULES = ("pe", "elf", "macho", "dotnet", "dex")
ELEMENTS_MAX = 12


class Field(NamedTuple):
    #: As in a condition: `pe.sections[0].name`.
    path: str
    condition: str

    @property
    def name(self) -> str:
        """The path without indexes."""
        return re.sub(r"\[[^]]*\]", "[]", self.path)


def fields(outputs: dict[str, Any]) -> Iterator[Field]:
    for module in MODULES:
        for key, value in (outputs.get(module) or {}).items():
            yield from of_value(f"{module}.{key}", module, value)


def of_value(path: str, module: str, value: Any) -> Iterator[Field]:
    match value:
        case bool():
            yield Field(path, path if value else f"not {path}")
        case datetime.datetime():
            yield Field(path, f"{path} == {int(value.timestamp())}")
        case int():
            yield Field(path, f"{path} == {value}")
        case bytes():
            yield Field(path, f'{path} == "{"".join(f"{chr(92)}x{byte:02x}" for byte in value)}"')
        case str():
            # The name of a constant.
            yield Field(path, f"{path} == {module}.{value}")
        case list():
            for place, element in enumerate(value[:ELEMENTS_MAX]):
                yield from of_value(f"{path}[{place}]", module, element)
        case dict():
            for key, inner in value.items():
                yield from of_value(f"{path}.{key}", module, inner)


def texts(of_file: list[Field]) -> str:
    """A rule for each field, in lines of their own, after a line of imports."""
    imports = " ".join(f'import "{module}"' for module in MODULES)
    rules = (f"rule f{place} {{ condition: {field.condition} }}\n" for place, field in enumerate(of_file))
    return f"{imports}\n{''.join(rules)}"
