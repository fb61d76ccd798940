"""Fixtures for every test folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from lanes import Lanes
from servers.zookeeper_server import ZooKeeperServer, available

# How fast an example runs says nothing on a shared machine. The gate tries the same examples each
# time, so that a change is judged by what it changed; the soak tries new ones.
for profile, examples in (("gate", 30), ("soak", 300)):
    settings.register_profile(
        profile,
        deadline=None,
        derandomize=profile == "gate",
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Try ten times as many examples where the cases of the soak are tried too."""
    settings.load_profile("soak" if config.getoption("markexpr") in ("", "soak") else "gate")


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One running server for the whole session; each test keeps to a chroot of its own."""
    yield from _running(tmp_path_factory.mktemp("zookeeper_server"))


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A running server of the test's own, to kill, freeze and restart."""
    yield from _running(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs ZooKeeper where there is none."""
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
