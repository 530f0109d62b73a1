"""`quarrier serve --tls` with clients that check its certificate and present their own."""

from __future__ import annotations

import http.client
import pathlib
import signal
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
import trustme
from data_server import Server


@dataclass
class Encrypted:
    server: Server
    # The issuer of the certificates of the server and of its clients.
    authority: trustme.CA
    folder: pathlib.Path

    def psycopg(self, **options: str) -> psycopg.Connection[object]:
        return self.server.psycopg(sslmode="verify-full", connect_timeout=20, **options)

    @property
    def root(self) -> str:
        path = self.folder / "root.crt"
        self.authority.cert_pem.write_to_path(str(path))
        return str(path)

    def client(self) -> dict[str, str]:
        """A certificate and key issued by the authority, as files."""
        issued = self.authority.issue_cert("ann@localhost")
        certificate, key = self.folder / "ann.crt", self.folder / "ann.key"
        issued.cert_chain_pems[0].write_to_path(str(certificate))
        issued.private_key_pem.write_to_path(str(key))
        key.chmod(0o600)
        return {"sslcert": str(certificate), "sslkey": str(key)}


def encrypted(folder: pathlib.Path, wants_clients: bool) -> Iterator[Encrypted]:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    tls = folder / "tls"
    tls.mkdir()
    issued.cert_chain_pems[0].write_to_path(str(tls / "tls.crt"))
    issued.private_key_pem.write_to_path(str(tls / "tls.key"))
    if wants_clients:
        authority.cert_pem.write_to_path(str(tls / "ca.crt"))
    server = Server(folder, "--tls", "tls")
    yield Encrypted(server, authority, folder)
    assert server.end(signal.SIGTERM) == 0


@pytest.fixture
def open_to_all(tmp_path: pathlib.Path) -> Iterator[Encrypted]:
    yield from encrypted(tmp_path, wants_clients=False)


@pytest.fixture
def open_to_known(tmp_path: pathlib.Path) -> Iterator[Encrypted]:
    yield from encrypted(tmp_path, wants_clients=True)


def answer_of(db: psycopg.Connection[object]) -> object:
    return db.execute("SELECT 1 + 1").fetchone()


def test_clients_encrypt_and_check_the_server(open_to_all: Encrypted) -> None:
    with open_to_all.psycopg(sslrootcert=open_to_all.root) as db:
        assert db.pgconn.ssl_in_use
        assert answer_of(db) == (2,)
    # Another authority, which did not issue it.
    other = open_to_all.folder / "other.crt"
    trustme.CA().cert_pem.write_to_path(str(other))
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        open_to_all.psycopg(sslrootcert=str(other))
    # On the same machine, a client may connect without TLS.
    with open_to_all.server.psycopg(sslmode="disable") as db:
        assert not db.pgconn.ssl_in_use
        assert answer_of(db) == (2,)


def test_clients_present_a_certificate_if_required(open_to_known: Encrypted) -> None:
    root = open_to_known.root
    with open_to_known.psycopg(sslrootcert=root, **open_to_known.client()) as db:
        assert answer_of(db) == (2,)
    with pytest.raises(psycopg.OperationalError):
        open_to_known.psycopg(sslrootcert=root)
    with pytest.raises(psycopg.OperationalError):
        open_to_known.server.psycopg(sslmode="disable")


def get(encrypted: Encrypted, context: ssl.SSLContext) -> tuple[int, bytes]:
    port = encrypted.server.http
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
    connection.request("GET", "/query?sql=SELECT+1+AS+a&format=csv")
    answer = connection.getresponse()
    status, body = answer.status, answer.read()
    connection.close()
    return status, body


def test_http_is_encrypted_too(open_to_known: Encrypted) -> None:
    context = ssl.create_default_context(cafile=open_to_known.root)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(open_to_known, context)
    files = open_to_known.client()
    context.load_cert_chain(files["sslcert"], files["sslkey"])
    assert get(open_to_known, context) == (200, b"a\n1\n")
    with pytest.raises(ssl.SSLError):
        get(open_to_known, ssl.create_default_context())
