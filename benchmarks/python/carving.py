"""Carving, scored and timed: carving.py score|versus|image …

    carving.py score IMAGE.json FOLDER [--list]        what of the planted files a folder holds
    carving.py versus IMAGE IMAGE.json [--rounds N] [--only WORD] [--json] [--work FOLDER]
                                       [--quarrier PROGRAM]
    carving.py gather FOLDER                           real files, from packages
    carving.py image FOLDER --sources DIR,… [--size 1GiB] [--seed 1]
    carving.py dfrws FOLDER [--seed 1]                 the scenarios of DFRWS 2006, from real files
    carving.py all FOLDER [--size 1GiB] [--seed 1] [--rounds N] --figures FILE

`score` prints the numbers of exact files (equal by SHA-256) and of planted ones, by type and by placement. With
`--list` it also prints the errors of a quarrier report: `valid` rows that were not planted, and planted files
without a row, each with the nearest row. It ends with status 1 if a row is wrong.

`versus` runs quarrier, foremost (with and without -q), scalpel and photorec on the same image, each in its own
process, in turns; the image is in the page cache, and output folders are removed in between. The output of each
run is hashed, and must be the same in all rounds. Rivals that are not installed are reported and left out
(Debian: foremost scalpel testdisk). `--json` prints a line of JSON for each tool.

`gather` unpacks source packages of PyPI and packages of Debian (if there is an apt-get) that contain pictures,
audio, video, documents and archives. `image` makes an image from a folder of real files, with its truth; `dfrws`
makes one like that of the challenge of 2006: 29 files, 17 of them in fragments, some within others. The
generators are not part of this repository: the program looks for them in `../shared/tools` beside it. `all` does
both, then `versus`, and writes the figures to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from carving_truth import (
    MODES,
    Score,
    Truth,
    explained,
    read_report,
    score_folder,
    table,
)

HOME = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = HOME.parent / "shared" / "tools" / "make_image.py"
SCENARIOS = HOME.parent / "shared" / "tools" / "make_dfrws2006_image.py"
SCALPEL_CONF = HOME / "benchmarks" / "rivals" / "scalpel.conf"
# A rival that fills the disk is killed when only this much space is left.
DISK_LEFT_BYTES = 4 << 30

# Packages with files of many types. A newer version may have others, so each figure is recorded with the hash of
# its image.
SDISTS = [
    "imageio==2.38.1",
    "mutagen==1.48.1",
    "olefile==0.47",
    "openpyxl==3.1.5",
    "pillow==13.0.0",
    "pypdf==7.1.0",
    "python-docx==1.2.0",
    "python-pptx==1.0.2",
    "rarfile==4.5",
    "tinytag==2.3.2",
    "xlrd==2.0.2",
]
DEBIAN = [
    "clamav-testfiles",
    "forensics-samples-files",
    "gnome-backgrounds",
    "hydrogen-data",
    "lmms-common",
    "openboard-common",
    "solfege",
    "tuxpaint-data",
]
# More OLE documents and archives, for the scenarios.
SCENARIO_SDISTS = [
    "oletools==0.60.2",
    "pyexcel-xls==0.7.1",
    "xlutils==2.0.0",
    "xlwt==1.3.0",
]
SCENARIO_WHEELS = [
    "mutagen==1.48.1",
    "olefile==0.47",
    "python-docx==1.2.0",
    "rarfile==4.5",
]

ARCHIVES = {"zip", "docx", "xlsx", "pptx"}
FOREMOST = {
    "jpg",
    "gif",
    "png",
    "bmp",
    "avi",
    "wav",
    "mp4",
    "mov",
    "wmv",
    "pdf",
    "ole",
    "rar",
    "html",
}
SCALPEL = {"jpg", "gif", "png", "pdf"} | ARCHIVES


class Contender(NamedTuple):
    """A tool, its command for an image and a new folder, and the types that it supports."""

    name: str
    command: Callable[[str, str], list[str]]
    types: set[str] | None = None


class Run(NamedTuple):
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    score: Score


class UnavailableError(Exception):
    """This machine lacks the tool, or the tool failed."""


def contenders(quarrier: str) -> list[Contender]:
    return [
        Contender("quarrier", lambda image, out: [quarrier, "carve", image, "-o", out, "--quiet"]),
        Contender("photorec", lambda image, out: ["photorec", "/log", "/d", out, "/cmd", image, "search"]),
        Contender(
            "foremost -q",
            lambda image, out: ["foremost", "-Q", "-q", "-i", image, "-o", out],
            FOREMOST | ARCHIVES,
        ),
        Contender(
            "foremost",
            lambda image, out: ["foremost", "-Q", "-i", image, "-o", out],
            FOREMOST | ARCHIVES,
        ),
        Contender(
            "scalpel",
            lambda image, out: ["scalpel", "-c", str(SCALPEL_CONF), "-o", out, image],
            SCALPEL,
        ),
    ]


def stop_when_full(process: subprocess.Popen[bytes], folder: pathlib.Path, over: threading.Event) -> None:
    """Kills a process that is about to fill the disk."""
    while not over.wait(0.2):
        if shutil.disk_usage(folder).free < DISK_LEFT_BYTES:
            process.kill()
            return


def run(contender: Contender, image: pathlib.Path, truth: Truth, work: pathlib.Path) -> Run:
    """Runs a tool once, in a new folder."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=work)).resolve()
    command = contender.command(str(image), str(folder / "out"))
    if shutil.which(command[0]) is None:
        raise UnavailableError(f"there is no {command[0]}")
    # Earlier writes must have reached the disk.
    os.sync()
    begun = time.perf_counter()
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    over = threading.Event()
    watch = threading.Thread(target=stop_when_full, args=(process, work, over))
    watch.start()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    watch.join()
    if process.returncode not in (0, 1) and not (contender.name == "quarrier" and process.returncode == 3):
        last = (folder / "said.txt").read_bytes()[-200:].decode(errors="replace").strip()
        raise UnavailableError(f"{contender.name} ended with {process.returncode}: {last}")
    score = score_folder(truth, sorted(folder.glob("out*")))
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, score)


