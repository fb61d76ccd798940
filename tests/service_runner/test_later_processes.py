"""A second scheduler process of the service: a restart, other options, an uninstall."""

from typing import Any

import pytest

from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.scheduler.beginning import UninstallGoesOn
from service_runner.expects import Expect
from service_runner.runner import Carried, ServiceRunner
from service_runner.sends import Send
from service_runner.service import agents

COMPLETE, DELAYED, IN_PROGRESS, PENDING = (
    Status.COMPLETE,
    Status.DELAYED,
    Status.IN_PROGRESS,
    Status.PENDING,
)

JOB: dict[str, Any] = {
    "service": {
        "name": "mnist",
        "job_url": "https://example.org/mnist.zip",
        "job_name": "mnist",
        "strategy": "parameter_server",
    },
    "chief": {"count": 1},
    "worker": {"count": 2},
    "parameter_server": {"count": 1},
}
GANG = ("ps-0", "chief-0", "worker-0", "worker-1")


def with_options(**groups: dict[str, Any]) -> dict[str, Any]:
    return {**JOB, **{name: {**JOB.get(name, {}), **more} for name, more in groups.items()}}


@pytest.fixture
def deployed(runner: ServiceRunner) -> Carried:
    """The service after it was deployed; its scheduler has ended."""
    return runner.run(
        JOB,
        Send.register(),
        Send.offers(),
        Expect.launched(*GANG),
        Send.running(),
        Expect.plan("deploy", COMPLETE),
        # Room for one task each.
        cluster=agents(5, mem=6000),
    )


def test_a_restart_takes_the_tasks_over_and_asks_what_became_of_them(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Expect.reconciled(*GANG),
        Expect.suppressed(),
        Send.time(5),
        Expect.plan("deploy", COMPLETE),
        Expect.same_containers(*GANG),
        Expect.tasks(*GANG),
        carry_over=deployed,
    )


def test_other_options_replace_what_they_change_and_nothing_else(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        with_options(worker={"cpus": 2}),
        Send.register(),
        Expect.plan("update", IN_PROGRESS),
        Expect.killed("worker-0", "worker-1"),
        Expect.revived(),
        Send.offers(),
        Expect.launched("worker-0", "worker-1"),
        Send.running(),
        Expect.plan("update", "none"),
        Expect.plan("deploy", COMPLETE),
        Expect.same_containers("ps-0", "chief-0"),
        Expect.new_containers("worker-0", "worker-1"),
        carry_over=deployed,
    )


def test_options_that_the_running_service_cannot_have_change_nothing(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        with_options(service={"strategy": "multi_worker"}, parameter_server={"count": 0}),
        Expect.refused_update(
            "the strategy would change",
            service__strategy="parameter_server",
            parameter_server__count=1,
        ),
        Send.register(),
        Send.time(5),
        Expect.same_containers(*GANG),
        carry_over=deployed,
    )
    runner.run(
        JOB,
        Send.register(),
        Expect.plan("deploy", COMPLETE),
        Expect.in_force(service__strategy="parameter_server", parameter_server__count=1),
        Expect.same_containers(*GANG),
        carry_over=deployed,
    )


@pytest.mark.parametrize(
    ("variables", "path", "in_force"),
    [
        ({"OPTION__WORKER__PLACEMENT_CONSTRAINT": "[["}, "worker.placement_constraint", "[]"),
        ({"OPTION__WORKER__COUNT": "many"}, "worker.count", 2),
        ({"OPTION__SERVICE__JOB_NAME": ""}, "service.job_name", "mnist"),
    ],
)
def test_options_that_are_wrong_leave_those_of_before_in_force(
    runner: ServiceRunner,
    deployed: Carried,
    variables: dict[str, str],
    path: str,
    in_force: object,
) -> None:
    told = Expect.refused_update(f"{path}: ", **{path.replace(".", "__"): in_force})
    runner.run(
        JOB,
        told,
        Send.register(),
        Send.time(5),
        told,
        Expect.same_containers(*GANG),
        carry_over=deployed,
        variables=variables,
    )
    # A task that is lost meanwhile comes back with the options in force.
    deployed.cluster.report(deployed.cluster.id_of("worker-1"), TaskState.LOST, "gone")
    runner.run(
        JOB,
        Send.register(),
        Send.time(10),
        Send.offers(),
        Expect.launched("worker-1"),
        Send.running(),
        told,
        carry_over=deployed,
        variables=variables,
    )
    runner.run(
        with_options(worker={"cpus": 2}),
        Send.register(),
        Expect.killed("worker-0", "worker-1"),
        Send.offers(),
        Expect.launched("worker-0", "worker-1"),
        Send.running(),
        Expect.plan("deploy", COMPLETE),
        Expect.in_force(worker__cpus=2),
        carry_over=deployed,
    )


