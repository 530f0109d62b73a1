#!/usr/bin/env python3
"""The same YARA rules over the same files by quarrier and by YARA-X, and every difference:
rules_agreement.py PROGRAM FOLDER [--yara-x CHECKOUT] [--rules FOLDER]... [--files FOLDER]... [--mib N] [--seed N]

With --yara-x, a checkout of YARA-X, its unit tests run, the fields of its modules are compared over their sample
files, and these are among the files. Each --rules is a set: the rules of all its .yar and .yara files, the first
of each name. A set runs over at most N MiB of files of each --files, and over files with strings of its rules,
made from the seed.

It prints the rules that only one of the two refuses, with the reason, and each file and rule on which they differ,
with the answer of Debian's `yara` if it is installed. The exit status is 1 if there is a difference. YARA-X is the
Python package yara-x, with the syntax of regexes that YARA accepts (relaxed_re_syntax). FOLDER keeps the files.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import yara_x

import rules_fields
import rules_tests
import rules_texts
from rules_texts import Statement

#: A rule and the path of a file in which it holds.
Pair = tuple[str, str]

WRONG = re.compile(r": line (\d+), column \d+: (.*)", re.S)
LIMIT_SECONDS = 600


class Refused(NamedTuple):
    rule: str
    by: str
    reason: str


def compiler(is_relaxed: bool = True) -> yara_x.Compiler:
    made = yara_x.Compiler(relaxed_re_syntax=is_relaxed, includes_enabled=False)
    for name in rules_texts.VARIABLES:
        made.define_global(name, "")
    return made


def by_yara_x(rules: yara_x.Rules, paths: Iterable[Path]) -> set[Pair]:
    scanner = yara_x.Scanner(rules)
    scanner.set_timeout(LIMIT_SECONDS)
    held = set()
    for path in paths:
        for name, value in zip(rules_texts.VARIABLES, (path.name, str(path), path.suffix.lower())):
            scanner.set_global(name, value)
        held |= {(rule.identifier, str(path)) for rule in scanner.scan(path.read_bytes()).matching_rules}
    return held


class Quarrier:
    """The program, and the folder for its files of rules."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.command = [str(program.resolve()), "search", "--scopes", "source", "--format", "json", "-q"]
        self.rules = folder / "rules.yar"
        self.list = folder / "files.txt"
        self.empty = folder / "empty"
        self.empty.write_bytes(b"")

    def run(self, text: str, paths: Iterable[Path]) -> subprocess.CompletedProcess[bytes]:
        self.rules.write_text(text)
        self.list.write_text("".join(f"{path}\n" for path in paths))
        command = [*self.command, "--rules", str(self.rules), "--files-from", str(self.list)]
        return subprocess.run(command, capture_output=True, check=False, timeout=6 * LIMIT_SECONDS)

    def held(self, text: str, paths: Iterable[Path]) -> set[Pair]:
        done = self.run(text, paths)
        if done.stderr:
            print(f"  quarrier: {done.stderr.decode(errors='replace')[:2000]}")
        if done.returncode not in (0, 1, 3):
            sys.exit(f"quarrier: status {done.returncode}")
        rows = (json.loads(line) for line in done.stdout.split(b"\n") if line)
        return {(row["rule"], row["source"]) for row in rows}

    def wrong(self, text: str) -> tuple[int, str] | None:
        """The line of the first rule that is refused, and the reason; None if all are accepted."""
        done = self.run(text, [self.empty])
        if done.returncode in (0, 1):
            return None
        text = done.stderr.decode(errors="replace").strip()
        match = WRONG.search(text)
        return (int(match[1]), match[2]) if match else (0, text)


def texts(statements: Iterable[Statement]) -> str:
    return "".join(f"{statement.text}\n" for statement in statements)


def accepted_by_quarrier(
    quarrier: Quarrier, statements: Sequence[Statement], refused: list[Refused]
) -> list[Statement]:
    left = list(statements)
    while any(statement.rule for statement in left):
        wrong = quarrier.wrong(texts(left))
        if wrong is None:
            return left
        line, reason = wrong
        place = 0
        while line > (lines := left[place].text.count("\n") + 1):
            line -= lines
            place += 1
        refused.append(Refused(left[place].rule or f"import {left[place].module}", "quarrier", reason))
        del left[place]
    return []


def accepted_by_yara_x(statements: Sequence[Statement], refused: list[Refused]) -> list[Statement]:
    made, left, modules = compiler(), [], ""
    for statement in statements:
        try:
            # An import counts for its source only.
            made.add_source(modules + statement.text)
        except yara_x.CompileError as error:
            reason = str(error).splitlines()[0]
            refused.append(Refused(statement.rule or f"import {statement.module}", "YARA-X", reason))
            continue
        modules += f"{statement.text}\n" if statement.module else ""
        left.append(statement)
    return left


