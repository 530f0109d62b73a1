#!/usr/bin/env python3
"""The rules of a file over a file or the files of a folder by YARA-X, a line of rule and path for each that holds:
rules_yara_x.py [--fast] [--processes N] RULES PATH

With --fast, the scanner finds only as many matches as a condition needs.
"""

from __future__ import annotations

import argparse
import multiprocessing
from pathlib import Path

import yara_x


class Scan:
    """Scans a file; each process makes one after it was forked, with the rules compiled before."""

    rules: yara_x.Rules
    is_fast = False
    scanner: yara_x.Scanner | None = None

    @classmethod
    def held(cls, path: Path) -> list[str]:
        if cls.scanner is None:
            cls.scanner = yara_x.Scanner(cls.rules)
            cls.scanner.fast_scan(cls.is_fast)
        return [f"{rule.identifier} {path}" for rule in cls.scanner.scan_file(str(path)).matching_rules]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("rules", type=Path)
    parser.add_argument("path", type=Path)
    asked = parser.parse_args()
    compiler = yara_x.Compiler(relaxed_re_syntax=True)
    compiler.add_source(asked.rules.read_text())
    Scan.rules, Scan.is_fast = compiler.build(), asked.fast
    paths = (
        sorted(path for path in asked.path.rglob("*") if path.is_file()) if asked.path.is_dir() else [asked.path]
    )
    if asked.processes == 1:
        lines = map(Scan.held, paths)
    else:
        with multiprocessing.get_context("fork").Pool(asked.processes) as pool:
            lines = iter(pool.map(Scan.held, paths, chunksize=8))
    for some in lines:
        for line in some:
            print(line)


if __name__ == "__main__":
    main()
