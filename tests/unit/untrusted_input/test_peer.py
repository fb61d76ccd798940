"""Whose process is at the other end of a connection."""

import os
import socket
from collections.abc import Iterator

import pytest

from untrusted_input import peer as module
from untrusted_input.peer import owner_of_peer


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")]
)
def test_the_kernel_says_who_has_connected(
    listening: socket.socket, family: socket.AddressFamily, host: str
) -> None:
    server = listening.getsockname()
    with socket.socket(family) as client:
        client.connect((host, server[1]))
        accepted, peer = listening.accept()
        with accepted:
            assert owner_of_peer(peer, server) == os.getuid()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_users_process_is_known_as_such(listening: socket.socket) -> None:
    server = listening.getsockname()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            with socket.socket() as client:
                client.connect(server)
                os.read(read, 1)
        finally:
            os._exit(0)
    listening.settimeout(10)
    accepted, peer = listening.accept()
    with accepted:
        assert owner_of_peer(peer, server) == 65534
        os.write(write, b"!")
        os.waitpid(child, 0)
    os.close(read)
    os.close(write)


def test_a_closed_connection_has_no_owner(listening: socket.socket) -> None:
    server = listening.getsockname()
    with socket.create_connection(server):
        accepted, peer = listening.accept()
    with accepted:
        assert owner_of_peer(peer, server) is None


def test_the_kernel_is_not_made_to_write_its_table_for_each_request(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TABLES", ())
    server = listening.getsockname()
    with socket.create_connection(server):
        accepted, peer = listening.accept()
        with accepted:
            assert owner_of_peer(peer, server) == os.getuid()


def test_its_table_is_read_where_it_answers_no_question(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As under a unit that allows no such socket, or in a sandbox without that part of the kernel.
    monkeypatch.setattr(module, "_SOCK_DIAG", 4000)
    server = listening.getsockname()
    with socket.create_connection(server):
        accepted, peer = listening.accept()
        with accepted:
            assert owner_of_peer(peer, server) == os.getuid()
