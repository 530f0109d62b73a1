"""Sphinx configuration of the documentation site, which scripts/site.py builds.

The pages are the Markdown files of this folder, as GitHub shows them. While Sphinx reads them,
this module adds a table of contents from the lists of index.md, and points links to files outside
this folder at GitHub.
"""

from __future__ import annotations

import re

REPOSITORY = "https://github.com/quarrier/quarrier"

project = "quarrier"
copyright = "the authors of quarrier"
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["requirements.txt"]
html_theme = "furo"
html_title = "quarrier"
html_extra_path = ["gauge.schema.json"]
html_show_sphinx = False
myst_heading_anchors = 4
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "END"
# Blocks of shell sessions also contain output, which no lexer can parse.
suppress_warnings = ["misc.highlighting_failure"]

LINK = re.compile(r"\]\(((?:\.\./)+)([^)#]+)(#[^)]*)?\)")


def contents(index: str) -> str:
    """Returns a hidden table of contents for each list of pages."""
    trees = []
    for title, section in re.findall(
        r"^## (.+?)\n(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL
    ):
        pages = re.findall(r"\]\(([\w/.-]+\.md)\)", section)
        pages = [page for page in pages if not page.startswith("..")]
        lines = ["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"]
        trees.append("\n".join(lines))
    return "\n\n".join(trees)


def prepare(app: object, name: str, text: list[str]) -> None:
    depth = name.count("/")

    def address(link: re.Match[str]) -> str:
        up, path, anchor = link[1], link[2], link[3] or ""
        if up.count("/") <= depth:
            return link[0]
        return f"]({REPOSITORY}/blob/main/{path}{anchor})"

    text[0] = LINK.sub(address, text[0])
    if name == "index":
        text[0] += "\n" + contents(text[0])


def setup(app: object) -> None:
    app.connect("source-read", prepare)  # type: ignore[attr-defined]
