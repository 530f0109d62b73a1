#!/usr/bin/env python3
"""Writes docs/python.md, the reference of the Python package, from its sources.

python_api.py [--check]

Signatures come from the stubs and modules, descriptions from docstrings and, for names defined in
Rust, from doc comments. Nothing is imported or built. --check writes nothing, and fails if the page
is stale.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "crates/quarrier-python/python/quarrier"
RUST = ROOT / "crates/quarrier-python/src"
PAGE = ROOT / "docs/python.md"

LINE_CHARACTERS_MAX = 88

HEAD = """\
# The Python package

Written by `scripts/python_api.py` from the package's own sources; do not edit.

A source is a path, a URL, or an object that exports bytes (`bytes`, `mmap`, a numpy array). Sizes,
counts and options have the values and meanings of [the command line](cli.md) (`"64K"`, `"auto"`).
The interpreter's lock is released while quarrier works, and Ctrl-C ends a call. Every error is a
`QuarrierError`; an error of the system is also an `OSError`.
"""

SECTIONS = {
    "Search and carve": (
        "search hex regex Pattern Findings Finding RuleFindings units run Unit "
        "carve CarvedFiles CarvedFile files"
    ),
    "Tables and SQL": "query Table Store connect Connection Writer Marks Subscription Change",
    "Files and remote objects": "open SourceFile SparseFile SparseStore CostModel ReadAhead",
    "The machine": "gauge Reading",
}

Definition = ast.ClassDef | ast.FunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Item(NamedTuple):
    definition: Definition
    aliases: dict[str, str]
    doc: str
    member_docs: dict[str, str]


def docs_of_rust() -> dict[str, str]:
    """Doc comments by Python's name: `search`, `Table`, `Table.query`."""
    docs: dict[str, str] = {}
    for path in sorted(RUST.rglob("*.rs")):
        above: list[str] = []
        within = ""
        for line in path.read_text().splitlines():
            bare = line.strip()
            if bare.startswith("///"):
                above.append(bare[3:].removeprefix(" "))
                continue
            if found := re.match(r"impl (\w+) \{", line):
                within = f"{found[1]}."
            elif line == "}":
                within = ""
            found = re.match(r"\s*(?:pub(?:\(\w+\))? )?(?:fn|struct) (\w+)", line)
            if found and above:
                name = found[1] if re.search(r"\bstruct\b", line) else within + found[1]
                docs.setdefault(name, "\n".join(above))
            # Attributes may stand between a comment and its item, over several lines.
            if found or bare == "" or bare.endswith(";"):
                above = []
    return docs


def modules_of(init: ast.Module) -> dict[str, str]:
    """The module of each public name, including those that the package imports lazily."""
    return {
        alias.asname or alias.name: (node.module or "").removeprefix("quarrier.")
        for node in ast.walk(init)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quarrier")
        for alias in node.names
    }


def definitions(path: Path) -> dict[str, Definition]:
    body = ast.parse(path.read_text()).body
    return {node.name: node for node in body if isinstance(node, Definition)}


def aliases_of(path: Path) -> dict[str, str]:
    """The meaning of a module's type aliases."""
    return {
        node.target.id: ast.unparse(node.value)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value
        and ast.unparse(node.annotation) == "TypeAlias"
    }


def member_docs(definition: Definition) -> dict[str, str]:
    """The docstrings of methods, and of fields with a docstring below them."""
    docs: dict[str, str] = {}
    last = ""
    for node in definition.body:
        if isinstance(node, Function):
            docs[node.name] = ast.get_docstring(node) or ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            docs[last] = str(node.value.value)
        last = (
            node.target.id
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            else ""
        )
    return docs


def items() -> dict[str, Item]:
    rust = docs_of_rust()
    init = ast.parse((PACKAGE / "__init__.py").read_text())
    found: dict[str, Item] = {}
    for name, module in modules_of(init).items():
        native = module == "_native"
        path = PACKAGE / (f"{module}.pyi" if native else f"{module.replace('.', '/')}.py")
        definition = definitions(path).get(name) if path.exists() else None
        aliases = aliases_of(path) if path.exists() else {}
        if definition is None:
            continue
        if native:
            members = {k.split(".")[1]: v for k, v in rust.items() if k.startswith(f"{name}.")}
            found[name] = Item(definition, aliases, rust.get(name, ""), members)
        else:
            doc = ast.get_docstring(definition) or ""
            found[name] = Item(definition, aliases, doc, member_docs(definition))
    return found


