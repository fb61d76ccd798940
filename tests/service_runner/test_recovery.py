"""What a deployed service does about failures: the same container, another one, another agent."""

from __future__ import annotations

from typing import Any

import pytest

from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import Status
from service_runner.expects import Expect
from service_runner.runner import Carried, ServiceRunner
from service_runner.sends import Send
from service_runner.service import agents

COMPLETE, IN_PROGRESS, PENDING = Status.COMPLETE, Status.IN_PROGRESS, Status.PENDING

JOB: dict[str, Any] = {
    "service": {
        "name": "mnist",
        "job_url": "https://example.org/mnist.zip",
        "job_name": "mnist",
        "strategy": "parameter_server",
        "use_tensorboard": True,
        "replace_after_seconds": 60,
        "shared_filesystem": "/mnt/shared",
    },
    "chief": {"count": 1},
    "worker": {"count": 2, "placement_constraint": "hostname:UNIQUE"},
    "parameter_server": {"count": 1},
}
GANG = ("ps-0", "chief-0", "worker-0", "worker-1")
ALL = (*GANG, "tensorboard-0")


@pytest.fixture
def deployed(runner: ServiceRunner) -> Carried:
    return runner.run(
        JOB,
        Send.register(),
        Send.offers(),
        Expect.launched(*ALL),
        Send.running(),
        Expect.plan("deploy", COMPLETE),
        Expect.on_agents(2, "worker"),
        cluster=agents(4),
    )


def test_a_process_that_fails_is_started_again_in_its_container(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Send.process_failed("worker-1"),
        Expect.step("recovery", "worker-1", PENDING),
        Send.time(120),
        Expect.launched(),
        Expect.killed(),
        Expect.plan("recovery", COMPLETE),
        Expect.starts("worker-1", 2),
        Expect.starts("ps-0", 1),
        Expect.same_containers(*ALL),
        carry_over=deployed,
    )


def test_a_container_that_ends_is_replaced_and_the_others_train_on(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Send.status("worker-1", TaskState.FAILED, "killed by the kernel"),
        Expect.step("recovery", "worker-1", Status.DELAYED, "it starts again in"),
        Send.time(5),
        Expect.plan("recovery", PENDING),
        Send.offers(),
        Expect.launched("worker-1"),
        Send.running(),
        Expect.plan("recovery", COMPLETE),
        Expect.new_containers("worker-1"),
        Expect.same_containers("ps-0", "worker-0"),
        carry_over=deployed,
    )


def test_a_sidecar_that_ends_starts_no_recovery_of_the_gang(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Send.status("tensorboard-0", TaskState.FAILED),
        Expect.plan("recovery", COMPLETE),
        Send.time(120),
        Send.offers(),
        Expect.launched("tensorboard-0"),
        Expect.same_containers(*GANG),
        carry_over=deployed,
    )


def test_a_lost_agents_task_is_replaced_elsewhere_and_killed_when_the_agent_is_back(
    runner: ServiceRunner, deployed: Carried
) -> None:
    lost = deployed.agent_of("worker-1")
    runner.run(
        JOB,
        Send.register(),
        Send.agent_lost(lost),
        Expect.killed(),
        Send.time(61),
        Expect.revived(),
        Send.offers(),
        Expect.launched("worker-1"),
        Expect.epoch(2),
        Send.running(),
        Expect.plan("recovery", COMPLETE),
        Send.agent_back(lost),
        Expect.killed("worker-1"),
        carry_over=deployed,
    )


def test_a_task_is_replaced_when_it_is_asked_for(runner: ServiceRunner, deployed: Carried) -> None:
    runner.run(
        JOB,
        Send.register(),
        Send.pod("replace", "worker-0"),
        Expect.killed("worker-0"),
        Send.offers(),
        Expect.launched("worker-0"),
        Send.running(),
        Expect.new_containers("worker-0"),
        Expect.same_containers("ps-0", "worker-1"),
        carry_over=deployed,
    )
