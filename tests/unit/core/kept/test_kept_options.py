"""While an update is held back, a task that loses its container comes back as it was."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept
from dcos_tensorflow.core.model.controls import UPDATE
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.changes import is_updating
from dcos_tensorflow.core.restarts.launch_options import as_launched_before, options_of
from dcos_tensorflow.core.restarts.update_order import outdated
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    JobSpec,
    Strategy,
    TaskRole,
    UpdateStrategy,
)
from simulated.scheduler import fail, room_for_one_each, started, training

KILLED = "Command terminated with signal Killed"
NEW_ENV, OLD_ENV = {"SPEED": "2"}, {"SPEED": "1"}


def with_workers(spec, **changes):
    roles = tuple(replace(r, **changes) if r.role is TaskRole.WORKER else r for r in spec.roles)
    return replace(spec, roles=roles)


def settle(scheduler, seconds=40):
    for _ in range(int(seconds / 2)):
        scheduler.run(2)
        scheduler.cluster.run_everything()


def half_updated(strategy=UpdateStrategy.SERIAL, pauses=True, **service):
    """A service of which worker-0 has its new options, and worker-1 has not."""
    spec = with_workers(training(Strategy.PARAMETER_SERVER, update_strategy=strategy), env=OLD_ENV)
    scheduler = started(spec, room_for_one_each(8))
    target = replace(with_workers(spec, env=NEW_ENV), **service)
    scheduler.handle(events.ConfigurationChanged(target))
    if pauses:
        scheduler.handle(events.PlanCommand(UPDATE, events.PlanVerb.PAUSE))
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    return scheduler


def launch_of(scheduler, name):
    accepts = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Accept)]
    return [one for a in accepts for one in a.launches if one.name == name][-1]


def speed(scheduler, name):
    return launch_of(scheduler, name).env["SPEED"]


def lose_container(scheduler, name):
    before = launch_of(scheduler, name).task_id
    fail(scheduler, name, KILLED)
    settle(scheduler)
    assert launch_of(scheduler, name).task_id != before
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_what_fails_while_its_update_is_paused_comes_back_with_the_options_that_it_had():
    scheduler = half_updated()
    lose_container(scheduler, "worker-1")
    assert (speed(scheduler, "worker-0"), speed(scheduler, "worker-1")) == ("2", "1")


def test_what_has_gone_over_already_comes_back_with_the_new_options():
    scheduler = half_updated()
    lose_container(scheduler, "worker-0")
    assert speed(scheduler, "worker-0") == "2"


def test_what_came_back_as_it_was_goes_over_when_the_update_goes_on():
    scheduler = half_updated()
    lose_container(scheduler, "worker-1")
    assert outdated(scheduler.state.view()) == ("worker-1",)
    scheduler.handle(events.PlanCommand(UPDATE, events.PlanVerb.RESUME))
    settle(scheduler)
    assert speed(scheduler, "worker-1") == "2"
    assert outdated(scheduler.state.view()) == ()


def test_the_old_options_survive_a_restart_of_the_scheduler():
    scheduler = half_updated()
    scheduler.restart()
    lose_container(scheduler, "worker-1")
    assert speed(scheduler, "worker-1") == "1"


def test_while_a_canary_waits_for_approval_the_others_come_back_as_they_were():
    scheduler = half_updated(UpdateStrategy.CANARY, pauses=False)
    lose_container(scheduler, "worker-1")
    assert speed(scheduler, "worker-1") == "1"


def test_a_paused_update_can_be_resumed_while_its_last_task_is_down():
    scheduler = half_updated()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-1"), TaskState.FAILED, KILLED)
    scheduler.drain()
    assert scheduler.state.tasks["worker-1"].terminal
    assert outdated(scheduler.state.view()) == ()
    assert is_updating(scheduler.state.view())


def test_what_fails_in_an_update_that_goes_on_comes_back_with_the_new_options():
    scheduler = half_updated()
    fail(scheduler, "worker-1", KILLED)
    scheduler.handle(events.PlanCommand(UPDATE, events.PlanVerb.RESUME))
    settle(scheduler)
    assert speed(scheduler, "worker-1") == "2"


def test_options_that_were_replaced_twice_are_still_known():
    scheduler = half_updated()
    target = with_workers(scheduler.state.spec, env={"SPEED": "3"})
    scheduler.handle(events.ConfigurationChanged(target))
    scheduler.handle(events.PlanCommand(UPDATE, events.PlanVerb.PAUSE))
    settle(scheduler)
    assert speed(scheduler, "worker-0") == "3"
    lose_container(scheduler, "worker-1")
    assert speed(scheduler, "worker-1") == "1"


def test_options_that_no_task_was_launched_with_are_forgotten():
    scheduler = half_updated()
    for number in ("4", "5", "6"):
        target = with_workers(scheduler.state.spec, env={"SPEED": number})
        scheduler.handle(events.ConfigurationChanged(target))
        scheduler.handle(events.PlanCommand(UPDATE, events.PlanVerb.PAUSE))
        settle(scheduler)
    kinds = {(r.role, r.fingerprint) for r in scheduler.state.tasks.values()}
    assert len(scheduler.state.former_options) <= len(kinds)


def test_how_members_are_addressed_is_never_the_old_way():
    scheduler = half_updated()
    named = replace(scheduler.state.spec, addressing=Addressing.DNS)
    state = replace(scheduler.state, spec=named)
    assert options_of(state.view(), "worker-1") == named


@pytest.mark.parametrize(
    "before",
    [
        {"env": OLD_ENV},
        {"resources": Resources(cpus=2, mem=64, disk=1), "count": 7},
        {"python": "/venv", "shm_size": 64},
    ],
)
def test_a_mixture_is_launched_as_before_and_counted_as_the_target_says(before):
    target = training(Strategy.PARAMETER_SERVER)
    old = replace(with_workers(target, **before), job=JobSpec(name="old"), log_keep=9)
    mixed = as_launched_before(target, old, TaskRole.WORKER)
    assert mixed.fingerprints[TaskRole.WORKER] == old.fingerprints[TaskRole.WORKER]
    assert mixed.task_names() == target.task_names()
    assert mixed.role(TaskRole.PS) == target.role(TaskRole.PS)