def take_turns(
    left: list[Contender], rounds: int, of: tuple[pathlib.Path, Truth], work: pathlib.Path
) -> dict[str, list[Run]]:
    """The runs of each contender; none for one that cannot run."""
    image, truth = of
    runs: dict[str, list[Run]] = {}
    for turn in range(max(rounds, 1)):
        for contender in left[turn % 2 :] + left[: turn % 2]:
            if runs.get(contender.name) == []:
                continue
            warm(image)
            try:
                done = run(contender, image, truth, work)
            except UnavailableError as why:
                print(f"{contender.name}: left out: {why}", file=sys.stderr)
                runs[contender.name] = []
                continue
            before = runs.setdefault(contender.name, [])
            if before and before[0].score != done.score:
                sys.exit(f"carving.py: {contender.name} wrote other files in round {turn + 1}; no time is given")
            before.append(done)
    return runs


def compare(options: argparse.Namespace) -> int:
    """Runs all contenders in turns, once per round."""
    truth = Truth(options.truth)
    image = options.image.resolve()
    if image.stat().st_size != truth.image_bytes:
        sys.exit(f"carving.py: {image} is not the image that {options.truth} describes")
    left = [one for one in contenders(str(pathlib.Path(options.quarrier).resolve())) if options.only in one.name]
    # Removed only after all runs: when ext4 creates a file, it scans the files deleted in the last seconds,
    # which took a fifth of the next contender's time.
    with tempfile.TemporaryDirectory(dir=options.work) as made:
        runs = take_turns(left, options.rounds, (image, truth), pathlib.Path(made))
    if options.figures:
        told = [as_json(one, truth, runs[one.name]) for one in left if runs.get(one.name)]
        options.figures.write_text("[" + ",\n".join(told) + "]\n")
    if not options.json:
        print(f"{truth.image_bytes} bytes, {len(truth.files)} files planted")
        print(HEADS)
    for contender in left:
        if measured := runs.get(contender.name):
            print(as_json(contender, truth, measured) if options.json else as_row(contender, truth, measured))
    return 0


