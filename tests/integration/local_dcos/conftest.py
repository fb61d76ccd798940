"""Local DC/OSes on embedded clusters of their own."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from embedded_mesos import AgentConfig, Credential, EmbeddedCluster, Timing
from local_dcos import DcosConfig, LocalDcos

from .packages import package, repository
from .world import World

#: Who may use the cluster.
WHO = Credential("tf", "hush")
FAST = Timing(allocation=0.05, agent_registration=0.05)

MakeWorld = Callable[..., World]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    agents = [AgentConfig(region="local", zone="local-a")]
    folder, known = tmp_path_factory.mktemp("cluster"), {WHO.principal: WHO.secret}
    with EmbeddedCluster(agents, folder, timing=FAST, credentials=known) as found:
        yield found


@pytest.fixture(scope="module")
def credential(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with what the cluster asks for."""
    file = tmp_path_factory.mktemp("credential") / "credential.json"
    file.write_text(json.dumps(asdict(WHO)))
    return file


@pytest.fixture
def make_world(cluster: EmbeddedCluster, credential: Path, tmp_path: Path) -> Iterator[MakeWorld]:
    """Start local DC/OSes with the package ``tensorflow`` in a repository ``Local``."""
    with ExitStack() as stack:

        def make(**options: Any) -> World:
            folder = options.pop("folder", tmp_path / "dcos")
            options.setdefault("uninstall_interval", 0.05)
            options.setdefault("master", cluster.master)
            options.setdefault("credential", credential)
            config = DcosConfig(folder=folder, **options)
            world = World(stack.enter_context(LocalDcos(config, DcosIntegration())))
            return world

        yield make


@pytest.fixture
def world(make_world: MakeWorld, tmp_path: Path) -> World:
    """Return a local DC/OS with a repository."""
    found = make_world()
    uri = repository(
        tmp_path,
        package("0.9.0", 0, "http://127.0.0.1:1/artifacts"),
        package("1.0.0", 1, "http://127.0.0.1:1/artifacts"),
    )
    found.cosmos("repository/add", {"name": "Local", "uri": uri})
    return found
