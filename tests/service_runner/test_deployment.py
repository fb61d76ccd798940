"""What is deployed of a package's options, and what is not."""

from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import Status
from service_runner.expects import Expect
from service_runner.runner import ServiceRunner, TicksFailed
from service_runner.sends import Send
from service_runner.service import agents

COMPLETE, IN_PROGRESS, PENDING = Status.COMPLETE, Status.IN_PROGRESS, Status.PENDING
RUNNING, FAILED, FINISHED = TaskState.RUNNING, TaskState.FAILED, TaskState.FINISHED

JOB: dict[str, Any] = {
    "service": {
        "name": "mnist",
        "job_url": "https://example.org/mnist.zip",
        "job_name": "mnist",
    }
}
GANG = ("ps-0", "ps-1", "worker-0", "worker-1", "worker-2")


def with_service(**options: Any) -> dict[str, Any]:
    return {**JOB, "service": {**JOB["service"], **options}}


def test_the_default_options_deploy_and_then_no_more_offers_are_wanted(
    runner: ServiceRunner,
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Expect.reconciled(),
        Expect.plan("deploy", PENDING),
        Send.offers(),
        Expect.launched(*GANG),
        Expect.epoch(1),
        Expect.fetches("worker-0", "https://example.org/mnist.zip"),
        Expect.plan("deploy", IN_PROGRESS),
        Expect.suppressed(),
        Send.running(),
        Expect.plan("deploy", COMPLETE),
        Expect.plan("recovery", COMPLETE),
    )


def test_a_service_in_a_folder_deploys(runner: ServiceRunner) -> None:
    runner.run(
        with_service(name="team/mnist"),
        Send.register(),
        Send.offers(),
        Expect.launched(*GANG),
        Expect.variables("worker-0", SERVICE_NAME="team/mnist"),
        Send.running(),
        Expect.plan("deploy", COMPLETE),
    )


def test_what_was_declined_is_not_offered_at_once(runner: ServiceRunner) -> None:
    with pytest.raises(TicksFailed, match="declined for longer S0"):
        runner.run(JOB, Send.register(), Send.offers(), Send.offers(), cluster=agents(1, mem=1024))


def test_a_failed_tick_is_told_with_all_others(runner: ServiceRunner) -> None:
    with pytest.raises(TicksFailed) as failed:
        runner.run(
            JOB,
            Send.register(),
            Send.offers(),
            Expect.launched("ps-0"),
            Expect.plan("deploy", COMPLETE),
        )
    assert [line.split("  ")[1] for line in str(failed.value).splitlines()[1:5]] == [
        "done",
        "done",
        "FAILED",
        "-",
    ]
    assert "launched ps-0, ps-1, worker-0" in str(failed.value)


def test_a_launch_that_no_tick_names_fails_the_run(runner: ServiceRunner) -> None:
    with pytest.raises(TicksFailed, match="it was not expected that it launched ps-0"):
        runner.run(JOB, Send.register(), Send.offers(), Expect.plan("deploy", IN_PROGRESS))


def test_an_edited_variable_is_the_services_option(runner: ServiceRunner) -> None:
    runner.run(
        JOB,
        Send.register(),
        Send.offers(),
        Expect.launched("ps-0", "ps-1", "worker-0"),
        variables={"OPTION__WORKER__COUNT": "1"},
    )


def test_variables_of_the_app_for_tasks_reach_them(runner: ServiceRunner) -> None:
    runner.run(
        JOB,
        Send.register(),
        Send.offers(),
        Expect.launched(*GANG),
        Expect.variables("worker-0", SEED="7", ONLY_PS=None),
        Expect.variables("ps-0", SEED="7", ONLY_PS="yes"),
        variables={"TASKCFG_ALL_SEED": "7", "TASKCFG_PS_ONLY_PS": "yes"},
    )


def test_the_example_of_the_manual_runs(runner: ServiceRunner) -> None:
    text = (Path(__file__).parents[2] / "docs" / "package.md").read_text()
    _, _, after = text.partition("```python\ndeployed = ")
    source, _, _ = after.partition("```")
    names = {"runner": runner, "Send": Send, "Expect": Expect, "COMPLETE": COMPLETE}
    exec(f"deployed = {source}", names)
