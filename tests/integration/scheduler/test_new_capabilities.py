"""A running job's first GPUs: Mesos offers none before it was told that they are known."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dcos_tensorflow.core.model.events import ConfigurationChanged
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, Strategy, TaskRole
from embedded_mesos import AgentConfig, EmbeddedCluster, Timing
from scheduled_jobs import command_job, running, wait_until

#: Tests that run at the same time in another process keep to other ports.
FIRST_PORT = 18000 + 1000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
GPU_WORKERS = RoleSpec(
    TaskRole.GPU_WORKER, 1, Resources(cpus=0.2, mem=64, disk=10, gpus=1), python=sys.executable
)


@pytest.fixture
def cluster(tmp_path) -> Iterator[EmbeddedCluster]:
    """An agent without GPUs, and one with a GPU."""
    agents = [
        AgentConfig(
            address=f"127.0.0.{n}",
            gpus=n - 1,
            ports=(FIRST_PORT + 400 * n, FIRST_PORT + 400 * n + 399),
        )
        for n in (1, 2)
    ]
    timing = Timing(agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5)
    with EmbeddedCluster(agents, tmp_path / "mesos", timing=timing) as running_cluster:
        yield running_cluster


@pytest.fixture
def without_gpus():
    return command_job("sleep 600", workers=1, strategy=Strategy.INDEPENDENT)


@pytest.fixture
def with_gpus(without_gpus):
    return replace(without_gpus, roles=(*without_gpus.roles, GPU_WORKERS))


def both_run(state):
    return running(state) and set(state.tasks) == {"worker-0", "gpu-worker-0"}


def test_a_running_job_is_given_the_gpus_that_its_new_options_ask_for(
    schedule, without_gpus, with_gpus
):
    scheduler = schedule(without_gpus)
    wait_until(scheduler, running)
    scheduler.submit(ConfigurationChanged(with_gpus))
    assert wait_until(scheduler, both_run).tasks["gpu-worker-0"].hostname == "127.0.0.2"


def test_a_scheduler_started_with_options_that_ask_for_gpus_is_given_them(
    schedule, without_gpus, with_gpus
):
    first = schedule(without_gpus)
    wait_until(first, running)
    first.stop()
    second = schedule(with_gpus)
    assert wait_until(second, both_run).tasks["gpu-worker-0"].hostname == "127.0.0.2"
