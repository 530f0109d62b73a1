#!/usr/bin/env python3
"""Runs the snippets of pages as a reader would: snippets.py [--python] PAGE.md…

Each page has its own folder and home, which are empty at first. Blocks of these languages run, in
the order of the page:

    console   each line that begins with `$ `, by sh. It must print the text below it, if any, in
              which `…` matches anything. A command that fails must be shown with its message.
              A command that ends with `&` runs until the page ends; the next command waits until
              it has printed the text below it.
    python    all blocks of a page as one program, after its commands (with --python only)
    pycon     the same, with each answer compared; `…` matches anything

A block does not run if the line before it is `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import argparse
import doctest
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^```(console|python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: .+ -->\n*\Z")
READY_SECONDS_MAX = 30
COMMAND_SECONDS_MAX = 120


class Command(NamedTuple):
    text: str
    shown: str


def blocks(page: str, *languages: str) -> list[str]:
    """The blocks in these languages that must run."""
    return [
        f"{block[2]}"
        for block in BLOCK.finditer(page)
        if block[1] in languages and not NOT_RUN.search(page[: block.start()])
    ]


def commands(block: str) -> list[Command]:
    """Each command of a block, with the output shown below it."""
    found: list[Command] = []
    end = ""  # of a document that the shell reads from the lines below
    for line in block.splitlines(keepends=True):
        if end or (found and found[-1].text.endswith("\\")):
            found[-1] = Command(f"{found[-1].text}\n{line.rstrip()}", "")
            end = "" if line.strip() == end else end
        elif line.startswith("$ "):
            found.append(Command(line[2:].rstrip("\n"), ""))
            document = re.search(r"<<'(\w+)'", line)
            end = document[1] if document else ""
        elif found:
            found[-1] = found[-1]._replace(shown=found[-1].shown + line)
    return found


def is_shown(printed: str, shown: str) -> bool:
    """Whether a page shows the output; trailing blanks do not count."""

    def trimmed(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().splitlines())

    parts = (re.escape(part) for part in trimmed(shown).split("…"))
    return re.fullmatch(".*".join(parts), trimmed(printed), re.DOTALL) is not None


class Session:
    """One page: its commands, in its own folder, and its background processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.environment = {**os.environ, "HOME": str(folder / "home"), "COLUMNS": "80"}
        for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NO_COLOR", "QUARRIER_DATA"):
            self.environment.pop(name, None)
        self.folder.mkdir()
        (folder / "home").mkdir()
        self.running: list[subprocess.Popen[bytes]] = []

    def run(self, command: Command) -> str | None:
        """The failure of a command, if there is one."""
        if command.text.endswith("&"):
            return self.start(command)
        shell = ["sh", "-c", command.text]
        done = subprocess.run(
            shell,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS_MAX,
        )
        if done.returncode != 0 and not command.shown:
            return f"ended with {done.returncode}: {done.stdout}{done.stderr}"
        # The page may also show messages of standard error.
        printed = (done.stdout, done.stdout + done.stderr)
        if command.shown and not any(is_shown(text, command.shown) for text in printed):
            return f"printed:\n{done.stdout}{done.stderr}and not:\n{command.shown}"
        return None

    def start(self, command: Command) -> str | None:
        log = self.folder.parent / f"background-{len(self.running)}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["sh", "-c", f"exec {command.text.rstrip('& ')}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.running.append(process)
        give_up = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < give_up and process.poll() is None:
            if is_shown(log.read_text(errors="replace"), command.shown):
                return None
            time.sleep(0.05)
        return f"printed:\n{log.read_text(errors='replace')}and not:\n{command.shown}"

    def python(self, page: Path) -> str | None:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), "--child", str(page)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS_MAX,
        )
        return None if done.returncode == 0 else done.stdout

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def run_page(page: Path, with_python: bool) -> tuple[int, int]:
    """The numbers of snippets that ran and that failed."""
    text = page.read_text()
    every = [command for block in blocks(text, "console") for command in commands(block)]
    programs = with_python and blocks(text, "python", "pycon")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="snippets-") as folder:
        session = Session(Path(folder))
        try:
            for command in every:
                if wrong := session.run(command):
                    failed += 1
                    print(f"{page}: $ {command.text}\n{wrong}", file=sys.stderr, flush=True)
            if programs and (wrong := session.python(page.resolve())):
                failed += 1
                print(f"{page}: Python\n{wrong}", file=sys.stderr, flush=True)
        finally:
            session.end()
    return len(every) + bool(programs), failed


def run_python(page: Path) -> int:
    """Runs the Python of a page, in this process and folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    failed = 0
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    for block in blocks(page.read_text(), "python", "pycon"):
        if block.startswith(">>> "):
            block = block.replace("…", "...")
            test = doctest.DocTestParser().get_doctest(block, names, str(page), None, 0)
            failed += runner.run(test, clear_globs=False).failed
            names.update(test.globs)
        else:
            exec(compile(block, str(page), "exec"), names)
    return 1 if failed else 0


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--python", action="store_true", help="run Python, too")
    asked.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked.add_argument("pages", nargs="+", type=Path)
    options = asked.parse_args()
    if options.child:
        return run_python(options.pages[0])
    ran = failed = 0
    for page in options.pages:
        begun = time.monotonic()
        counts = run_page(page, options.python)
        ran, failed = ran + counts[0], failed + counts[1]
        if counts[0]:
            print(f"  {page}: {counts[0]} snippets, {time.monotonic() - begun:.1f} s", flush=True)
    print(f"{ran - failed} passed, {failed} failed")
    return 0 if ran and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
