"""Processes of a benchmark: programs that run once, and servers in temporary folders, only on this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

#: Rows of text, as psql prints them.
Facts = list[str]
WAIT_SECONDS_MAX = 600
#: Columns of the orders for PostgreSQL and for quarrier.
COLUMNS = (
    "id bigint, symbol text, side text, price double precision, qty bigint, ts bigint, account text, "
    "status text, note text"
)


class Ran(NamedTuple):
    """A program that has ended."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: str


def run(command: list[Any]) -> Ran:
    """Runs a program; a failure ends the benchmark."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        child = subprocess.Popen([str(part) for part in command], stdout=output, stderr=complaints)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaints.seek(0)
        if child.returncode:
            text = complaints.read().decode(errors="replace")
            sys.exit(f"{' '.join(map(str, command))[:200]}: status {child.returncode}: {text[-800:]}")
        text = output.read().decode()
    return Ran(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, text)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process, of its children, and of the children that it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, children))


def anonymous_bytes(pid: int) -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


def sync_milliseconds(folder: Path, count: int = 100) -> tuple[float, float]:
    """The median and the 99th percentile of an append of 4 KiB with fdatasync."""
    path, taken = folder / "sync.tmp", []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        for _ in range(count):
            start = time.perf_counter()
            os.write(handle, bytes(4096))
            os.fdatasync(handle)
            taken.append(1e3 * (time.perf_counter() - start))
    finally:
        os.close(handle)
        path.unlink()
    return statistics.median(taken), sorted(taken)[count * 99 // 100]


def machine(folder: Path) -> str:
    """One line about this machine and its state."""
    text = Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", text)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    median, last = sync_milliseconds(folder)
    disk = shutil.disk_usage(folder).free / 1e9
    return (
        f"{name[1] if name else 'unknown CPU'}, {os.cpu_count()} CPUs, load {load}, {disk:.0f} GB of disk free; "
        f"append of 4 KiB with fdatasync: median {median:.2f} ms, p99 {last:.2f} ms"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that listens on the loopback and ends with the benchmark."""

    name = ""
    user = "me"
    database = "me"
    #: The signal that ends it without a loss of time.
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self, command: list[Any], folder: Path, owner: str | None = None) -> None:
        with (folder / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdout=output, stderr=output, user=owner, cwd=folder
            )
        self.output = folder / "output.txt"

    def wait(self) -> float:
        """Waits until it answers; returns the seconds."""
        assert self.process
        start = time.perf_counter()
        while not self.answers():
            if self.process.poll() is not None or time.perf_counter() - start > WAIT_SECONDS_MAX:
                sys.exit(f"{self.name} did not start: {self.output.read_text(errors='replace')[-800:]}")
            time.sleep(0.01)
        return time.perf_counter() - start

    def answers(self) -> bool:
        command = self.psql("SELECT 1")
        return subprocess.run(command, capture_output=True, check=False, env=self.environment()).returncode == 0

    def address(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", self.user]

    def environment(self) -> dict[str, str]:
        return os.environ | {"PGPASSWORD": "quest"}

    def psql(self, statement: str) -> list[str]:
        return ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *self.address(), self.database,
                "-c", statement]  # fmt: skip

    def adapted(self, statement: str) -> str:
        """The statement as this server accepts it."""
        return statement

    def ask(self, statement: str) -> Facts:
        """The rows of the answer, as lines."""
        done = subprocess.run(
            self.psql(statement), capture_output=True, text=True, check=False, env=self.environment()
        )
        if done.returncode:
            sys.exit(f"{self.name}: {statement[:200]}: {done.stderr[-500:]}")
        return done.stdout.splitlines()

    def cpu_seconds(self) -> float:
        assert self.process
        return cpu_seconds(self.process.pid)

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            self.process.wait()


