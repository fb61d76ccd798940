"""The API over TLS: what it shows, when it shows another, and who is not let hold it up."""

import http.client
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import trustme
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from dcos_tensorflow.client.api_address import registered
from dcos_tensorflow.client.api_client import SchedulerAway, SchedulerClient
from untrusted_input import bounded_connection
from untrusted_input.asgi_server import AsgiServer
from untrusted_input.server_tls import CertificateUnusable, ServerTls
from waiting import eventually

MUCH = b"x" * 300_000


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    body = await request.body()
    await PlainTextResponse(body or f'"{request.url.scheme}"')(scope, receive, send)


class Files:
    """A certificate and its key on the disk, put there anew by ``renew``."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.certificate, self.key = folder / "cert.pem", folder / "key.pem"
        self.serial = self.renew()

    def renew(self) -> int:
        """Put a new pair in the place of the old, as what renews them does; return its number."""
        issued = self.authority.issue_cert("127.0.0.1", "scheduler.example")
        for path, blobs in (
            (self.key, [issued.private_key_pem]),
            (self.certificate, issued.cert_chain_pems),
        ):
            partial = path.with_suffix(".new")
            partial.write_bytes(b"".join(blob.bytes() for blob in blobs))
            os.replace(partial, path)
        self.serial = _serial(issued.cert_chain_pems[0].bytes())
        return self.serial

    def client(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


def _serial(pem: bytes) -> int:
    from cryptography.x509 import load_pem_x509_certificate

    return load_pem_x509_certificate(pem).serial_number


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def server(files: Files) -> Iterator[AsgiServer]:
    server = AsgiServer(
        "it", "127.0.0.1", 0, grace_seconds=1, tls=ServerTls(files.certificate, files.key)
    )
    server.bind()
    server.serve(_echo, "echo")
    yield server
    server.stop()


@pytest.fixture
def address(server: AsgiServer) -> str:
    return server.address


def asked(address: str, context: ssl.SSLContext, body: bytes | None = None) -> bytes:
    host, _, port = address.rpartition(":")
    with closing(http.client.HTTPSConnection(host, int(port), timeout=30, context=context)) as one:
        one.request("POST", "/", body)
        return one.getresponse().read()


def shown(address: str, context: ssl.SSLContext) -> int:
    """Return the number of the certificate that is shown."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=30) as bare,
        context.wrap_socket(bare, server_hostname=host) as secured,
    ):
        return int(secured.getpeercert()["serialNumber"], 16)  # type: ignore[index,arg-type]


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def test_a_client_that_trusts_the_authority_is_answered_in_full(address: str, files: Files) -> None:
    assert asked(address, files.client()) == b'"https"'
    assert asked(address, files.client(), MUCH) == MUCH


def test_a_request_that_comes_with_the_handshake_is_answered(address: str, files: Files) -> None:
    """TLS 1.3 lets a client send at once; a hundred of them are served whatever comes first."""
    context = files.client()
    assert {asked(address, context) for _ in range(100)} == {b'"https"'}


def test_one_who_speaks_no_tls_is_told_nothing(address: str) -> None:
    with connected(address) as bare:
        bare.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in _all_of(bare)


def test_old_versions_of_tls_are_not_spoken(address: str, files: Files) -> None:
    context = files.client()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError, match=r"version|protocol"):
        asked(address, context)


def test_a_renewed_certificate_is_shown_without_a_restart(address: str, files: Files) -> None:
    context, first = files.client(), files.serial
    assert shown(address, context) == first
    renewed = files.renew()
    assert eventually(lambda: shown(address, context) == renewed)


def test_half_a_pair_changes_nothing_until_the_other_half_is_there(
    address: str, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    context, first, key = files.client(), files.serial, files.key.read_bytes()
    files.renew()
    second, right_key = files.serial, files.key.read_bytes()
    files.key.write_bytes(key)
    with caplog.at_level(logging.ERROR):
        assert eventually(lambda: "stays in use" in caplog.text or shown(address, context) != first)
    files.key.write_bytes(right_key)
    assert eventually(lambda: shown(address, context) == second)


def test_a_client_without_a_handshake_holds_no_other_up(
    address: str, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_connection, "MOST_CONNECTIONS", 8)
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(address)) for _ in range(40)]
        assert asked(address, files.client()) == b'"https"'
        assert all(_all_of(each) == b"" for each in idle[:30])


def test_a_handshake_that_drips_has_its_time(
    monkeypatch: pytest.MonkeyPatch, server: AsgiServer, address: str, files: Files
) -> None:
    monkeypatch.setattr(bounded_connection, "REQUEST_SECONDS", 0.2)
    with connected(address) as dripping:
        dripping.sendall(b"\x16\x03")
        assert _all_of(dripping) == b""
    monkeypatch.undo()
    assert asked(address, files.client()) == b'"https"'
    assert server._server is not None
    left = server._server.server_state.connections
    assert eventually(lambda: not left, what="the end of every connection")


def test_a_command_on_this_machine_knows_the_certificate_by_its_file(
    address: str, files: Files, tmp_path: Path
) -> None:
    def client(certificate: Path) -> SchedulerClient:
        return SchedulerClient("mnist", registered(address, "", str(certificate)))

    assert client(files.certificate).get("/") == "https"
    (tmp_path / "other").mkdir()
    another = Files(tmp_path / "other")
    with pytest.raises(Exception, match="not trusted"):
        client(another.certificate).get("/")
    with pytest.raises(SchedulerAway):
        client(tmp_path / "gone.pem").get("/")


@pytest.mark.parametrize("spoiled", ["certificate", "key"])
def test_files_that_are_no_certificate_are_refused_with_their_names(
    files: Files, spoiled: str
) -> None:
    path: Any = getattr(files, spoiled)
    path.write_text("-----BEGIN NOTHING-----\n")
    with pytest.raises(CertificateUnusable, match=r"cert\.pem.*key\.pem"):
        ServerTls(files.certificate, files.key)


def test_a_key_with_a_password_does_not_ask_at_a_terminal(files: Files) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    with pytest.raises(CertificateUnusable, match="password"):
        ServerTls(files.certificate, files.key)


def _all_of(connection: socket.socket) -> bytes:
    """Return what is said until the other end says no more."""
    found = b""
    try:
        while part := connection.recv(1000):
            found += part
    except ConnectionError:
        pass
    return found
