"""`python -m quarrier` runs the command line, a program inside the package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

NAME = "quarrier"


def places() -> Iterator[Path]:
    """The places of programs: of the environment, of the user, of a `--target`, on the path."""
    yield Path(sysconfig.get_path("scripts"), NAME)
    yield Path(sysconfig.get_path("scripts", scheme=f"{os.name}_user"), NAME)
    yield Path(__file__).parents[1] / "bin" / NAME
    on_path = shutil.which(NAME)
    if on_path is not None:
        yield Path(on_path)


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    for program in places():
        if os.access(program, os.X_OK):
            os.execv(program, [NAME, *sys.argv[1:]])
    print(
        f"{NAME}: the program is not in this installation, which was made from a checkout; run: "
        "make install",
        file=sys.stderr,
    )
    sys.exit(2)


if __name__ == "__main__":
    main()