class Postgres(Server):
    """PostgreSQL with a cluster of its own. Defaults (fsync on), but more memory and fewer checkpoints."""

    name = "postgresql"
    user = database = "postgres"
    stop_signal = signal.SIGINT

    def __init__(self, programs: Path, folder: Path, memory: str = "2GB") -> None:
        super().__init__()
        cluster = folder / "cluster"
        cluster.mkdir(parents=True)
        # It refuses to run as root.
        owner = "postgres" if os.geteuid() == 0 else None
        if owner:
            shutil.chown(cluster, owner)
        subprocess.run(
            [programs / "initdb", "-D", cluster, "-U", self.user, "-A", "trust", "-E", "UTF8", "--locale=C"],
            check=True, stdout=subprocess.DEVNULL, user=owner, cwd=cluster,
        )  # fmt: skip
        options = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "",
            "shared_buffers": memory, "max_wal_size": "8GB", "max_connections": 200,
        }  # fmt: skip
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self.launch([programs / "postgres", "-D", cluster, *settings], folder, owner)
        self.wait()
        assert self.ask("SHOW fsync") == ["on"] and self.ask("SHOW synchronous_commit") == ["on"]


class QuestDb(Server):
    """QuestDB from its jar, with `cairo.commit.mode=sync` (the default is `nosync`)."""

    name = "questdb"
    user = "admin"
    database = "qdb"

    def __init__(self, jar: Path, folder: Path, source: Path, threads: int) -> None:
        super().__init__()
        self.http = free_port()
        (folder / "conf").mkdir(parents=True)
        settings = {
            "http.bind.to": f"127.0.0.1:{self.http}", "http.min.enabled": "false",
            "pg.net.bind.to": f"127.0.0.1:{self.port}", "line.tcp.enabled": "false",
            "telemetry.enabled": "false", "cairo.commit.mode": "sync", "shared.worker.count": threads,
            "cairo.sql.copy.root": source, "cairo.sql.copy.work.root": folder / "work",
        }  # fmt: skip
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        (folder / "conf" / "server.conf").write_text(text)
        self.launch(["java", "-p", jar, "-m", "io.questdb/io.questdb.ServerMain", "-d", folder], folder)
        self.wait()

    def answers(self) -> bool:
        try:
            return bool(self.rows("SELECT 1"))
        except OSError:
            return False

    def rows(self, statement: str) -> list[list[Any]]:
        url = f"http://127.0.0.1:{self.http}/exec?" + urllib.parse.urlencode({"query": statement})
        try:
            with urllib.request.urlopen(url, timeout=600) as answer:
                return json.load(answer).get("dataset", [])
        except urllib.error.HTTPError as error:
            sys.exit(f"questdb: {statement[:200]}: {error.read().decode(errors='replace')[:300]}")

    def ask(self, statement: str) -> Facts:
        return ["|".join(map(str, row)) for row in self.rows(statement)]

    def adapted(self, statement: str) -> str:
        """It accepts BETWEEN for timestamps only."""
        text = re.sub(r"(\w+) NOT BETWEEN (\S+) AND (\S+)", r"(\1 < \2 OR \1 > \3)", statement)
        return re.sub(r"(\w+) BETWEEN (\S+) AND (\S+)", r"\1 >= \2 AND \1 <= \3", text)

    def create(self) -> None:
        self.rows("DROP TABLE IF EXISTS m")
        self.rows(
            "CREATE TABLE m (id long, symbol symbol capacity 8192, side symbol, price double, qty int, ts long, "
            "account symbol capacity 131072, status symbol, note varchar)"
        )

    def copy(self, name: str, rows: int) -> None:
        """Loads CSV by its COPY statement, which runs in the background."""
        number = self.rows(f"COPY m FROM '{name}' WITH HEADER true")[0][0]
        last = f"SELECT status, rows_imported, message FROM sys.text_import_log WHERE id = '{number}' LIMIT -1"
        while True:
            found = self.rows(last)
            if found and found[0][0] == "finished":
                assert found[0][1] == rows
                return
            if found and found[0][0] in ("failed", "cancelled"):
                sys.exit(f"questdb: COPY: {found}")
            time.sleep(0.02)


class Quarrier(Server):
    """`quarrier serve`."""

    name = "quarrier"

    def __init__(self, program: Path, folder: Path, options: list[Any]) -> None:
        super().__init__()
        self.program, self.folder, self.options = program, folder, options
        folder.mkdir(parents=True, exist_ok=True)

    def start(self) -> float:
        """Starts it; returns the seconds until it accepts clients."""
        start = time.perf_counter()
        listen = [f"--listen=127.0.0.1:{self.port}", "--http=off", "--quiet"]
        self.launch([self.program, "serve", *listen, *self.options], self.folder)
        self.wait()
        return time.perf_counter() - start

    def answers(self) -> bool:
        return "ready" in self.output.read_text(errors="replace")

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
