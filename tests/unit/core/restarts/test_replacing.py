"""``pod replace``: another agent where there is one, and a word about why it waits where not."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Addressing, Strategy
from simulated.scheduler import room_for_one_each, started, task_ids, training

#: 2 ps, chief, 2 workers, evaluator.
TASKS = 6
ROOM = Resources(cpus=1.5, mem=1500, disk=1000)


def replaced(name, *, spare=0, taken=0):
    """A service of which ``name`` is to be replaced; of its spare agents some are taken for now."""
    scheduler = started(
        training(Strategy.PARAMETER_SERVER, evaluator=1), room_for_one_each(TASKS + spare)
    )
    free = [a for a in scheduler.cluster.agents.values() if a.free == ROOM]
    assert len(free) == spare
    for agent in free[:taken]:
        agent.free = Resources()
    before = scheduler.state.tasks[name].agent_id
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, (name,)))
    return scheduler, before, free


def settle(scheduler, seconds):
    for _ in range(seconds):
        scheduler.run(1)
        scheduler.cluster.run_everything()


EVERY_KIND = pytest.mark.parametrize("name", ["worker-1", "ps-0", "chief-0", "evaluator-0"])


@EVERY_KIND
def test_a_replaced_task_goes_to_another_agent(name):
    scheduler, before, _ = replaced(name, spare=1)
    attempts = task_ids(scheduler)
    settle(scheduler, 15)
    assert scheduler.state.tasks[name].agent_id != before
    assert {n for n, task_id in task_ids(scheduler).items() if task_id != attempts[n]} == {name}
    assert scheduler.state.job.phase is JobPhase.RUNNING


@EVERY_KIND
def test_a_replaced_task_waits_a_while_for_another_agent(name):
    scheduler, before, (spare,) = replaced(name, spare=1, taken=1)
    settle(scheduler, 6)
    assert scheduler.state.tasks[name].terminal
    spare.free = ROOM
    settle(scheduler, 12)
    assert scheduler.state.tasks[name].agent_id == spare.agent_id != before


@EVERY_KIND
def test_while_only_its_old_agent_makes_offers_a_replaced_task_says_why_it_waits(name):
    scheduler, before, _ = replaced(name)
    settle(scheduler, 6)
    (misfit,) = scheduler.state.only_gang.placing.misfits
    assert misfit.task == name
    assert misfit.reason.endswith(
        f"1 offer avoided: host-{before} failed tasks of this job or is to be left, and is taken"
        " only when nothing else has come for 10 s"
    )


@EVERY_KIND
def test_a_replaced_task_goes_back_where_there_is_no_other_agent(name):
    scheduler, before, _ = replaced(name)
    attempt = task_ids(scheduler)[name]
    settle(scheduler, 50)
    assert scheduler.state.tasks[name].agent_id == before
    assert task_ids(scheduler)[name] != attempt
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_chief_saves_before_its_worker_leaves_for_another_agent():
    scheduler, _, _ = replaced("worker-1", spare=1)
    held = {name for name, record in scheduler.state.tasks.items() if record.held}
    assert held == {"chief-0"}


def test_a_chief_trains_on_when_its_worker_will_be_found_by_the_same_name():
    spec = training(Strategy.PARAMETER_SERVER, addressing=Addressing.DNS)
    named = replace(spec, roles=tuple(replace(role, port=31_200) for role in spec.roles))
    scheduler = started(named, room_for_one_each(TASKS))
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    held = {name for name, record in scheduler.state.tasks.items() if record.held}
    assert held == {"worker-1"}


def test_who_is_replaced_while_its_agent_is_away_does_not_go_back_there():
    scheduler = started(training(Strategy.MULTI_WORKER, ps=0), room_for_one_each(4))
    agent = scheduler.state.tasks["worker-1"].agent_id
    spare = next(a for a in scheduler.cluster.agents.values() if a.free == ROOM)
    scheduler.cluster.lose(agent)
    spare.free = Resources()
    scheduler.run(1)
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    scheduler.cluster.bring_back(agent)
    settle(scheduler, 6)
    assert scheduler.state.tasks["worker-1"].terminal
    spare.free = ROOM
    settle(scheduler, 12)
    assert scheduler.state.tasks["worker-1"].agent_id == spare.agent_id