class Bundle:
    """Rules that both accept, in one namespace."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        statements = list(statements)
        modules = {statement.text: statement for statement in statements if statement.module}
        self.statements = [*modules.values(), *(statement for statement in statements if statement.rule)]
        self.text = texts(self.statements)

    @property
    def rules(self) -> list[Statement]:
        return [statement for statement in self.statements if statement.rule]


def bundles(quarrier: Quarrier, folder: Path, refused: list[Refused]) -> list[Bundle]:
    """The rules of a folder: those of all files together, and each file with a global rule by itself, since no
    other rule holds where that does not."""
    together: list[Statement] = []
    alone, names = [], set()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".yar", ".yara") and path.is_file()):
        statements = [
            statement
            for statement in rules_texts.read(path)
            if statement.module or (statement.rule and statement.rule not in names)
        ]
        names |= {statement.rule for statement in statements}
        # Until both accept the rest, since a rule may refer to one that was refused.
        before = None
        while before != statements:
            before = statements
            statements = accepted_by_quarrier(quarrier, accepted_by_yara_x(statements, refused), refused)
        if any(statement.is_global for statement in statements):
            alone.append(Bundle(statements))
        else:
            together += statements
    return [bundle for bundle in [Bundle(together), *alone] if bundle.rules]


def by_yara(text: str, folder: Path, path: str, *options: str) -> str:
    """What the program yara says about a file."""
    if not shutil.which("yara"):
        return "not installed"
    (folder / "yara.yar").write_text(text)
    values = zip(rules_texts.VARIABLES, (Path(path).name, path, Path(path).suffix.lower()))
    symbols = [part for name, value in values for part in ("-d", f"{name}={value}")]
    command = ["yara", "-w", *symbols, *options, str(folder / "yara.yar"), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"refuses it ({done.stderr.strip()[-200:]})"
    return "holds" if done.stdout.strip() else "does not hold"


def differences(quarrier: Quarrier, bundle: Bundle, paths: Sequence[Path], folder: Path) -> tuple[int, int]:
    """The number of pairs by YARA-X, and of those that only one of the two has, which it prints."""
    made = compiler()
    made.add_source(bundle.text)
    theirs = by_yara_x(made.build(), paths)
    ours = quarrier.held(bundle.text, paths)
    for pair in sorted(ours ^ theirs):
        who = "quarrier" if pair in ours else "YARA-X"
        yara = by_yara(bundle.text, folder, pair[1], "-i", pair[0])
        print(f"  only by {who}: {pair[0]} in {pair[1]}; yara: {yara}")
    return len(theirs), len(ours ^ theirs)


def of_set(quarrier: Quarrier, rules: Path, files: Sequence[Path], folder: Path, seed: int) -> int:
    refused: list[Refused] = []
    sets = bundles(quarrier, rules, refused)
    count = sum(len(bundle.rules) for bundle in sets)
    print(f"{rules.name}: {count} rules that both accept, {len(refused)} that one refuses")
    for (by, reason), number in Counter((one.by, one.reason) for one in refused).most_common():
        first = next(one.rule for one in refused if (one.by, one.reason) == (by, reason))
        print(f"  {by} refuses {number}, such as {first}: {reason}")
    different = 0
    made = folder / "planted" / rules.name
    made.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    planted = []
    for bundle in sets:
        for rule in bundle.rules:
            path = made / f"{rule.rule}.bin"
            path.write_bytes(rules_texts.planted(draw, rule.text))
            planted.append(path)
    for what, paths in (("files", files), ("files with strings of the rules", planted)):
        if not paths:
            continue
        results = [differences(quarrier, bundle, paths, folder) for bundle in sets]
        pairs, differ = (sum(numbers) for numbers in zip(*results))
        size = sum(path.stat().st_size for path in paths) / (1 << 20)
        print(
            f"  {len(paths)} {what}, {size:.0f} MiB: {pairs} times a rule holds, {differ} differences", flush=True
        )
        different += differ
    return different


def of_tests(quarrier: Quarrier, checkout: Path) -> int:
    tests, others = rules_tests.tests(checkout)
    print(f"tests of YARA-X: {len(tests)}; {len(others)} calls are not understood")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "data.bin"
        for test in tests:
            path.write_bytes(test.data)
            outcome, text = of_test(quarrier, test, path)
            outcomes[outcome] += 1
            if text:
                print(f"  {test.place}: {outcome}: {text}")
    print("  " + ", ".join(f"{number} {outcome}" for outcome, number in outcomes.most_common()), flush=True)
    return outcomes["different"]


def of_test(quarrier: Quarrier, test: rules_tests.Test, path: Path) -> tuple[str, str]:
    """How a test comes out, and details unless both agree."""
    made = compiler(is_relaxed=False)
    try:
        made.add_source(test.rules)
    except yara_x.CompileError as error:
        return "refused by this build of YARA-X", "" if "test_proto" in test.rules else str(error).splitlines()[0]
    theirs = by_yara_x(made.build(), [path])
    if (len(theirs) > 0) != test.holds:
        return "not as the test says", f"YARA-X has {sorted(theirs)}"
    if (wrong := quarrier.wrong(test.rules)) is not None:
        return "refused by quarrier", f"{wrong[1]}: {' '.join(test.rules.split())}"
    ours = quarrier.held(test.rules, [path])
    if ours != theirs:
        text, shown = " ".join(test.rules.split()), test.data[:80]
        yara = by_yara(test.rules, path.parent, str(path))
        is_held = "holds" if test.holds else "does not hold"
        return "different", f"YARA-X: {is_held}; yara: {yara}: {text} over {shown!r}"
    return "equal", ""


def of_fields(quarrier: Quarrier, samples: Iterable[Path]) -> int:
    """Compares the fields of the modules over the sample files; prints those with other values, and those that
    only YARA-X has."""
    unknown: dict[str, str] = {}
    different: dict[str, list[str]] = {}
    compared = 0
    for path in samples:
        made = compiler()
        made.add_source(rules_fields.texts([]) + "rule a { condition: true }")
        outputs = yara_x.Scanner(made.build()).scan(path.read_bytes()).module_outputs
        fields = those_of_rules(rules_fields.fields(outputs))
        while True:
            fields = [field for field in fields if field.name not in unknown]
            wrong = quarrier.wrong(rules_fields.texts(fields)) if fields else None
            if wrong is None:
                break
            unknown[fields[wrong[0] - 2].name] = wrong[1]
        if not fields:
            continue
        held = {rule for rule, _ in quarrier.held(rules_fields.texts(fields), [path])}
        compared += len(fields)
        for place, field in enumerate(fields):
            if f"f{place}" not in held:
                different.setdefault(field.name, []).append(f"{field.condition[:60]} in {path.name[:24]}")
    count = sum(map(len, different.values()))
    print(f"fields of modules: {compared} values of sample files compared, {count} differ")
    for name, places in different.items():
        print(f"  {name}: {len(places)}, such as {places[0]}")
    print(f"  only YARA-X has {', '.join(unknown)}", flush=True)
    return count


def those_of_rules(fields: Iterable[rules_fields.Field]) -> list[rules_fields.Field]:
    """The fields that rules for YARA-X may use; its output has some others."""
    imports, taken = rules_fields.texts([]), []
    usable: dict[str, bool] = {}
    for field in fields:
        if field.name not in usable:
            made = compiler()
            try:
                made.add_source(f"{imports} rule a {{ condition: {field.condition} }}")
                usable[field.name] = True
            except yara_x.CompileError:
                usable[field.name] = False
        if usable[field.name]:
            taken.append(field)
    return taken


#: What the formats of compressed files begin with: quarrier searches their content.
COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")


def chosen(folder: Path, mib: int, draw: random.Random) -> list[Path]:
    """Files of a folder, in random order, up to a size in all, without compressed ones."""
    paths = [
        path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and "\n" not in str(path)
    ]
    draw.shuffle(paths)
    left, taken = mib << 20, []
    for path in paths:
        size = path.stat().st_size
        with path.open("rb") as file:
            is_compressed = file.read(8).startswith(COMPRESSED)
        if size <= left and not is_compressed:
            left -= size
            taken.append(path)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--yara-x", type=Path)
    parser.add_argument("--rules", type=Path, action="append", default=[])
    parser.add_argument("--files", type=Path, action="append", default=[])
    parser.add_argument("--mib", type=int, default=64, help="MiB of files of each folder")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    quarrier = Quarrier(asked.program, folder)
    files: list[Path] = []
    samples: list[Path] = []
    different = 0
    for place in asked.files:
        files += chosen(place.resolve(), asked.mib, random.Random(asked.seed))
    if asked.yara_x:
        different += of_tests(quarrier, asked.yara_x)
        (folder / "samples").mkdir(exist_ok=True)
        for name, data in rules_tests.samples(asked.yara_x):
            path = folder / "samples" / name
            path.write_bytes(data)
            samples.append(path)
        different += of_fields(quarrier, samples)
        files += samples
    for rules in asked.rules:
        different += of_set(quarrier, rules.resolve(), files, folder, asked.seed)
    print(f"{different} differences")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
