#!/usr/bin/env python3
"""Writes the README's table of rivals from benchmarks/records: rivals.py [--check]

The latest full record of each part counts. --check writes nothing, and fails where the table is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- rivals: written by benchmarks/python/rivals.py; do not edit -->"
END = "<!-- rivals: end -->"
PATTERNS_SHOWN = (1, 100, 10_000, 100_000)


def latest(part: str) -> Any:
    """The latest full record of this part."""
    found = [
        record
        for path in (ROOT / "benchmarks/records").glob("*.json")
        for record in json.loads(path.read_text())
        if part in record and record.get("scale", "full") == "full"
    ]
    return max(found, key=lambda record: record["date"])[part]


def digits(value: float) -> str:
    """Formats three significant digits, two below ten, or all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2g}"


def row(task: str, ours: str, rivals: dict[str, str], times: float) -> str:
    others = ", ".join(f"{name} {value}" for name, value in rivals.items())
    return f"| {task} | {ours} | {others} | {digits(times)} |"


def search() -> list[str]:
    rows = []
    for case in latest("search"):
        if case["patterns"] not in PATTERNS_SHOWN:
            continue
        seconds = {c["name"]: c["whole_seconds"]["median"] for c in case["contenders"]}
        rates = {name: digits(case["image_bytes"] / s / 1e9) for name, s in seconds.items()}
        task = f"Search 1 GiB for {case['patterns']:,} literal{'s' * (case['patterns'] > 1)}, GB/s"
        rivals = {name: rates[name] for name in ("vectorscan", "ripgrep") if name in rates}
        times = [
            case["times_as_fast"][key]["median"]
            for key in ("whole_to_vectorscan", "whole_to_ripgrep")
            if case["times_as_fast"][key]
        ]
        rows.append(row(task, rates["quarrier"], rivals, min(times)))
    return rows


def hostile() -> list[str]:
    case = min(latest("hostile"), key=lambda case: case["times_as_fast"]["whole"]["median"])
    seconds = {c["name"]: c["whole_seconds"]["median"] for c in case["contenders"]}
    task = f"The least favourable of seven hostile inputs ({case['input']}), ms"
    rivals = {"aho-corasick": digits(seconds["aho-corasick"] * 1e3)}
    ours = digits(seconds["quarrier"] * 1e3)
    return [row(task, ours, rivals, case["times_as_fast"]["whole"]["median"])]


def carving() -> list[str]:
    part = latest("carving")
    tools = {tool["name"]: tool for tool in part["contenders"]}
    shown = {name: f"{tool['exact']} in {digits(tool['seconds'])}" for name, tool in tools.items()}
    task = f"Carve {part['planted']} planted files from 1 GiB: bit for bit, s"
    rivals = {name: shown[name] for name in ("photorec", "foremost")}
    times = tools["photorec"]["seconds"] / tools["quarrier"]["seconds"]
    return [row(task, shown["quarrier"], rivals, times)]


def sql() -> list[str]:
    ask, rows = latest("ask"), []
    for name, milliseconds in ask["questions"]:
        if name.startswith(("join with", "twenty")):
            by_name = dict(zip(ask["contenders"], milliseconds, strict=True))
            ours = by_name.pop("quarrier query")
            by_name.pop("Table")
            theirs = {rival: ms for rival, ms in by_name.items() if ms is not None}
            rivals = {rival: digits(ms) for rival, ms in theirs.items()}
            task = f"{ask['rows'] / 1e6:g} M orders in memory: {name}, ms"
            rows.append(row(task, digits(ours), rivals, min(theirs.values()) / ours))
    for where, key in (("in memory", "in_memory_seconds"), ("from Parquet", "parquet_seconds")):
        seconds = dict(latest("tpch")[key])
        ours = seconds.pop("quarrier")
        rivals = {name: digits(s) for name, s in sorted(seconds.items(), key=lambda pair: pair[1])}
        rows.append(row(f"TPC-H at scale 1, {where}, s", digits(ours), rivals, min(seconds.values()) / ours))
    return rows


def remote() -> list[str]:
    case = next(c for c in latest("traces") if (c["file"], c["read"]) == ("photos.zip", "zip_names"))

    def shown(way: dict[str, float]) -> str:
        return f"{way['requests']} · {way['body_bytes'] / 1000:,.0f} kB · {way['seconds'] * 1000:.0f} ms"

    ways = case["contenders"]
    best = min(ways["fsspec readahead"]["seconds"], ways["fsspec blockcache"]["seconds"])
    rivals = {name: shown(ways[name]) for name in ("fsspec readahead", "fsspec blockcache")}
    task = "Names in a remote zip, 20 ms away: requests · bytes · time"
    return [row(task, shown(ways["quarrier"]), rivals, best / ways["quarrier"]["seconds"])]


def sparse() -> list[str]:
    cases = latest("sparse_python")
    case = next(c for c in cases if (c["name"], c["block"]) == ("read, joined", 64))
    ours, theirs = (digits(case[side]["median"] * 1e9) for side in ("ours", "against"))
    times = case["times_as_good"]["median"]
    return [row("Sparse file, read 64 bytes from Python, ns", ours, {"svfsc": theirs}, times)]


def table() -> str:
    head = ["| task | quarrier | rivals | times as fast as the best |", "|---|---:|---|---:|"]
    rows = [*search(), *hostile(), *carving(), *sql(), *remote(), *sparse()]
    return "\n".join([BEGIN, *head, *rows, END])


def main() -> int:
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, rest = text.split(BEGIN)
    new = before + table() + rest.split(END)[1]
    if "--check" in sys.argv[1:]:
        if new != text:
            print("README.md: the table of rivals is stale; run benchmarks/python/rivals.py", file=sys.stderr)
        return int(new != text)
    readme.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