def listed(doc: str) -> str:
    """Converts the sections of a docstring in numpy's style to paragraphs and lists of Markdown."""
    start, *sections = re.split(r"^(\w+)\n-{3,}\n", doc, flags=re.MULTILINE)
    parts = [start.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Examples":
            parts.append(body.strip())
            continue
        entries = re.findall(r"^(\S.*)\n((?: +.*\n?)*)", body, flags=re.MULTILINE)
        lines = [f"**{title}**\n"]
        for entry, text in entries:
            name, colon, kind = entry.partition(" : ")
            shown = f"`{name}` ({kind})" if colon else name
            lines.append(f"- {shown}: {textwrap.indent(textwrap.dedent(text), '  ').strip()}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def prose(doc: str) -> str:
    """Converts a docstring to Markdown, with lists of sections and fenced examples."""
    doc = listed(doc)
    doc = re.sub(r"\[(`[^`]+`)\](?!\()", r"\1", doc).strip()
    doc = re.sub(r"  # doctest: \+\w+", "", doc)
    doc = re.sub(r"^(>>> .*(?:\n\S.*)*)", r"```py\n\1\n```", doc, flags=re.MULTILINE)
    return re.sub(r"\n```\n\n```py\n", "\n\n", doc)


def arguments(function: Function, aliases: dict[str, str]) -> str:
    text = re.sub(r"^(self|cls)(, /)?(, )?", "", ast.unparse(function.args))
    for alias, meaning in aliases.items():
        text = re.sub(rf"\b{alias}\b", meaning, text)
    return re.sub(r"(: [^=]*?)=", r"\1 = ", text)


def signature(name: str, function: Function, aliases: dict[str, str]) -> str:
    """A call with its signature."""
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{name}({arguments(function, aliases)}){returns}"


def fence(call: str) -> str:
    """A call as a code block, with a line for each argument if one line is too short."""
    if len(call) > LINE_CHARACTERS_MAX:
        start, rest = call.split("(", 1)
        inner, end = rest.rsplit(")", 1)
        call = f"{start}(\n    " + re.sub(r", (?=\w+:|\*)", ",\n    ", inner) + f",\n){end}"
    return f"```py\n{call}\n```"


def is_public(name: str) -> bool:
    return not name.startswith("_")


def is_property(function: Function) -> bool:
    return any(
        isinstance(mark, ast.Name) and mark.id == "property" for mark in function.decorator_list
    )


def members(item: Item) -> list[str]:
    lines: list[str] = []
    for node in item.definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, shown = node.target.id, f"{node.target.id}: {ast.unparse(node.annotation)}"
        elif isinstance(node, Function):
            name = node.name
            if is_property(node):
                shown = f"{name}: {ast.unparse(node.returns)}" if node.returns else name
            else:
                shown = signature(name, node, item.aliases)
            if isinstance(node, ast.AsyncFunctionDef):
                shown = f"async {shown}"
        else:
            continue
        if is_public(name):
            doc = " ".join(prose(item.member_docs.get(name, "").split("\n\n")[0]).split())
            lines.append(f"- `{shown}`" + (f"<br>{doc}" if doc else ""))
    return lines


def constructor(name: str, item: Item) -> str | None:
    for node in item.definition.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__new__":
            return f"{name}({arguments(node, item.aliases)})"
    return None


def described(name: str, item: Item) -> str:
    parts = [f"### {name}"]
    if isinstance(item.definition, ast.FunctionDef):
        parts.append(fence(signature(name, item.definition, item.aliases)))
    elif called := constructor(name, item):
        parts.append(fence(called))
    parts.append(prose(item.doc))
    if isinstance(item.definition, ast.ClassDef):
        parts.append("\n".join(members(item)))
    return "\n\n".join(part for part in parts if part)


def parallel() -> str:
    """The subpackage, with one module for each function."""
    parts = ["## quarrier.parallel"]
    init = ast.parse((PACKAGE / "parallel/__init__.py").read_text())
    for name, module in modules_of(init).items():
        path = PACKAGE / f"{module.replace('.', '/')}.py"
        definition = definitions(path)[name]
        item = Item(definition, {}, ast.get_docstring(definition) or "", member_docs(definition))
        parts.append(described(name, item))
    return "\n\n".join(parts)


def cluster() -> str:
    """The module of clusters."""
    path = PACKAGE / "cluster.py"
    parts = ["## quarrier.cluster"]
    for name, definition in definitions(path).items():
        if is_public(name):
            doc = ast.get_docstring(definition) or ""
            item = Item(definition, aliases_of(path), doc, member_docs(definition))
            parts.append(described(name, item))
    return "\n\n".join(parts)


def errors(every: dict[str, Item]) -> str:
    rows = ["## Errors", "| class | also a | means |\n|---|---|---|"]
    for name in sorted(every):
        definition = every[name].definition
        if isinstance(definition, ast.ClassDef) and name.endswith(("Error", "Warning")):
            bases = [ast.unparse(base) for base in definition.bases]
            others = ", ".join(f"`{base}`" for base in bases if base != "QuarrierError")
            doc = " ".join(every[name].doc.split("\n\n")[0].split())
            rows[-1] += f"\n| `{name}` | {others} | {doc} |"
    return "\n\n".join(rows)


def page() -> str:
    every = items()
    grouped = {name for names in SECTIONS.values() for name in names.split()}
    lost = [
        n
        for n in every
        if n not in grouped and not n.endswith(("Error", "Warning")) and n[0] != "_"
    ]
    lost.remove("register_when_imported")
    if lost:
        sys.exit(f"python_api: {', '.join(lost)} is in none of the sections; add it to SECTIONS")
    parts = [HEAD.strip()]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        parts += [described(name, every[name]) for name in names.split()]
    parts += [parallel(), cluster(), errors(every)]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print("docs/python.md is stale; run scripts/python_api.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
