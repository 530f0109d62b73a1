#!/usr/bin/env python3
"""Builds the documentation as a site, and checks every link in it: site.py OUT

It fails on a page that no list of docs/index.md has, a link to a missing page or heading, and an
environment variable that docs/environment.md lacks. Links to other sites are not followed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/quarrier/quarrier/blob/main/"


class Page(HTMLParser):
    """The links of a page, and the anchors that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value and tag != "form":
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def build(out: Path) -> bool:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "html"]
    # Keep doctrees out of the site.
    command += ["-d", str(out.parent / "doctrees"), str(ROOT / "docs"), str(out)]
    return subprocess.run(command).returncode == 0


def dead_links(out: Path) -> list[str]:
    pages = {path: Page(path.read_text()) for path in sorted(out.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            )
            if not target.exists():
                dead.append(f"{path.relative_to(out)}: {link} leads nowhere")
            elif parts.fragment and target in pages:
                anchor = urllib.parse.unquote(parts.fragment)
                # An empty anchor, and `top`, are the start of the page.
                if anchor != "top" and anchor not in pages[target].anchors:
                    dead.append(f"{path.relative_to(out)}: {link} has no such heading")
    return dead


def headings(markdown: str) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    titles = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_addresses(text: str) -> list[str]:
    """Links to missing files of the repository, or missing headings of its pages."""
    dead = []
    for link in Page(text).links:
        if not link.startswith(REPOSITORY):
            continue
        name, _, anchor = link.removeprefix(REPOSITORY).partition("#")
        path = ROOT / name
        if not path.exists():
            dead.append(f"the repository has no {name}")
        elif anchor and path.suffix == ".md" and anchor not in headings(path.read_text()):
            dead.append(f"{name} has no heading #{anchor}")
    return dead


def undocumented_variables() -> list[str]:
    """Environment variables that the programs read and docs/environment.md lacks."""
    page = (ROOT / "docs/environment.md").read_text()
    names: set[str] = set()
    for path in (ROOT / "crates").glob("*/src/**/*.rs"):
        text = path.read_text().split("#[cfg(test)]")[0]
        names |= set(re.findall(r'(?:var_os|variable|env::var)\("([A-Z_]+)"\)', text))
        for proxies in re.findall(r"first\(&\[([^\]]*)\]\)", text):
            names |= set(re.findall(r'"(\w+_proxy|\w+_PROXY)"', proxies))
    return sorted(name for name in names if f"`{name}`" not in page)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: site.py OUT", file=sys.stderr)
        return 2
    out = Path(sys.argv[1]).resolve()
    if not build(out):
        return 1
    dead = dead_links(out)
    for path in sorted(out.rglob("*.html")):
        dead += [f"{path.relative_to(out)}: {line}" for line in dead_addresses(path.read_text())]
    dead += [f"environment.md: {name} is missing" for name in undocumented_variables()]
    for line in dict.fromkeys(dead):
        print(f"site: {line}", file=sys.stderr)
    if not dead:
        print(f"the documentation is in {out}/index.html")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
