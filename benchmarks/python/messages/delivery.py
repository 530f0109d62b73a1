"""How late stored messages reach subscribers of `quarrier serve`, Redis, NATS JetStream and PostgreSQL.

    delivery.py --quarrier-sql PROGRAM [--subscribers 1,10,100] [--rates 1000,10000] [--rounds N] [--seconds S]
                [--systems quarrier,redis,nats,postgresql] [--slow] [--data FOLDER] [--json FILE]

A process has messages of 100 bytes at a fixed rate. It sends all that are due in one batch (a multi-row INSERT, a
pipeline of XADD, publications with acknowledgement), waits until they are acknowledged, and sends the next batch.
Every system writes to the disk before it acknowledges: Redis with `appendfsync always`, NATS with `sync_interval:
always`, PostgreSQL with an INSERT of the messages in the transaction of their NOTIFY. Another process holds all
subscribers, with plain sockets. The latency of a message is from the time at which it was due until its bytes have
arrived, so a system that cannot bear the rate has long ones; "after the acknowledgement" is from the
acknowledgement of its batch. With many subscribers, one in ten is looked at, and of all the messages are counted:
a missing one ends the benchmark.

With `--slow`, one of the subscribers reads nothing in half of the runs, until all others have everything. Its
socket takes little, so that its messages wait in the server, whose memory is shown. Then it has to receive them
all. The p99 of the others is compared with that of as many runs in which all subscribers read.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import re
import selectors
import socket
import statistics
import struct
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from processes import Postgres, Quarrier, Server, anonymous_bytes, machine, remove

HERE = Path(__file__).parent
#: A message: its number, when it was due, and so many more bytes.
STAMP = re.compile(rb"@(\d{9})@(\d{16})@")
FILL = "x" * 72
BATCH_MAX = 2_000
WAIT_SECONDS_MAX = 60
#: The receive buffer of a subscriber while it does not read, and when it reads again.
SLOW_BUFFER_BYTES, BUFFER_BYTES = 16 << 10, 4 << 20
MEMORY_EVERY_SECONDS = 0.1
#: How much later the p99 of the others may be, as a ratio, when one does not read.
SLOW_GOAL = 1.1
SLOW = ", one slow"


def message(number: int, due_ns: int) -> str:
    return f"@{number:09}@{due_ns:016}@{FILL}#"


class Stream:
    """A socket to a server, read in pieces that end with a message of its protocol."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""

    def send(self, text: bytes) -> None:
        self.socket.sendall(text)

    def more(self) -> None:
        got = self.socket.recv(1 << 18)
        if not got:
            sys.exit(f"a server hung up: {self.held[-300:]!r}")
        self.held += got

    def until(self, is_there: Any) -> bytes:
        while not is_there(self.held):
            self.more()
        held, self.held = self.held, b""
        return held


class Wire(Stream):
    """PostgreSQL's protocol."""

    def __init__(self, port: int, user: str, database: str) -> None:
        super().__init__(port)
        start = struct.pack(">i", 196608) + f"user\0{user}\0database\0{database}\0\0".encode()
        self.send(struct.pack(">i", len(start) + 4) + start)
        while self.next()[0] != b"Z":
            pass

    def next(self) -> tuple[bytes, bytes]:
        """A message: its kind and content."""
        while len(self.held) < 5 or len(self.held) < 1 + struct.unpack(">i", self.held[1:5])[0]:
            self.more()
        length = 1 + struct.unpack(">i", self.held[1:5])[0]
        kind, content, self.held = self.held[:1], self.held[5:length], self.held[length:]
        if kind == b"E":
            sys.exit(f"a server refused: {content!r}")
        if kind == b"R" and content[:4] == b"\0\0\0\3":
            self.send(b"p" + struct.pack(">i", 7) + b"me\0")
        return kind, content

    def query(self, text: str, last: bytes = b"Z") -> None:
        self.send(b"Q" + struct.pack(">i", len(text) + 5) + text.encode() + b"\0")
        while self.next()[0] != last:
            pass


class System:
    """How a client of one kind of server sends a batch, and receives."""

    def __init__(self, server: Server) -> None:
        self.server, self.port = server, server.port

    def table(self, name: str) -> None:
        """Makes a place for messages."""

    def sender(self) -> Any:
        raise NotImplementedError

    def batch(self, client: Any, name: str, messages: list[str]) -> None:
        """Sends messages and returns when all are acknowledged."""
        raise NotImplementedError

    def subscriber(self, name: str) -> Stream:
        raise NotImplementedError

    def again(self, stream: Stream) -> None:
        """After the messages in `held` were taken."""


