"""A foreign client of ZooKeeper reads, writes, makes and deletes nothing of a service."""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NotEmptyError
from kazoo.security import OPEN_ACL_UNSAFE

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.store import StateStore, open_store
from servers.zookeeper_server import ZooKeeperServer

pytestmark = pytest.mark.zookeeper

_numbers = count()

#: Whose client it is, as kazoo is told.
STRANGERS: dict[str, list[tuple[str, str]]] = {
    "nobody": [],
    "another user": [("digest", "other:other")],
    "the same name": [("digest", "me:guess")],
    "the digest as a password": [("digest", "me:pzTPlGbtSBm1uGzZbTPtKhYkSkU=")],
}
ATTACKS: dict[str, Callable[[KazooClient, str], Any]] = {
    "read": lambda client, node: client.get(node),
    "list": lambda client, node: client.get_children(node),
    "write": lambda client, node: client.set(node, b"evil"),
    "make below": lambda client, node: client.create(f"{node}/evil", b"evil"),
    "delete": lambda client, node: client.delete(node),
    "take over": lambda client, node: client.set_acls(node, OPEN_ACL_UNSAFE),
}


@pytest.fixture(scope="module")
def service(zookeeper_server: ZooKeeperServer) -> Iterator[tuple[StateStore, str]]:
    """A service that is led, and its folder."""
    chroot = f"/access-{next(_numbers)}"
    with closing(open_store(zookeeper_server.url(chroot, "me:r1ght"), "tf")) as store:
        store.lead("leader", 10, lambda why: None)
        store.commit([Write("Tasks/ps-0/TaskInfo", b"x"), Write("Properties/token-key", b"key")])
        yield store, f"{chroot}/dcos-service-tf"


@contextmanager
def client_of(server: ZooKeeperServer, login: list[tuple[str, str]]) -> Iterator[KazooClient]:
    client = KazooClient(hosts=server.address, auth_data=login)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def nodes_below(client: KazooClient, node: str) -> Iterator[str]:
    yield node
    for name in client.get_children(node):
        yield from nodes_below(client, f"{node}/{name}")


@pytest.mark.parametrize("whose", STRANGERS)
def test_a_stranger_does_nothing_to_any_node(
    zookeeper_server: ZooKeeperServer, service: tuple[StateStore, str], whose: str
) -> None:
    store, root = service
    before = store.load()
    with client_of(zookeeper_server, [("digest", "me:r1ght")]) as own:
        # The lock, and our place in the line for it, are among them.
        nodes = [*nodes_below(own, root)]
    assert len(nodes) >= 8, nodes
    done = []
    with client_of(zookeeper_server, STRANGERS[whose]) as stranger:
        for node in nodes:
            for name, attack in ATTACKS.items():
                try:
                    attack(stranger, node)
                    done.append((name, node))
                except NoAuthError:
                    continue
                except NotEmptyError:
                    # Of the root alone: the folder above may be everyone's, what is in it is not.
                    assert (name, node) == ("delete", root)
    assert done == []
    store.confirm()
    assert store.load() == before


def test_nodes_that_were_made_open_before_are_warned_of(
    zookeeper_server: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    chroot = f"/access-{next(_numbers)}"
    with client_of(zookeeper_server, []) as stranger:
        stranger.create(f"{chroot}/dcos-service-tf", makepath=True)
    with closing(open_store(zookeeper_server.url(chroot, "me:r1ght"), "tf")) as store:
        store.lead("leader", 10, lambda why: None)
    (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "others than its login" in told
    assert "state export" in told