def test_a_decommission_waits_for_an_agent_that_is_away(
    runner: ServiceRunner, deployed: Carried
) -> None:
    away = deployed.agent_of("worker-1")
    deployed.cluster.lose(away)
    runner.run(
        with_options(worker={"count": 1}),
        Send.register(),
        Expect.plan("decommission", PENDING),
        Send.time(10),
        Expect.plan("decommission", PENDING),
        Send.agent_back(away),
        Expect.killed("worker-1"),
        Send.time(1),
        Expect.plan("decommission", "none"),
        Expect.tasks("ps-0", "chief-0", "worker-0"),
        carry_over=deployed,
    )


def test_an_uninstall_ends_every_task_and_leaves_nothing(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Expect.killed(*GANG),
        Expect.plan("deploy", IN_PROGRESS),
        Send.time(60),
        Expect.plan("deploy", COMPLETE),
        Expect.torn_down(),
        Expect.tasks(),
        carry_over=deployed,
        uninstall=True,
    )


#: What an operator may have edited into the app, and the scheduler cannot read.
WRONG: list[dict[str, str]] = [
    {"OPTION__WORKER__COUNT": "-1"},
    {"OPTION__SERVICE__ENV": "{"},
    {"OPTION__SERVICE__ENV": "[" * 100_000},
    {"OPTION__WORKER": "2"},
    {"OPTION__NO__SUCH": "1"},
    {"OPTION__SERVICE__JOB_NAME": "", "OPTION__SERVICE__USER": "a\nb"},
    {"OPTION__SERVICE__NAME": "no name", "MARATHON_APP_ID": "/mnist"},
    {"OPTION__SERVICE__SERVICE_ACCOUNT_SECRET": "no/such"},
    {"TENSORFLOW_IMAGES": "none"},
    {"MARATHON_APP_ENFORCE_GROUP_ROLE": "true", "MESOS_ALLOCATION_ROLE": "other"},
    {"TASKCFG_NOBODY_X": "1", "TASKCFG_ALL_TF_CONFIG": "1"},
    {"DCOS_TENSORFLOW_SECRETS_DIR": "/no/such", "DCOS_TENSORFLOW_SESSION_SECONDS": "never"},
    {"DCOS_TENSORFLOW_NO_SUCH": "1", "DCOS_TENSORFLOW_STANDBY": "yes"},
]


@pytest.mark.parametrize("variables", WRONG)
def test_an_uninstall_ends_whatever_is_wrong_with_the_options(
    runner: ServiceRunner, deployed: Carried, variables: dict[str, str]
) -> None:
    runner.run(
        JOB,
        Send.register(),
        Expect.killed(*GANG),
        Send.time(60),
        Expect.torn_down(),
        Expect.plan("deploy", COMPLETE),
        carry_over=deployed,
        uninstall=True,
        variables=variables,
    )


def test_an_uninstall_ends_of_what_was_installed_without_a_job(runner: ServiceRunner) -> None:
    with pytest.raises(OptionsError, match=r"service\.job_name"):
        runner.run({})
    runner.run({}, Send.time(5), Expect.plan("deploy", COMPLETE), Expect.tasks(), uninstall=True)


def test_an_uninstall_that_has_begun_is_not_forgotten_by_a_plain_start(
    runner: ServiceRunner, deployed: Carried
) -> None:
    runner.run(JOB, carry_over=deployed, uninstall=True)
    with pytest.raises(UninstallGoesOn, match="being uninstalled"):
        runner.run(JOB, carry_over=deployed)


def test_an_uninstall_of_what_was_never_deployed_asks_nothing_of_mesos(
    runner: ServiceRunner,
) -> None:
    runner.run(
        JOB,
        Send.time(5),
        Expect.plan("deploy", COMPLETE),
        Expect.tasks(),
        uninstall=True,
    )


def test_after_an_uninstall_the_name_is_free(runner: ServiceRunner, deployed: Carried) -> None:
    runner.run(
        JOB,
        Send.register(),
        Expect.killed(*GANG),
        Send.time(60),
        Expect.torn_down(),
        carry_over=deployed,
        uninstall=True,
    )
    runner.run(
        JOB,
        Send.register(),
        Send.offers(),
        Expect.launched(*GANG),
        carry_over=deployed,
    )
