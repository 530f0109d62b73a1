#!/usr/bin/env python3
"""The dependencies of the programs: dependencies.py check | licences | sbom

    check     fails if deny.toml does not allow a licence, of quarrier-cluster's dependencies either
    licences  prints the licences of all dependencies, with their text
    sbom      prints the dependencies as a CycloneDX document

It gets the dependencies linked on this platform, or on that of the variable TARGET, from
`cargo metadata`, and the licence texts from
the sources that cargo downloaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# All packages that are distributed.
PROGRAMS = [
    "quarrier-c",
    "quarrier-cli",
    "quarrier-sql",
    "quarrier-python-light",
    "quarrier-python-sql",
]
# Built on request.
CLUSTER = "quarrier-cluster"
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)

Package = dict[str, Any]


def metadata() -> dict[str, Any]:
    """The metadata of the workspace, for the platform TARGET or this machine's."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = re.search(r"^host: (.*)$", version, re.MULTILINE)
    assert host is not None, version
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", os.environ.get("TARGET") or host[1]]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    known: dict[str, Any] = json.loads(answer.stdout)
    return known


def linked(
    known: dict[str, Any], programs: list[str]
) -> tuple[list[Package], dict[str, list[str]]]:
    """All packages that the programs link or run at build time, and the users of each."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    ways = {None, "normal", "build"}
    uses = {
        identity: sorted(
            dependency["pkg"]
            for dependency in node["deps"]
            if any(kind["kind"] in ways for kind in dependency["dep_kinds"])
        )
        for identity, node in nodes.items()
    }
    todo = [package["id"] for package in known["packages"] if package["name"] in programs]
    seen = set(todo)
    while todo:
        for identity in uses[todo.pop()]:
            if identity not in seen:
                seen.add(identity)
                todo.append(identity)
    found = sorted((packages[i] for i in seen), key=lambda p: (p["name"], p["version"]))
    return found, {identity: uses[identity] for identity in seen}


def is_ours(package: Package) -> bool:
    return package["source"] is None


def expression(package: Package) -> str:
    """The licence as an SPDX expression; in old manifests a slash means OR."""
    text: str = package["license"] or ""
    return re.sub(r"\s*/\s*", " OR ", text)


def is_allowed(text: str, allowed: set[str]) -> bool:
    """Whether the allowed licences alone satisfy an SPDX expression."""
    tokens = re.findall(r"[()]|[^\s()]+", text)
    place = 0

    def either() -> bool:
        nonlocal place
        good = both()
        while place < len(tokens) and tokens[place] == "OR":
            place += 1
            good = both() or good
        return good

    def both() -> bool:
        nonlocal place
        good = one()
        while place < len(tokens) and tokens[place] == "AND":
            place += 1
            good = one() and good
        return good

    def one() -> bool:
        nonlocal place
        if place >= len(tokens):
            return False
        token = tokens[place]
        place += 1
        if token == "(":
            good = either()
            place += 1
            return good
        if tokens[place : place + 1] == ["WITH"]:
            token = " ".join([token, *tokens[place : place + 2]])
            place += 2
        return token in allowed

    return bool(tokens) and either() and place == len(tokens)


def check(found: list[Package]) -> int:
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    bad = [package for package in found if not is_allowed(expression(package), allowed)]
    for package in bad:
        said = expression(package) or "none in its manifest"
        print(
            f"deny.toml: {package['name']} {package['version']} has the licence {said}, which is "
            "not allowed; remove it, or add the licence if its terms can be kept",
            file=sys.stderr,
        )
    return 1 if bad else 0


def licence_texts(package: Package) -> Iterator[str]:
    """The licence files beside a manifest, and the one it names."""
    folder = Path(package["manifest_path"]).parent
    files = {path for path in folder.iterdir() if path.is_file() and TEXTS.match(path.name)}
    for sub in (path for path in folder.iterdir() if path.is_dir()):
        # A folder of licences, or the C sources that the crate wraps.
        is_theirs = TEXTS.match(sub.name)
        files |= {p for p in sub.iterdir() if p.is_file() and (is_theirs or TEXTS.match(p.name))}
    if package["license_file"]:
        files.add((folder / package["license_file"]).resolve())
    for path in sorted(files):
        if path.suffix not in {".rs", ".py", ".sh", ".toml"}:
            yield path.read_text(errors="replace").replace("\r\n", "\n").strip()


def licences(found: list[Package]) -> int:
    """Prints each text once, under the names of all packages that it covers."""
    print("quarrier is made with the work of others, under these licences.\n")
    print("Rust's standard library: MIT OR Apache-2.0")
    users: dict[str, list[str]] = {}
    without: list[str] = []
    for package in found:
        if is_ours(package):
            continue
        name = f"{package['name']} {package['version']}"
        authors = ", ".join(re.sub(r"\s*<[^>]*>", "", author) for author in package["authors"])
        print(f"{name}: {expression(package)}{f' ({authors})' if authors else ''}")
        own = list(licence_texts(package))
        for text in own:
            users.setdefault(text, []).append(name)
        if not own:
            without.append(name)
    if without:
        print("\nThese come without a licence text; the texts of their licences follow:")
        print("\n".join(f"  {name}" for name in without))
    for text, names in sorted(users.items(), key=lambda item: item[1]):
        print(f"\n{'=' * 80}\n" + "\n".join(names) + f"\n{'-' * 80}\n{text}")
    return 0


def checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {
        (package["name"], package["version"]): package["checksum"]
        for package in lock["package"]
        if "checksum" in package
    }


def component(package: Package, sums: dict[tuple[str, str], str]) -> dict[str, Any]:
    name, version = package["name"], package["version"]
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if expression(package):
        described["licenses"] = [{"expression": expression(package)}]
    if (name, version) in sums:
        described["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    return described


def sbom(found: list[Package], uses: dict[str, list[str]]) -> int:
    sums = checksums()
    refs = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in found}
    version = next(package["version"] for package in found if package["name"] == "quarrier-cli")
    # The same dependencies get the same serial number, so that builds are reproducible.
    lock = hashlib.sha256((ROOT / "Cargo.lock").read_bytes()).hexdigest()
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"quarrier {version} {lock}")
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "quarrier",
                "name": "quarrier",
                "version": version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }
        },
        "components": [component(package, sums) for package in found],
        "dependencies": [
            {
                "ref": "quarrier",
                "dependsOn": [refs[p["id"]] for p in found if p["name"] in PROGRAMS],
            },
            *(
                {"ref": refs[package["id"]], "dependsOn": [refs[i] for i in uses[package["id"]]]}
                for package in found
            ),
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()
    return 0


def main() -> int:
    tasks = {"check", "licences", "sbom"}
    if len(sys.argv) != 2 or sys.argv[1] not in tasks:
        print("usage: dependencies.py check|licences|sbom", file=sys.stderr)
        return 2
    known = metadata()
    found, uses = linked(known, PROGRAMS)
    match sys.argv[1]:
        case "check":
            found, _ = linked(known, [*PROGRAMS, CLUSTER])
            return check(found)
        case "licences":
            return licences(found)
        case _:
            return sbom(found, uses)


if __name__ == "__main__":
    sys.exit(main())
