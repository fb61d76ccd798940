"""An agent in a network namespace listens there, and its tasks run there."""

import os
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.network_namespace import run_inside
from embedded_mesos import AgentConfig
from embedded_mesos.machine.host import Host
from waiting import eventually


def _ip(*arguments: str) -> bool:
    command = ["ip", *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def namespace() -> Iterator[str]:
    """The path of a namespace with nothing but a loopback."""
    name = f"dcos-tensorflow-test-{os.getpid()}"
    if not _ip("netns", "add", name):
        pytest.skip("no network namespaces can be made here: that takes root and iproute2")
    try:
        assert _ip("-n", name, "link", "set", "lo", "up")
        yield f"/run/netns/{name}"
    finally:
        _ip("netns", "delete", name)


def _connects(address: tuple[str, int]) -> bool:
    with socket.socket() as one:
        one.settimeout(5)
        return one.connect_ex(address) == 0


def _network_of(pid: int | str) -> int:
    return os.stat(f"/proc/{pid}/ns/net").st_ino


def test_a_namespace_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        run_inside("/run/netns/no-such-namespace", lambda: None)


def test_an_agent_listens_in_its_namespace_only(tmp_path: Path, namespace: str) -> None:
    agent = AgentConfig(address="127.0.0.1")
    with FaultyCluster([agent], tmp_path, [namespace]) as cluster:
        address = ("127.0.0.1", cluster.agents[0].identity.port)
        assert run_inside(namespace, partial(_connects, address))
        assert not _connects(address)


def test_the_processes_of_a_task_are_in_its_agents_namespace(
    tmp_path: Path, namespace: str
) -> None:
    host = Host(lambda *_: None)
    try:
        sandbox = str(tmp_path / "sandbox")
        pid = run_inside(namespace, lambda: host.start("one", sandbox, {"volumes": []}))
        inside = os.stat(namespace).st_ino
        eventually(lambda: _network_of(pid) == inside, what="the executor in the namespace")
        assert _network_of("self") != inside
    finally:
        host.stop()