class OfQuarrier(System):
    def table(self, name: str) -> None:
        self.sender().query(f"CREATE TABLE {name} (body text)")

    def sender(self) -> Wire:
        return Wire(self.port, "me", "me")

    def batch(self, client: Wire, name: str, messages: list[str]) -> None:
        client.query(f"INSERT INTO {name} VALUES " + ",".join(f"('{each}')" for each in messages))

    def subscriber(self, name: str) -> Stream:
        client = self.sender()
        client.query(f"COPY (SUBSCRIBE (SELECT body FROM {name})) TO STDOUT", b"d")
        return client


class OfPostgres(System):
    def table(self, name: str) -> None:
        self.sender().query(f"CREATE TABLE {name} (body text)")

    def sender(self) -> Wire:
        return Wire(self.port, "postgres", "postgres")

    def batch(self, client: Wire, name: str, messages: list[str]) -> None:
        rows = ",".join(f"('{each}')" for each in messages)
        client.query(
            f"WITH stored AS (INSERT INTO {name} VALUES {rows} RETURNING body) "
            f"SELECT count(pg_notify('{name}', body)) FROM stored"
        )

    def subscriber(self, name: str) -> Stream:
        client = self.sender()
        client.query(f"LISTEN {name}")
        return client


class OfRedis(System):
    def sender(self) -> Stream:
        return Stream(self.port)

    def batch(self, client: Stream, name: str, messages: list[str]) -> None:
        client.send("".join(f"XADD {name} * b {each}\r\n" for each in messages).encode())
        # Each answer is a length and an id.
        client.until(lambda held: held.count(b"\r\n") >= 2 * len(messages))

    def subscriber(self, name: str) -> Stream:
        client = Stream(self.port)
        client.name = name.encode()  # type: ignore[attr-defined]
        client.send(b"XREAD BLOCK 0 COUNT 100000 STREAMS %b $\r\n" % name.encode())
        time.sleep(0.01)
        return client

    def again(self, stream: Stream) -> None:
        count = re.match(rb"\*1\r\n\*2\r\n\$\d+\r\n\w+\r\n\*(\d+)\r\n", stream.held)
        if count and stream.held.count(b"#\r\n") >= int(count[1]):
            last = re.findall(rb"\r\n(\d+-\d+)\r\n", stream.held)[-1]
            stream.held = b""
            stream.taken = 0  # type: ignore[attr-defined]
            stream.send(b"XREAD BLOCK 0 COUNT 100000 STREAMS %b %b\r\n" % (stream.name, last))  # type: ignore[attr-defined]


class OfNats(System):
    def sender(self) -> Stream:
        client = Stream(self.port)
        client.send(b'CONNECT {"verbose":false,"headers":true}\r\nPING\r\n')
        client.until(lambda held: b"PONG" in held)
        client.send(b"SUB inbox.%d.* 1\r\n" % id(client))
        return client

    def asked(self, client: Stream, what: str, about: dict[str, Any]) -> None:
        text = json.dumps(about).encode()
        client.send(b"PUB $JS.API.%b inbox.%d.0 %d\r\n%b\r\n" % (what.encode(), id(client), len(text), text))
        answer = client.until(lambda held: b"}\r\n" in held)
        if b'"error"' in answer:
            sys.exit(f"nats: {answer!r}")

    def table(self, name: str) -> None:
        self.asked(self.sender(), f"STREAM.CREATE.{name}",
                   {"name": name, "subjects": [name], "storage": "file"})  # fmt: skip

    def batch(self, client: Stream, name: str, messages: list[str]) -> None:
        each = b"PUB %b inbox.%d.1 %d\r\n%b\r\n"
        texts = [text.encode() for text in messages]
        client.send(b"".join(each % (name.encode(), id(client), len(text), text) for text in texts))
        client.until(lambda held: held.count(b'"seq"') >= len(texts) and held.endswith(b"\r\n"))

    def subscriber(self, name: str) -> Stream:
        client = self.sender()
        deliver = f"deliver.{id(client)}"
        client.send(f"SUB {deliver} 2\r\n".encode())
        wanted = {"deliver_subject": deliver, "ack_policy": "none", "deliver_policy": "new"}
        self.asked(client, f"CONSUMER.CREATE.{name}", {"stream_name": name, "config": wanted})
        return client


class Redis(Server):
    name = "redis"

    def __init__(self, program: str, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True)
        options = {
            "port": self.port, "bind": "127.0.0.1", "appendonly": "yes", "appendfsync": "always", "save": '""',
            "dir": folder,
        }  # fmt: skip
        (folder / "redis.conf").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        self.launch([program, folder / "redis.conf"], folder)
        self.wait()

    def answers(self) -> bool:
        return is_open(self.port)


