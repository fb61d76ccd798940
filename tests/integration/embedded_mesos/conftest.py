"""Clusters like the one that the recordings come from."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from embedded_mesos import AgentConfig, Timing

#: A tenth of the recorded intervals (allocation 1 s, agents pinged every 1 s, 3 times). Updates
#: are sent again as late as by Mesos: sooner, a busy machine would see copies that none recorded.
FAST = Timing(
    allocation=0.1,
    agent_ping=0.1,
    agent_ping_timeouts=3,
    agent_registration=0.05,
)
RECORDED_AGENTS = (
    AgentConfig(
        address="127.0.0.1",
        cpus=4,
        mem=8192,
        ports=(31000, 31999),
        attributes={"rack": "rack1", "agent": 1.0},
    ),
    AgentConfig(
        address="127.0.0.2",
        cpus=4,
        mem=8192,
        ports=(32000, 32999),
        attributes={"rack": "rack2", "agent": 2.0},
    ),
)

MakeCluster = Callable[..., FaultyCluster]


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[MakeCluster]:
    """Start clusters like the recorded one; all are stopped at the end."""
    clusters: list[FaultyCluster] = []

    def make(*, gpus: int = 0, timing: Timing = FAST, **options: Any) -> FaultyCluster:
        agents = options.pop("agents", None)
        if agents is None:
            agents = (replace(RECORDED_AGENTS[0], gpus=gpus), RECORDED_AGENTS[1])
        cluster = FaultyCluster(
            agents, tmp_path / f"cluster-{len(clusters)}", timing=timing, **options
        )
        cluster.start()
        clusters.append(cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.stop()
