"""The tests of YARA-X: the rules and data of its unit tests in Rust, and its sample files.

`tests` reads calls of the macros `condition_true!`, `rule_false!`, `pattern_match!` and so on, if their data are
literals, arrays, sample files, or variables bound to one of these.
"""

from __future__ import annotations

import ast
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CALL = re.compile(r"\b(condition|rule|pattern)_(true|false|match)!\s*\(|\btest_rule!\s*\(")
BOUND = re.compile(r"\blet\s+(\w+)\s*(?::[^=]+)?=\s*([^;]+);")
RAW = re.compile(r'b?r(#*)"(.*?)"\1', re.S)
PLAIN = re.compile(r'b?"((?:[^"\\]|\\.)*)"', re.S)
SAMPLE = re.compile(r'create_binary_from_zipped_ihex\(\s*"([^"]+)"', re.S)
ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]+)\}|(\n\s*)|(.))", re.S)
PLAIN_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0"}


class Test(NamedTuple):
    """A rule, its data, and whether it holds there."""

    place: str
    rules: str
    data: bytes
    holds: bool


def samples(checkout: Path) -> Iterator[tuple[str, bytes]]:
    """The sample files of the modules: in the form of Intel hex, in zip archives."""
    for path in sorted(checkout.glob("lib/src/modules/*/tests/testdata/*.in.zip")):
        yield f"{path.parts[-4]}-{path.name.removesuffix('.in.zip')}", sample(path)


def sample(path: Path) -> bytes:
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        lines = archive.read(path.name.removesuffix(".zip")).splitlines()
    data = bytearray()
    for line in lines:
        record = bytes.fromhex(line.strip()[1:].decode())
        if len(record) > 4 and record[3] == 0:
            data += record[4 : 4 + record[0]]
    return bytes(data)


def tests(checkout: Path) -> tuple[list[Test], list[str]]:
    """The tests, and the places of those that are not understood."""
    found, others = [], []
    for path in sorted(checkout.glob("lib/src/**/*.rs")):
        text = path.read_text()
        if "_true!" not in text:
            continue
        bound: dict[str, str] = {}
        ends = sorted([*CALL.finditer(text), *BOUND.finditer(text)], key=re.Match.start)
        for match in ends:
            if match.re is BOUND:
                bound[match[1]] = match[2]
                continue
            if text[: match.start()].endswith("macro_rules! ") or not text[match.end() :].strip():
                continue
            place = f"{path.relative_to(checkout)}:{text.count(chr(10), 0, match.start()) + 1}"
            test = one(match, arguments(text, match.end()), bound, checkout)
            if test:
                found.append(Test(place, *test))
            else:
                others.append(place)
    return found, others


def one(
    call: re.Match[str], parts: list[str], bound: dict[str, str], checkout: Path
) -> tuple[str, bytes, bool] | None:
    rules = literal(parts[0])
    data = value(parts[1], bound, checkout) if len(parts) > 1 else b""
    if rules is None or data is None:
        return None
    text = rules.decode()
    match call[1]:
        case "condition":
            text = f"rule t {{ condition: {text} }}"
        case "pattern":
            text = f"rule test {{ strings: $a = {text} condition: $a }}"
    if call[1] is None:
        if len(parts) != 3 or parts[2] not in ("true", "false"):
            return None
        return text, data, parts[2] == "true"
    return text, data, call[2] != "false"


def arguments(text: str, at: int) -> list[str]:
    """The arguments of a call that begins before `at`."""
    parts, depth, start = [], 0, at
    while at < len(text):
        if quoted := RAW.match(text, at) or PLAIN.match(text, at):
            at = quoted.end()
            continue
        if text.startswith("//", at):
            at = text.find("\n", at)
            continue
        character = text[at]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if depth < 0 or (character == "," and depth == 0):
            parts.append(text[start:at].strip())
            start = at + 1
        if depth < 0:
            break
        at += 1
    return [re.sub(r"^(?://[^\n]*\n\s*)+", "", part) for part in parts if part]


def value(text: str, bound: dict[str, str], checkout: Path, depth: int = 0) -> bytes | None:
    """The bytes of an expression; None if it is not understood."""
    text = re.sub(r"\.(as_bytes|as_slice|to_vec|as_ref|as_str)\(\)$", "", text.strip().lstrip("&").strip()).strip()
    text = text.removesuffix("[..]")
    if (raw := literal(text)) is not None:
        return raw
    if text == "JUMPS_DATA":
        return (checkout / "lib/src/tests/testdata/jumps.bin").read_bytes()
    if call := SAMPLE.match(text):
        path = checkout / "lib" / call[1]
        return sample(path) if path.exists() else None
    if text.startswith("[") and text.endswith("]"):
        body = re.sub(r"//[^\n]*", "", text[1:-1]).replace("_u8", "").replace("u8", "")
        if repeated := re.fullmatch(r"\s*(\w+)\s*;\s*(\d+)\s*", body):
            return bytes([int(repeated[1], 0)]) * int(repeated[2])
        try:
            numbers = re.sub(r"b'(.)'", lambda quoted: str(ord(quoted[1])), body)
            return bytes(ast.literal_eval(f"[{numbers}]"))
        except (ValueError, SyntaxError, TypeError):
            return None
    if text in bound and depth < 4:
        return value(bound[text], bound, checkout, depth + 1)
    return None


def literal(text: str) -> bytes | None:
    """The bytes of a literal of Rust; None for other expressions."""
    text = text.strip()
    if raw := RAW.fullmatch(text):
        return raw[2].encode()
    if plain := PLAIN.fullmatch(text):
        return ESCAPE.sub(escaped, plain[1].encode())
    return None


def escaped(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return bytes([int(match[1], 16)])
    if match[2]:
        return chr(int(match[2], 16)).encode()
    if match[3]:
        return b""
    return PLAIN_ESCAPES.get(match[4], match[4])
