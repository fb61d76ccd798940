"""Agents that are to be taken down, and agents that fail our tasks."""

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import RetrySpec, Strategy
from simulated.mesos import Cluster
from simulated.scheduler import (
    fail,
    recover,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
)

PSS = Strategy.PARAMETER_SERVER
KILLED = "Command terminated with signal Killed"


def a_gang(agents=8, **changes):
    return started(training(PSS, **changes), room_for_one_each(agents))


def announce(scheduler, name, seconds, *, how):
    """Say that the agent of a task is taken down in so many seconds; return its id."""
    agent_id = scheduler.state.tasks[name].agent_id
    start = scheduler.cluster.now + seconds
    scheduler.cluster.agents[agent_id].unavailable_from = start
    if how == "inverse offer":
        offer = events.InverseOffer("i1", agent_id, start, None)
        scheduler.handle(events.InverseOffersReceived((offer,)))
    return agent_id


def test_a_task_leaves_its_agent_before_the_maintenance_begins():
    scheduler = a_gang(maintenance_lead_seconds=300.0)
    before = task_ids(scheduler)
    agent_id = announce(scheduler, "worker-1", 310, how="inverse offer")
    assert scheduler.cluster.agreed == ["i1"]
    scheduler.run(5)
    assert task_ids(scheduler) == before
    scheduler.run(20)
    recover(scheduler, 5)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["worker-1"].agent_id != agent_id
    assert {n for n, t in task_ids(scheduler).items() if t != before[n]} == {"worker-1"}


def test_an_evaluator_leaves_too_and_the_training_goes_on():
    scheduler = a_gang(evaluator=1)
    before = task_ids(scheduler)
    agent_id = announce(scheduler, "evaluator-0", 100, how="inverse offer")
    scheduler.run(20)
    recover(scheduler, 5)
    assert scheduler.state.tasks["evaluator-0"].agent_id != agent_id
    assert {n for n, t in task_ids(scheduler).items() if t != before[n]} == {"evaluator-0"}
    assert set(starts(scheduler).values()) == {1}


def test_moving_away_costs_no_retry():
    scheduler = a_gang(retry=RetrySpec(limit=0))
    announce(scheduler, "chief-0", 100, how="inverse offer")
    scheduler.run(20)
    recover(scheduler, 5)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.job.incidents == ()


def test_the_decider_is_stopped_first_so_that_it_can_save():
    scheduler = a_gang(kill_grace_seconds=30.0)
    scheduler.cluster.runner("chief-0").stop_seconds = 10.0
    announce(scheduler, "ps-0", 100, how="inverse offer")
    scheduler.run(3)
    assert scheduler.cluster.runner("chief-0").state == "stopping"
    assert scheduler.cluster.runner("ps-0").state == "running"


def test_an_agent_whose_offers_say_that_it_goes_soon_is_not_used():
    cluster = room_for_one_each(6)
    cluster.agents["S0"].unavailable_from = cluster.now + 200
    scheduler = started(training(PSS), cluster)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert "S0" not in {r.agent_id for r in scheduler.state.tasks.values()}


def test_an_agent_that_goes_much_later_is_used():
    cluster = room_for_one_each(5)
    cluster.agents["S0"].unavailable_from = cluster.now + 90_000
    scheduler = started(training(PSS), cluster)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_tasks_leave_when_an_offer_of_their_agent_says_that_it_goes():
    cluster = Cluster(2)
    cluster.agents["S1"].reachable = False
    scheduler = started(training(PSS, worker=1, ps=1), cluster)
    cluster.agents["S1"].reachable = True
    cluster.agents["S0"].unavailable_from = cluster.now + 100
    # Nothing is wanted, so offers are suppressed: the next one comes when something is.
    cluster.suppressed = False
    for agent in cluster.agents.values():
        agent.filtered_until = 0.0
    scheduler.run(30)
    recover(scheduler, 10)
    assert {r.agent_id for r in scheduler.state.tasks.values()} == {"S1"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_maintenance_that_is_called_off_moves_nothing():
    scheduler = a_gang()
    before = task_ids(scheduler)
    announce(scheduler, "worker-1", 400, how="inverse offer")
    scheduler.run(20)
    scheduler.handle(events.InverseOfferRescinded("i1"))
    scheduler.run(400)
    assert task_ids(scheduler) == before


def test_without_another_place_the_task_waits_and_says_so():
    scheduler = a_gang(agents=5)
    announce(scheduler, "worker-1", 100, how="inverse offer")
    scheduler.run(40)
    assert scheduler.state.job.phase is JobPhase.PLACING


def break_agent(scheduler, name, times):
    """Let a task's container die on one agent so often."""
    agent_id = scheduler.state.tasks[name].agent_id
    for _ in range(times):
        assert scheduler.state.tasks[name].agent_id == agent_id
        fail(scheduler, name, KILLED)
        recover(scheduler, 30)
    return agent_id


def test_an_agent_that_failed_three_times_is_avoided_while_others_have_room():
    scheduler = a_gang()
    agent_id = break_agent(scheduler, "worker-1", 3)
    assert scheduler.state.tasks["worker-1"].agent_id != agent_id
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_agent_that_failed_three_times_is_used_when_there_is_no_other():
    scheduler = a_gang(agents=5)
    agent_id = break_agent(scheduler, "worker-1", 3)
    recover(scheduler, 60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["worker-1"].agent_id == agent_id


def test_errors_of_the_users_are_not_held_against_an_agent():
    scheduler = a_gang(retry=RetrySpec(limit=9))
    for _ in range(4):
        fail(scheduler, "worker-1", "Command exited with status 1")
        recover(scheduler, 60)
    assert scheduler.state.agent_failures == {}


@pytest.mark.parametrize("name", ["worker-1", "ps-0"])
def test_only_tasks_that_must_know_of_a_move_are_told(name):
    scheduler = a_gang()
    announce(scheduler, name, 100, how="inverse offer")
    scheduler.run(20)
    recover(scheduler, 10)
    restarted = {n for n, count in starts(scheduler).items() if count > 1}
    assert restarted == {"chief-0"}


def test_a_maintenance_that_is_not_announced_any_more_moves_no_task():
    """A cancelled one is not taken back: the master stops asking for the agent again."""
    scheduler = started(training(PSS), room_for_one_each(8))
    before = {name: r.task_id for name, r in scheduler.state.tasks.items()}
    agent, soon = scheduler.state.tasks["worker-1"].agent_id, scheduler.cluster.now + 1500
    asked = events.InverseOffer("i1", agent, soon, None)
    scheduler.handle(events.InverseOffersReceived((asked,)))
    scheduler.run(1600, tick=10.0)
    assert {name: r.task_id for name, r in scheduler.state.tasks.items()} == before
