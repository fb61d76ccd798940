"""An embedded cluster in this process, and the job on it that each test does something to."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from embedded_mesos import AgentConfig, Timing

from .training import ScheduledTraining, ServedTraining, job_options

MakeTraining = Callable[..., ScheduledTraining]
MakeServed = Callable[..., ServedTraining]

#: One for each of the gang, and one to spare.
AGENTS = 5
#: Ports are taken from a place of this process' own: a machine may test more than once at a time.
FIRST_PORT = 22000 + os.getpid() % 16 * 500


#: Mesos gives an agent up after 75 s; here it is two.
TIMING = Timing(agent_ping=0.5, agent_ping_timeouts=4, update_retry=0.5, heartbeat=0.5)


@pytest.fixture
def timing() -> Timing:
    return TIMING


@pytest.fixture
def cluster(tmp_path: Path, timing: Timing) -> Iterator[FaultyCluster]:
    with running_cluster(tmp_path, timing) as running:
        yield running


def running_cluster(folder: Path, timing: Timing) -> FaultyCluster:
    """Return agents with room for one task each."""
    agents = [
        AgentConfig(
            address=f"127.0.0.{n + 1}",
            cpus=0.1,
            mem=128,
            ports=(FIRST_PORT + 100 * n, FIRST_PORT + 100 * n + 99),
        )
        for n in range(AGENTS)
    ]
    return FaultyCluster(agents, folder / "mesos", timing=timing)


@pytest.fixture
def make_training(cluster: FaultyCluster, tmp_path: Path) -> Iterator[MakeTraining]:
    """Return a function that starts the job with a scheduler in this process."""
    with ExitStack() as stack:

        def make(*, state: str = "", **sections: Any) -> ScheduledTraining:
            options = job_options(tmp_path, **sections)
            made = ScheduledTraining(tmp_path, cluster, options, state=state)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def training(make_training: MakeTraining) -> ScheduledTraining:
    """The job as it trains."""
    made = make_training()
    made.look()
    return made


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScheduledTraining]:
    """The job of a whole module, which ends right after all that its tests have done to it."""
    folder = tmp_path_factory.mktemp("lasting")
    with running_cluster(folder, TIMING) as cluster:
        made = ScheduledTraining(folder, cluster, job_options(folder))
        try:
            yield made
            made.earlier = 0.0
            made.ends_right()
        finally:
            made.close()


@pytest.fixture
def shared(lasting: ScheduledTraining) -> ScheduledTraining:
    """The module's job as it trains, for tests that look at no failure: each leaves it whole.

    What fails soon after another failure belongs to that one.
    """
    lasting.looks_anew()
    return lasting


@pytest.fixture
def make_served(cluster: FaultyCluster, tmp_path: Path) -> Iterator[MakeServed]:
    """Return a function that makes the job for schedulers in processes of their own."""
    with ExitStack() as stack:

        def make(*, state: str = "", **sections: Any) -> ServedTraining:
            options = job_options(tmp_path, **sections)
            state = state or f"sqlite:///{tmp_path}/state.db"
            made = ServedTraining(tmp_path, cluster, options, state=state)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def served(make_served: MakeServed) -> ServedTraining:
    """The job as it trains, with a scheduler of its own, its state in SQLite."""
    made = make_served()
    made.start()
    made.look()
    return made
