#!/usr/bin/env python3
"""Types what a README shows, in the folder that it is started in: readme.py FILE [--python]

Lines of ```console blocks that begin with `$ ` are run by sh, one after another. What is printed
must be what stands below a line, where something does: `…` there stands for anything, any number
for any other. With --python, ```python blocks are run as well, all as one program.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """Each command of a block, with what is shown below it."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line.rstrip()}", "")
        elif found and line.strip():
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def plain(text: str) -> str:
    """Without what differs from run to run, or with it: numbers, and how wide columns are."""
    for run, instead in [(r"[0-9][0-9.,]*", "0"), (r" +", " "), (r"-+", "-")]:
        text = re.sub(run, instead, text)
    return text.strip()


def is_shown(printed: str, shown: str) -> bool:
    parts = (re.escape(plain(part)) for part in shown.split("…"))
    return re.fullmatch(r"\s*.*\s*".join(parts), plain(printed), re.DOTALL) is not None


def run_command(command: str, shown: str) -> bool:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        print(f"$ {command}\nended with {done.returncode}: {done.stderr}", file=sys.stderr)
        return False
    if shown and not is_shown(done.stdout, shown):
        print(f"$ {command}\nprinted:\n{done.stdout}\nand not:\n{shown}", file=sys.stderr)
        return False
    return True


def main() -> int:
    text = Path(sys.argv[1]).read_text()
    every = [pair for block in blocks(text, "console") for pair in commands(block)]
    good = sum(run_command(command, shown) for command, shown in every)
    print(f"  {good} of {len(every)} commands", flush=True)
    well = good == len(every) and good > 0
    if "--python" in sys.argv[2:]:
        program = "\n".join(blocks(text, "python"))
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
        print(f"  {len(program.splitlines())} lines of Python: {done.returncode == 0}")
        well = well and done.returncode == 0
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
