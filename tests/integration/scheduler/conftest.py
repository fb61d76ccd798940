"""A scheduler in this process, on an embedded cluster with real tasks."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.scheduler.scheduler import Scheduler
from embedded_mesos import AgentConfig, Timing
from jobs.scheduled_jobs import here

Made = Callable[..., Scheduler]
#: Tests that run at the same time in another process keep to other ports.
FIRST_PORT = 16000 + 1000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])


@pytest.fixture
def timing() -> Timing:
    """Mesos' waits, shortened."""
    return Timing(agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5)


@pytest.fixture
def cluster(tmp_path: Path, timing: Timing) -> Iterator[FaultyCluster]:
    """Two agents of two cpus each."""
    agents = [
        AgentConfig(
            address=f"127.0.0.{n}",
            cpus=2,
            mem=2048,
            ports=(FIRST_PORT + 500 * n, FIRST_PORT + 500 * n + 499),
        )
        for n in (1, 2)
    ]
    with FaultyCluster(agents, tmp_path / "mesos", timing=timing) as running:
        yield running


@pytest.fixture
def schedule(cluster: FaultyCluster, tmp_path: Path) -> Iterator[Made]:
    """Return a function that starts a scheduler; each is stopped at the end."""
    made: list[Scheduler] = []

    def start(spec: ServiceSpec, **config: object) -> Scheduler:
        scheduler = Scheduler(spec, here(tmp_path, cluster.master, **config))
        made.append(scheduler)
        scheduler.start()
        return scheduler

    yield start
    for scheduler in made:
        scheduler.stop()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Where the tasks and the test tell each other that something has happened."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder
