"""A container or a machine that is lost: what is placed anew, where, and who must know of it."""

import pytest

from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RetrySpec, Strategy
from simulated.scheduler import (
    begun,
    fail,
    lose_agent_of,
    recover,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
)

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS = Strategy.BETWEEN_GRAPH
KILLED = "Command terminated with signal Killed"


def a_gang(strategy, agents=8, **changes):
    spec = training(strategy, ps=0 if strategy is MWMS else 2, **changes)
    return started(spec, room_for_one_each(agents))


def again(scheduler, before):
    """Return who has a new container, and who started again in the old one."""
    after = task_ids(scheduler)
    new = {name for name in after if after[name] != before[name]}
    return new, {n for n, count in starts(scheduler).items() if count > 1 and n not in new}


@pytest.mark.parametrize("strategy", [PSS, SESSIONS])
@pytest.mark.parametrize("name", ["worker-1", "ps-0", "chief-0"])
def test_a_container_that_died_comes_back_at_its_old_address(strategy, name):
    scheduler = a_gang(strategy)
    before = scheduler.state.epoch
    fail(scheduler, name, KILLED)
    recover(scheduler, 10)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.epoch == before


@pytest.mark.parametrize(
    ("strategy", "name", "others"),
    [
        (PSS, "worker-1", "chief-0"),
        (PSS, "ps-0", "chief-0 worker-0 worker-1"),
        (PSS, "chief-0", ""),
        (SESSIONS, "worker-1", "chief-0 worker-0 ps-0 ps-1"),
        (SESSIONS, "ps-0", "chief-0 worker-0 worker-1"),
        (SESSIONS, "chief-0", "worker-0 worker-1 ps-0 ps-1"),
        (MWMS, "worker-1", "chief-0 worker-0"),
    ],
)
def test_when_a_machine_vanishes_exactly_these_learn_of_the_new_address(strategy, name, others):
    scheduler = a_gang(strategy)
    before, epoch = task_ids(scheduler), scheduler.state.epoch.epoch
    lose_agent_of(scheduler, name)
    recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert again(scheduler, before) == ({name}, set(others.split()))
    assert scheduler.state.epoch.epoch == epoch + 1


def test_a_worker_whose_place_was_taken_goes_elsewhere_and_the_chief_is_told():
    scheduler = a_gang(PSS)
    before = task_ids(scheduler)
    agent = scheduler.cluster.agents[scheduler.state.tasks["worker-1"].agent_id]
    agent.free -= Resources(cpus=0.5, mem=400)
    fail(scheduler, "worker-1", KILLED)
    agent.free -= Resources(cpus=0.5, mem=400)
    for offer_id in list(scheduler.cluster.offers):
        scheduler.cluster.rescind(offer_id)
    recover(scheduler, 20)
    assert again(scheduler, before) == ({"worker-1"}, {"chief-0"})
    assert scheduler.state.tasks["worker-1"].agent_id != agent.agent_id


def test_those_who_must_learn_train_on_until_the_new_container_is_ready():
    scheduler = a_gang(SESSIONS)
    lose_agent_of(scheduler, "worker-1")
    scheduler.run(10)
    assert scheduler.state.job.phase is JobPhase.STAGING
    assert scheduler.cluster.runner("chief-0").state == "running"


def test_a_machine_that_vanished_costs_no_retry():
    scheduler = a_gang(PSS, retry=RetrySpec(limit=0))
    lose_agent_of(scheduler, "ps-1")
    recover(scheduler, 20)
    assert [(i.kind, i.charged) for i in scheduler.state.job.incidents] == [
        (causes.UNREACHABLE, False)
    ]


def test_the_old_attempt_is_killed_when_its_agent_is_back():
    scheduler = a_gang(PSS)
    old = scheduler.state.tasks["worker-1"].task_id
    agent = lose_agent_of(scheduler, "worker-1")
    recover(scheduler, 20)
    scheduler.cluster.bring_back(agent)
    scheduler.run(5)
    assert not scheduler.cluster.tasks[old].alive
    assert scheduler.cluster.double_starts == []


def test_an_agent_that_is_back_before_replace_after_seconds_costs_nothing():
    scheduler = a_gang(PSS, replace_after_seconds=60.0)
    before = task_ids(scheduler)
    agent = lose_agent_of(scheduler, "worker-1")
    scheduler.run(30)
    scheduler.cluster.bring_back(agent)
    scheduler.run(60)
    assert task_ids(scheduler) == before
    assert set(starts(scheduler).values()) == {1}
    assert scheduler.state.job.incidents == ()


def test_a_task_is_replaced_when_its_agent_stays_away_for_replace_after_seconds():
    scheduler = a_gang(PSS, replace_after_seconds=60.0)
    before = task_ids(scheduler)
    lose_agent_of(scheduler, "worker-1")
    scheduler.run(50)
    assert task_ids(scheduler) == before
    recover(scheduler, 30)
    assert again(scheduler, before) == ({"worker-1"}, {"chief-0"})


def test_an_agent_that_is_back_while_its_task_waits_for_offers_starts_it_where_it_is():
    scheduler = a_gang(PSS, agents=5)
    before = task_ids(scheduler)
    agent = lose_agent_of(scheduler, "worker-1")
    scheduler.run(20)
    assert scheduler.state.job.phase is JobPhase.PLACING
    scheduler.cluster.bring_back(agent)
    recover(scheduler, 10)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert task_ids(scheduler) == before


def test_the_silence_of_two_machines_is_one_incident():
    scheduler = a_gang(PSS)
    lose_agent_of(scheduler, "worker-1")
    lose_agent_of(scheduler, "worker-0")
    recover(scheduler, 20)
    assert len(scheduler.state.job.incidents) == 1
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_container_that_dies_while_a_restart_is_under_way_is_placed_with_it():
    scheduler = a_gang(SESSIONS)
    before = task_ids(scheduler)
    fail(scheduler, "worker-1", KILLED)
    fail(scheduler, "ps-1", KILLED)
    recover(scheduler, 15)
    assert again(scheduler, before) == ({"worker-1", "ps-1"}, set())
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_new_container_that_dies_before_it_is_ready_is_placed_again():
    scheduler = a_gang(PSS)
    lose_agent_of(scheduler, "worker-1")
    scheduler.run(10)
    assert scheduler.state.job.phase is JobPhase.STAGING
    staged = scheduler.state.tasks["worker-1"].task_id
    scheduler.cluster.report(staged, TaskState.FAILED, KILLED)
    recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_no_member_of_a_gang_starts_while_another_cannot_be_reached_and_may_return():
    spec = training(MWMS, ps=0, replace_after_seconds=60.0)
    scheduler = begun(spec, room_for_one_each(3), seconds=3)
    agent = lose_agent_of(scheduler, "worker-1")
    scheduler.cluster.run_everything()
    scheduler.run(10)
    assert starts(scheduler) == {"chief-0": 0, "worker-0": 0, "worker-1": 0}
    scheduler.cluster.bring_back(agent)
    recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert set(starts(scheduler).values()) == {1}


def test_a_runner_that_comes_back_and_does_not_stop_its_process_loses_its_container():
    scheduler = a_gang(MWMS, agents=3)
    before = task_ids(scheduler)
    agent = lose_agent_of(scheduler, "worker-1")
    scheduler.run(5)
    scheduler.cluster.tasks[before["worker-1"]].runner.obeys = False
    scheduler.cluster.bring_back(agent)
    recover(scheduler, 60)
    recover(scheduler, 20)
    assert task_ids(scheduler)["worker-1"] != before["worker-1"]
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_new_container_whose_runner_is_never_heard_of_is_placed_again():
    scheduler = a_gang(PSS)
    before = task_ids(scheduler)
    lose_agent_of(scheduler, "worker-1")
    scheduler.run(10)
    silent = scheduler.state.tasks["worker-1"]
    scheduler.cluster.report(silent.task_id, TaskState.RUNNING)
    scheduler.drain()
    scheduler.cluster.agents[silent.agent_id].frozen = True
    scheduler.run(scheduler.state.spec.gang.start_seconds + 60, tick=5.0)
    assert silent.task_id != before["worker-1"]
    assert scheduler.state.job.incidents[-1].kind == causes.START_TIMED_OUT
