"""The text of YARA rules: statements of a file, and bytes that match strings of a rule."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: The variables that quarrier defines for each scope.
VARIABLES = ("filename", "filepath", "extension")

NAMED = re.compile(r"(?:(?:private|global)\s+)*rule\s+(\w+)")
IMPORT = re.compile(r'import\s+"([^"]*)"')
STRING = re.compile(r"\$(\w*)\s*=\s*")
MAGIC = re.compile(r"\buint(8|16|32)(be)?\s*\(\s*0\s*\)\s*==\s*(0x[0-9a-fA-F]+|\d+)\b")
ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", '"': b'"', "\\": b"\\"}


class Statement(NamedTuple):
    """An import, an include or a rule."""

    text: str
    #: The name of the rule; empty for other statements.
    rule: str
    #: The imported module; empty for other statements.
    module: str

    @property
    def is_global(self) -> bool:
        return bool(self.rule) and "global" in self.text.split("rule", 1)[0]


def read(path: Path) -> list[Statement]:
    """The statements of a file of rules."""
    text = path.read_bytes().decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    return list(statements(text))


def statements(text: str) -> Iterator[Statement]:
    start, at, depth = 0, 0, 0
    while at < len(text):
        if (after := comment_end(text, at)) is not None:
            # Comments between statements are left out.
            start = after if depth == 0 and not text[start:at].strip() else start
            at = after
            continue
        character, ends = text[at], False
        if character == '"':
            at = quoted_end(text, at)
            ends = depth == 0
        elif character == "/":
            at = quoted_end(text, at)
        else:
            depth += {"{": 1, "}": -1}.get(character, 0)
            ends = character == "}" and depth <= 0
            at += 1
        if ends:
            yield statement(text[start:at].strip())
            start, depth = at, 0


def statement(text: str) -> Statement:
    rule, module = NAMED.match(text), IMPORT.match(text)
    return Statement(text, rule[1] if rule else "", module[1] if module else "")


def comment_end(text: str, at: int) -> int | None:
    """The end of a comment; None if none begins here."""
    for opening, closing in (("//", "\n"), ("/*", "*/")):
        if text.startswith(opening, at):
            end = text.find(closing, at + 2)
            return len(text) if end < 0 else end + len(closing)
    return None


def quoted_end(text: str, at: int) -> int:
    """The end of a quoted string or of a regex."""
    quote, at = text[at], at + 1
    while at < len(text) and text[at] != quote and not (quote == "/" and text[at] == "\n"):
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))


class String(NamedTuple):
    """A string of a rule: bytes that match it, without its modifiers, and these."""

    raw: bytes
    modifiers: frozenset[str]


def strings(draw: random.Random, rule: str) -> Iterator[String]:
    """The strings of a rule for which matching bytes are simple to make."""
    body = re.split(r"\bcondition\s*:", rule)[0]
    end = max(body.find("strings"), 0)
    while (match := STRING.search(body, end)) is not None:
        at = end = match.end()
        if body[at : at + 1] in ('"', "/"):
            end = quoted_end(body, at)
        elif body[at : at + 1] == "{":
            end = body.find("}", at) + 1
        else:
            continue
        value, rest = body[at:end], body[end:].split("\n", 1)[0]
        modifiers = frozenset(re.findall(r"[a-z0-9]+", rest.split("//")[0].split("$")[0]))
        raw = {'"': of_literal, "{": of_hex, "/": of_regex}[value[0]](draw, value)
        if raw:
            yield String(raw, modifiers)


def of_literal(_draw: random.Random, value: str) -> bytes:
    raw = bytearray()
    for token in re.findall(r"\\x[0-9a-fA-F]{2}|\\.|[^\\]+", value[1:-1], re.S):
        if token.startswith("\\x"):
            raw.append(int(token[2:], 16))
        elif token.startswith("\\"):
            raw += ESCAPES.get(token[1], token[1].encode())
        else:
            raw += token.encode()
    return bytes(raw)


def of_hex(draw: random.Random, value: str) -> bytes:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", value[1:-1], flags=re.S)
    # One of the alternatives, from the innermost on.
    while (choice := re.search(r"\(([^()]*)\)", text)) is not None:
        text = text[: choice.start()] + draw.choice(choice[1].split("|")) + text[choice.end() :]
    raw = bytearray()
    for token in re.findall(r"\[[^\]]*\]|~?[0-9A-Fa-f?]\s*[0-9A-Fa-f?]", text):
        if token.startswith("["):
            least, _, most = token[1:-1].partition("-")
            first = int(least.strip() or 0)
            last = int(most.strip() or first + 20) if "-" in token else first
            raw += draw.randbytes(
                draw.choice([first, min(last, first + 200), draw.randint(first, min(last, 400))])
            )
        elif token.startswith("~"):
            raw.append(draw.randrange(256))
        else:
            digits = re.sub(r"\s", "", token)
            raw.append(int("".join(draw.choice("0123456789abcdef") if d == "?" else d for d in digits), 16))
    return bytes(raw)


def of_regex(draw: random.Random, value: str) -> bytes:
    """Bytes that match most simple regexes; others are left out."""
    try:
        parsed = re._parser.parse(value[1:-1].replace("\\/", "/"))  # type: ignore[attr-defined]
        return b"".join(of_nodes(draw, parsed))
    except (re.error, KeyError, ValueError, OverflowError, RecursionError):
        return b""


def of_nodes(draw: random.Random, nodes: object) -> Iterator[bytes]:
    for kind, value in nodes:  # type: ignore[attr-defined]
        name = str(kind)
        if name == "LITERAL":
            yield chr(value).encode("latin-1" if value < 256 else "utf-8")
        elif name == "ANY":
            yield bytes([draw.choice(b"aZ09 ._-")])
        elif name == "NOT_LITERAL":
            yield b"x" if value != ord("x") else b"y"
        elif name == "IN":
            yield of_class(draw, value)
        elif name == "BRANCH":
            yield from of_nodes(draw, draw.choice(value[1]))
        elif name == "SUBPATTERN":
            yield from of_nodes(draw, value[-1])
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            for _ in range(draw.randint(least, min(int(most), least + 4))):
                yield from of_nodes(draw, inner)
        elif name != "AT":
            raise ValueError(name)


def of_class(draw: random.Random, parts: list[tuple[object, object]]) -> bytes:
    pattern = re.compile(
        "[" + "".join(class_part(str(kind), value) for kind, value in parts) + "]",
    )
    # Printable characters first, as they occur in text.
    common = [c for c in range(0x20, 0x7F) if pattern.match(chr(c))]
    return bytes([draw.choice(common or [c for c in range(256) if pattern.match(chr(c))])])


def class_part(kind: str, value: object) -> str:
    match kind:
        case "NEGATE":
            return "^"
        case "LITERAL":
            return re.escape(chr(value))  # type: ignore[arg-type]
        case "RANGE":
            return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"  # type: ignore[index]
    return {
        "DIGIT": r"\d",
        "SPACE": r"\s",
        "WORD": r"\w",
        "NOT_DIGIT": r"\D",
        "NOT_SPACE": r"\S",
        "NOT_WORD": r"\W",
    }[str(value).removeprefix("CATEGORY_")]


def widened(raw: bytes) -> bytes:
    return bytes(b for c in raw for b in (c, 0))


def planted(draw: random.Random, rule: str) -> bytes:
    """A file with the strings of a rule: in the forms that its modifiers ask for, mostly; after a header that its
    condition asks for, if it does."""
    parts = [magic(draw, rule)]
    for string in strings(draw, rule):
        for _ in range(draw.choice([1, 1, 1, 2, 6])):
            parts.append(draw.choice([b" ", b"\n", b"\0", b"\0\0", b"a", b"_", b"", b"a\0", draw.randbytes(7)]))
            parts.append(form(draw, string))
    parts.append(draw.choice([b"", b" ", b"\n", b"\0\0", b"z", draw.randbytes(300), bytes(2000)]))
    return b"".join(parts)


def magic(draw: random.Random, rule: str) -> bytes:
    values = MAGIC.findall(rule)
    if not values or draw.random() < 0.05:
        return draw.choice([b"", b"MZ", b"\x7fELF", b"PK\x03\x04", draw.randbytes(4)])
    bits, order, value = draw.choice(values)
    count = int(bits) // 8
    return (int(value, 0) & (256**count - 1)).to_bytes(count, "big" if order else "little")


def form(draw: random.Random, string: String) -> bytes:
    raw, modifiers = string
    if draw.random() < 0.1:
        return draw.choice([raw[:-1], raw[1:], raw.upper(), raw + raw[:1], widened(raw), raw.swapcase()])
    if "nocase" in modifiers:
        raw = draw.choice([raw, raw.upper(), raw.lower(), raw.swapcase()])
    if "base64" in modifiers or "base64wide" in modifiers:
        import base64

        encoded = base64.b64encode(draw.randbytes(draw.randrange(3)) + raw + draw.randbytes(3))
        return widened(encoded) if "base64" not in modifiers else encoded
    if "wide" in modifiers and ("ascii" not in modifiers or draw.random() < 0.5):
        raw = widened(raw)
    if "xor" in modifiers:
        key = draw.choice([0, 1, 255, draw.randrange(256)])
        raw = bytes(c ^ key for c in raw)
    return raw
