"""Fixtures for every test folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lanes import Lanes
from zookeeper_server import ZooKeeperServer, available

# How fast an example runs says nothing on a shared machine. In CI the same examples are tried each
# time, so that a change is judged by what it changed; everywhere else they are new ones.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("project")


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One running server for the whole session; each test keeps to a chroot of its own."""
    yield from _running(tmp_path_factory.mktemp("zookeeper_server"))


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A running server of the test's own, to kill, freeze and restart."""
    yield from _running(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a ZooKeeper server where none can be started, and say why."""
    reason = available()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("zookeeper"):
            item.add_marker(pytest.mark.skip(reason=f"no ZooKeeper: {reason}"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes | None:
    """Let the processes begin with different kinds of files."""
    return Lanes(config, log) if config.getvalue("dist") == "loadfile" else None


def _running(folder: Path) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.close()