def warm(image: pathlib.Path) -> None:
    """Reads the image, so that it is in the page cache for every contender."""
    with image.open("rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        while file.readinto(buffer):
            pass


HEADS = (
    f"{'':12} {'seconds':>8} {'from .. to':>13} {'CPU s':>7} {'exact':>5} {'of its types':>13} "
    f"{'contig':>9} {'unaligned':>9} {'frag2':>8} "
    f"{'files':>6} {'spurious':>8} {'twice':>5} {'MB':>8} {'peak MB':>8}"
)


def of_mode(contender: Contender, truth: Truth, score: Score, modes: tuple[str, ...]) -> tuple[int, int]:
    """The numbers of exact and of planted files of a tool's types, with these placements."""
    known = [
        file
        for file in truth.files
        if file.mode in modes and (contender.types is None or file.type in contender.types)
    ]
    return sum(file.sha256 in score.exact for file in known), len(known)


def as_row(contender: Contender, truth: Truth, runs: list[Run]) -> str:
    score = runs[0].score
    times = [one.seconds for one in runs]
    columns = [("contig", "sector"), ("unaligned",), ("frag2",)]
    recoverable = tuple(mode for mode in MODES if mode != "trunc")
    known, *ways = (
        "{} / {}".format(*of_mode(contender, truth, score, modes)) for modes in [recoverable, *columns]
    )
    cpu = statistics.median(one.cpu_seconds for one in runs)
    peak = max(one.peak_bytes for one in runs)
    return (
        f"{contender.name:12} {statistics.median(times):8.2f}"
        f" {min(times):5.2f} .. {max(times):<5.2f}"
        f" {cpu:7.2f} {len(score.exact):5} {known:>13} {ways[0]:>9} {ways[1]:>9} {ways[2]:>8} "
        f"{score.files:6} {score.spurious:8} {score.twice:5} {score.bytes / 1e6:8.0f}"
        f" {peak / 1e6:8.0f}"
    )


def as_json(contender: Contender, truth: Truth, runs: list[Run]) -> str:
    score = runs[0].score
    modes = {mode: of_mode(contender, truth, score, (mode,)) for mode in MODES}
    told = {
        "name": contender.name,
        "seconds": [one.seconds for one in runs],
        "cpu_seconds": [one.cpu_seconds for one in runs],
        "peak_bytes": max(one.peak_bytes for one in runs),
        "image_bytes": truth.image_bytes,
        "planted": len(truth.files),
        "exact": len(score.exact),
        "exact_of_known": modes,
        "files": score.files,
        "spurious": score.spurious,
        "written_twice": score.twice,
        "written_bytes": score.bytes,
    }
    return json.dumps(told)


def score(options: argparse.Namespace) -> int:
    """Prints the score of a folder, and the errors of its report if there is one."""
    truth = Truth(options.truth)
    folder: pathlib.Path = options.folder
    if not (folder / "report.jsonl").exists():
        found = score_folder(truth, [folder])
        print(table(truth, found.exact))
        print(
            f"{found.files} files of {found.bytes} bytes, {found.spurious} spurious, {found.twice} written twice"
        )
        return 0
    rows = read_report(folder)
    print(table(truth, {row.sha256 for row in rows} & truth.by_hash.keys()))
    wrong = sum(row.status == "valid" and row.sha256 not in truth.by_hash for row in rows)
    valid = sum(row.status == "valid" for row in rows)
    print(f"{len(rows)} rows, {valid} valid, of them {wrong} not planted")
    if options.list:
        for line in explained(truth, rows):
            print(line)
    return 1 if wrong else 0


def gather(options: argparse.Namespace) -> int:
    """Unpacks packages with real files, once; packages that cannot be fetched are reported and left out."""
    folder: pathlib.Path = options.folder
    if not is_gathered(folder, [*SDISTS, *DEBIAN]):
        for name in SDISTS:
            unpack_sdist(name, folder)
        for name in DEBIAN if shutil.which("apt-get") else []:
            with tempfile.TemporaryDirectory(dir=folder) as made:
                for package in fetched(["apt-get", "download", name], made):
                    subprocess.run(["dpkg-deb", "-x", package, folder / "debian"], check=True)
        set_gathered(folder, [*SDISTS, *DEBIAN])
    return 0


def is_gathered(folder: pathlib.Path, names: list[str]) -> bool:
    """Whether the folder has exactly these packages; it is created if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "done.txt"
    return done.exists() and done.read_text() == "\n".join(names)


def set_gathered(folder: pathlib.Path, names: list[str]) -> None:
    (folder / "done.txt").write_text("\n".join(names))


def unpack_sdist(name: str, folder: pathlib.Path) -> None:
    """Fetches a source package of PyPI and unpacks it."""
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    with tempfile.TemporaryDirectory(dir=folder) as made:
        for package in fetched([*fetch, "--no-binary", ":all:", "--dest", made, name], made):
            # The archive itself is also a real file.
            safely = {} if package.suffix == ".zip" else {"filter": "data"}
            shutil.unpack_archive(package, folder / "pypi", **safely)
            shutil.copy(package, folder / "pypi")


def make_dfrws(options: argparse.Namespace) -> int:
    """Gathers the additional files of the scenarios, and makes their image, once."""
    if is_missing(SCENARIOS):
        return 0
    sources = options.folder / "carving-sources"
    more = options.folder / "carving-scenarios"
    gather(argparse.Namespace(folder=sources))
    names = [*SCENARIO_SDISTS, *SCENARIO_WHEELS]
    if not is_gathered(more, names):
        for name in SCENARIO_SDISTS:
            unpack_sdist(name, more)
        for name in SCENARIO_WHEELS:
            fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            fetched([*fetch, "--dest", str(more / "pypi"), name], str(more))
        set_gathered(more, names)
    image = options.folder / f"carving-dfrws2006-{options.seed}.img"
    truth = image.with_suffix(".json")
    if not truth.exists():
        command = [sys.executable, str(SCENARIOS), "--out", str(image), "--truth", str(truth)]
        command += ["--sources", f"{sources},{more}", "--seed", str(options.seed)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(image, truth)
    return 0


def is_missing(generator: pathlib.Path) -> bool:
    """Whether a generator is missing, which is then reported."""
    if not generator.exists():
        print(f"carving.py: skipped: the generator of images is not here ({generator})", file=sys.stderr)
        return True
    return False


def fetched(command: list[str], folder: str) -> list[pathlib.Path]:
    """The files that a command puts into a folder; none if it fails."""
    if subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL).returncode != 0:
        print(f"carving.py: {' '.join(command[:3])} … {command[-1]} failed", file=sys.stderr)
        return []
    return sorted(pathlib.Path(folder).iterdir())


def measure_all(options: argparse.Namespace) -> int:
    """Gathers files, makes the image, and compares the tools."""
    if not GENERATOR.exists():
        return make_image(options)
    sources = options.folder / "carving-sources"
    if status := gather(argparse.Namespace(folder=sources)):
        return status
    options.sources = str(sources)
    if status := make_image(options):
        return status
    image, truth = image_paths(options)
    asked = argparse.Namespace(**vars(options), image=image, truth=truth, only="", json=False)
    return compare(asked)


def image_paths(options: argparse.Namespace) -> tuple[pathlib.Path, pathlib.Path]:
    image = options.folder / f"carving-{options.size}-{options.seed}.img"
    return image, image.with_suffix(".json")


def make_image(options: argparse.Namespace) -> int:
    """The generator's image for a size and seed, made once."""
    if is_missing(GENERATOR):
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    image, truth = image_paths(options)
    if not truth.exists():
        command = [sys.executable, str(GENERATOR), "--out", str(image), "--truth", str(truth)]
        command += [
            "--sources",
            options.sources,
            "--size",
            options.size,
            "--seed",
            str(options.seed),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(image, truth)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("score", help="compare a folder with the planted files")
    one.add_argument("truth", type=pathlib.Path)
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--list", action="store_true", help="also print each wrong row and each missed file")
    one.set_defaults(run=score)
    one = verbs.add_parser("versus", help="quarrier and its rivals in turns")
    one.add_argument("image", type=pathlib.Path)
    one.add_argument("truth", type=pathlib.Path)
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--only", default="", help="tools whose name contains this")
    one.add_argument("--quarrier", default=str(HOME / "target" / "release" / "quarrier"))
    one.add_argument("--work", type=pathlib.Path, default="/var/tmp", help="where folders are made")
    one.add_argument("--json", action="store_true", help="a line of JSON a tool")
    one.add_argument("--figures", type=pathlib.Path, help="a file for all of these lines")
    one.set_defaults(run=compare)
    one = verbs.add_parser("gather", help="real files, from packages")
    one.add_argument("folder", type=pathlib.Path)
    one.set_defaults(run=gather)
    one = verbs.add_parser("dfrws", help="an image of the scenarios of DFRWS 2006, with its truth")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(run=make_dfrws)
    one = verbs.add_parser("all", help="files, image and comparison")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--size", default="1GiB")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--quarrier", default=str(HOME / "target" / "release" / "quarrier"))
    one.add_argument("--work", type=pathlib.Path, default="/var/tmp", help="where folders are made")
    one.add_argument("--figures", type=pathlib.Path, required=True)
    one.set_defaults(run=measure_all)
    one = verbs.add_parser("image", help="an image with its truth")
    one.add_argument("folder", type=pathlib.Path)
    one.add_argument("--sources", required=True, help="folders of real files, separated by commas")
    one.add_argument("--size", default="1GiB")
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(run=make_image)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