class Nats(Server):
    name = "nats"

    def __init__(self, program: str, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True)
        (folder / "nats.conf").write_text(
            f'listen: "127.0.0.1:{self.port}"\nping_interval: "10m"\nmax_pending: 1GB\n'
            f'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'
        )
        self.launch([program, "-c", folder / "nats.conf"], folder)
        self.wait()

    def answers(self) -> bool:
        return is_open(self.port)


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def send(system: System, name: str, rate: int, seconds: float, start_ns: int, results: Any) -> None:
    """The sending process: its acknowledgements, as numbers of messages and times."""
    client, sent, total, acknowledged = system.sender(), 0, int(rate * seconds), []
    while sent < total:
        due = min(total, (time.monotonic_ns() - start_ns) * rate // 1_000_000_000)
        if due <= sent:
            time.sleep(0.0002)
            continue
        due = min(due, sent + BATCH_MAX)
        system.batch(client, name, [message(n, start_ns + n * 1_000_000_000 // rate) for n in range(sent, due)])
        sent = due
        acknowledged.append((sent, time.monotonic_ns()))
    results.put(acknowledged)


class Held:
    """What one subscriber has received."""

    def __init__(self, stream: Stream, is_looked_at: bool) -> None:
        self.stream, self.is_looked_at = stream, is_looked_at
        stream.taken = 0  # type: ignore[attr-defined]
        self.count = 0
        self.numbers: list[int] = []
        self.late: list[int] = []
        self.at: list[int] = []

    def receive(self, system: System) -> None:
        stream = self.stream
        got = stream.socket.recv(1 << 18)
        now = time.monotonic_ns()
        if not got:
            sys.exit("a server hung up on a subscriber")
        stream.held += got
        end = stream.held.rfind(b"#") + 1
        new = stream.held[stream.taken : end]  # type: ignore[attr-defined]
        self.count += new.count(b"#")
        if self.is_looked_at:
            for number, due in STAMP.findall(new):
                self.numbers.append(int(number))
                self.late.append(now - int(due))
                self.at.append(now)
        if isinstance(system, OfRedis):
            stream.taken = max(end, stream.taken)  # type: ignore[attr-defined]
            system.again(stream)
        else:
            stream.held = stream.held[end:] if end else stream.held


class Memory:
    """The peak of a server's memory, looked at from time to time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.before = self.peak = anonymous_bytes(pid)
        self.looked = time.monotonic()

    def look(self) -> None:
        if time.monotonic() - self.looked > MEMORY_EVERY_SECONDS:
            self.peak = max(self.peak, anonymous_bytes(self.pid))
            self.looked = time.monotonic()


def receive_all(system: System, held: list[Held], total: int, memory: Memory) -> None:
    selector = selectors.DefaultSelector()
    for each in held:
        selector.register(each.stream.socket, selectors.EVENT_READ, each)
    last = time.monotonic()
    while any(each.count < total for each in held):
        for key, _ in selector.select(1):
            key.data.receive(system)
            last = time.monotonic()
        memory.look()
        if time.monotonic() - last > WAIT_SECONDS_MAX:
            sys.exit(f"{system.server.name}: messages are missing: {[each.count for each in held]} of {total}")


def slow_one(system: System, name: str) -> Held:
    stream = system.subscriber(name)
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER_BYTES)
    return Held(stream, True)


def one_run(system: System, name: str, count: int, rate: int, seconds: float, slow: bool) -> dict[str, float]:
    system.table(name)
    every = max(1, count // 10)
    held = [Held(system.subscriber(name), number % every == 0) for number in range(count - slow)]
    slow_ones = [slow_one(system, name)] if slow else []
    total = int(rate * seconds)
    memory = Memory(system.server.process.pid)  # type: ignore[union-attr]
    cpu = system.server.cpu_seconds()
    start_ns = time.monotonic_ns() + 100_000_000
    results: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=send, args=(system, name, rate, seconds, start_ns, results))
    process.start()
    receive_all(system, held, total, memory)
    took = (time.monotonic_ns() - start_ns) / 1e9
    acknowledged = results.get()
    process.join()
    cpu = system.server.cpu_seconds() - cpu
    for each in slow_ones:
        each.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    receive_all(system, slow_ones, total, memory)
    ends, times = map(np.array, zip(*acknowledged, strict=True))
    late, after = [], []
    for each in held + slow_ones:
        each.stream.socket.close()
        if each.is_looked_at and each.numbers != list(range(total)):
            sys.exit(f"{system.server.name}: WRONG: a subscriber received messages twice, or not in their order")
    for each in held:
        if each.is_looked_at:
            late.append(np.array(each.late) / 1e6)
            at = np.array(each.at)
            after.append((at - times[np.searchsorted(ends, np.arange(total), side="right")]) / 1e6)
    all_late, all_after = np.concatenate(late), np.concatenate(after)
    return {
        "p50": float(np.percentile(all_late, 50)), "p99": float(np.percentile(all_late, 99)),
        "after_p50": float(np.percentile(all_after, 50)), "after_p99": float(np.percentile(all_after, 99)),
        "batches": len(acknowledged), "cpu": cpu / took, "rate": total / took,
        "grown_mb": (memory.peak - memory.before) / 1e6,
    }  # fmt: skip


def show(name: str, runs: list[dict[str, float]]) -> None:
    def spread(key: str) -> str:
        values = [run[key] for run in runs]
        return f"{statistics.median(values):8.2f} ({min(values):.2f} to {max(values):.2f})"

    def middle(key: str) -> float:
        return statistics.median(run[key] for run in runs)

    print(
        f"  {name:18} p50 {spread('p50')} ms, p99 {spread('p99')} ms; after the acknowledgement p50 "
        f"{spread('after_p50')}, p99 {spread('after_p99')} ms; {middle('batches'):.0f} batches, "
        f"{middle('rate'):,.0f} messages/s, server {middle('cpu'):.2f} cores, "
        f"+{max(run['grown_mb'] for run in runs):.0f} MB",
        flush=True,
    )


def compare_slow(name: str, runs: dict[str, list[dict[str, float]]]) -> None:
    """Shows how much one subscriber that does not read delays the others."""
    alone, beside = runs[name], runs[name + SLOW]
    ratios = [
        f"{what} {statistics.median(b[key] / a[key] for a, b in zip(alone, beside, strict=True)):.2f}"
        for what, key in (("p99", "p99"), ("p99 after the acknowledgement", "after_p99"))
    ]
    print(
        f"  {name}: one that does not read changes those of the others to {', '.join(ratios)} times (must be "
        f"{SLOW_GOAL})",
        flush=True,
    )


def measure(systems: list[System], arguments: argparse.Namespace) -> dict[str, Any]:
    record: dict[str, Any] = {}
    made = 0
    for rate in map(int, arguments.rates.split(",")):
        for count in map(int, arguments.subscribers.split(",")):
            kinds = (False, True) if arguments.slow and count > 1 else (False,)
            runs: dict[str, list[dict[str, float]]] = {}
            for number in range(arguments.rounds + 1):
                for system in systems:
                    for slow in kinds:
                        made += 1
                        # The first round warms up.
                        seconds = arguments.seconds if number else 1
                        found = one_run(system, f"m{made}", count, rate, seconds, slow)
                        label = system.server.name + (SLOW if slow else "")
                        if number:
                            runs.setdefault(label, []).append(found)
            print(
                f"\n{rate:,} messages/s, {count} subscribers, {arguments.rounds} rounds of {arguments.seconds} s"
            )
            for label, found_runs in runs.items():
                show(label, found_runs)
            for system in systems:
                if system.server.name + SLOW in runs:
                    compare_slow(system.server.name, runs)
            record[f"{rate}/{count}"] = runs
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quarrier-sql", type=Path, required=True)
    parser.add_argument("--subscribers", default="1,10,100")
    parser.add_argument("--rates", default="1000,10000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--systems", default="quarrier,redis,nats,postgresql")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "data")
    parser.add_argument("--postgres", type=Path, default=Path("/usr/lib/postgresql/15/bin"))
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--nats", default="nats-server")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve()
    work = arguments.data / "delivery"
    remove(work)
    work.mkdir(parents=True)
    print(f"{datetime.date.today()}: {machine(work)}")
    systems: list[System] = []
    wanted = arguments.systems.split(",")
    try:
        if "quarrier" in wanted:
            quarrier = Quarrier(arguments.quarrier_sql, work / "quarrier", ["--data", work / "d", "--workers=2"])
            quarrier.start()
            systems.append(OfQuarrier(quarrier))
        if "redis" in wanted:
            systems.append(OfRedis(Redis(arguments.redis, work / "redis")))
        if "nats" in wanted:
            systems.append(OfNats(Nats(arguments.nats, work / "nats")))
        if "postgresql" in wanted:
            systems.append(OfPostgres(Postgres(arguments.postgres, work / "postgres")))
        record = measure(systems, arguments)
        print(machine(work))
    finally:
        for system in systems:
            system.server.stop()
        remove(work)
    if arguments.json:
        arguments.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
