"""A gang that goes on with fewer members, and grows again when there is room."""

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import GangSpec, OutcomePolicy, Strategy
from simulated.mesos import Cluster
from simulated.scheduler import (
    Scheduler,
    begun,
    fail_process,
    lose_agent_of,
    recover,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
)

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
GANG = GangSpec(wait_seconds=60.0, grow_seconds=120.0)


def deployed(agents, **changes):
    scheduler = begun(training(PSS, gang=GANG, **changes), room_for_one_each(agents), seconds=100)
    scheduler.cluster.run_everything()
    scheduler.run(10)
    return scheduler


def settle(scheduler, seconds):
    for _ in range(int(seconds / 10)):
        scheduler.run(10)
        scheduler.cluster.run_everything()
    scheduler.run(5)


def test_a_first_deployment_goes_on_with_fewer_workers_after_waiting():
    scheduler = deployed(4, min_count=1)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert len(scheduler.state.tasks) == 4
    assert [n.rpartition("-")[0] for n in scheduler.state.job.membership.absent] == ["worker"]


def test_without_min_count_a_first_deployment_waits_for_everybody():
    scheduler = deployed(4)
    assert scheduler.cluster.launch_history == []


def test_a_lost_worker_that_finds_no_place_is_done_without():
    scheduler = started(training(PSS, gang=GANG, min_count=1), room_for_one_each(5))
    before = task_ids(scheduler)
    lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 90)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.job.membership.absent == ("worker-0",)
    assert "worker-0" not in scheduler.state.epoch.addresses
    assert {n: t for n, t in task_ids(scheduler).items() if n in scheduler.state.epoch.addresses}
    assert before["chief-0"] == scheduler.state.tasks["chief-0"].task_id


def test_a_gang_that_lost_a_member_grows_again_when_there_is_room():
    scheduler = started(training(PSS, gang=GANG, min_count=1), room_for_one_each(5))
    agent = lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 90)
    scheduler.cluster.bring_back(agent)
    settle(scheduler, 200)
    assert scheduler.state.job.membership.absent == ()
    assert set(scheduler.state.epoch.addresses) == set(scheduler.state.spec.task_names())
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_those_who_go_on_start_when_a_lost_member_that_came_back_has_ended():
    spec = training(MWMS, chief=0, ps=0, gang=GANG, min_count=1)
    scheduler = started(spec, Cluster(1, Resources(cpus=2, mem=2048, disk=1000)))
    cluster, before = scheduler.cluster, task_ids(scheduler)
    agent = lose_agent_of(scheduler, "worker-0")
    scheduler.run(5)
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    scheduler.run(GANG.wait_seconds)
    cluster.kill_seconds = 8.0
    cluster.bring_back(agent)
    while len(cluster.runner("worker-0").starts) == 1:
        assert scheduler.state.job.phase is not JobPhase.RUNNING
        scheduler.run(1)
    assert not cluster.tasks[before["worker-1"]].alive


def test_growing_again_waits_for_grow_seconds():
    scheduler = started(training(PSS, gang=GANG, min_count=1), room_for_one_each(5))
    agent = lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 90)
    scheduler.cluster.bring_back(agent)
    settle(scheduler, 30)
    assert scheduler.state.job.membership.absent == ("worker-0",)


def test_growing_restarts_the_chief_and_no_other_container_or_parameter_server():
    scheduler = started(training(PSS, gang=GANG, min_count=1), room_for_one_each(5))
    agent = lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 90)
    before, ids = starts(scheduler), task_ids(scheduler)
    scheduler.cluster.bring_back(agent)
    settle(scheduler, 200)
    after = starts(scheduler)
    assert {n for n in before if n in after and after[n] != before[n]} - {"worker-1"} == {"chief-0"}
    assert {n for n, t in task_ids(scheduler).items() if t != ids[n]} == {"worker-1"}


@pytest.mark.parametrize("lost", ["chief-0", "ps-1"])
def test_chief_and_parameter_servers_are_never_done_without_but_take_a_workers_place(lost):
    scheduler = started(training(PSS, gang=GANG, min_count=1), room_for_one_each(5))
    lose_agent_of(scheduler, lost)
    settle(scheduler, 400)
    assert [name.rpartition("-")[0] for name in scheduler.state.job.membership.absent] == ["worker"]
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_without_min_count_the_place_of_a_chief_is_waited_for():
    scheduler = started(training(PSS, gang=GANG), room_for_one_each(5))
    lose_agent_of(scheduler, "chief-0")
    settle(scheduler, 400)
    assert scheduler.state.job.membership.absent == ()
    assert scheduler.state.job.phase is JobPhase.PLACING


def test_worker_0_is_never_done_without_where_it_decides():
    spec = training(PSS, chief=0, gang=GANG, min_count=0)
    scheduler = started(spec, room_for_one_each(4))
    lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 400)
    assert "worker-0" not in scheduler.state.job.membership.absent


def test_the_last_worker_of_a_parameter_server_strategy_is_never_done_without():
    scheduler = started(training(PSS, worker=1, gang=GANG, min_count=0), room_for_one_each(4))
    lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 400)
    assert scheduler.state.job.membership.absent == ()


def test_a_gang_that_cannot_be_completed_gives_its_places_back():
    scheduler = started(training(MWMS, ps=0, gang=GANG), room_for_one_each(3))
    lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 90)
    assert scheduler.state.job.phase is JobPhase.PLACING
    reachable = [a for a in scheduler.cluster.agents.values() if a.reachable]
    assert {a.free.cpus for a in reachable} == {1.5}


def test_a_gang_that_gave_its_places_back_starts_whole_when_there_is_room():
    scheduler = started(training(MWMS, ps=0, gang=GANG), room_for_one_each(3))
    agent = lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 120)
    scheduler.cluster.bring_back(agent)
    settle(scheduler, 120)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.cluster.double_starts == []


def test_a_gang_whose_chief_trains_on_keeps_its_places():
    # With a ParameterServerStrategy the chief trains on without the worker that has no place.
    spec = training(Strategy.BETWEEN_GRAPH, gang=GANG)
    scheduler = started(spec, room_for_one_each(5))
    before = task_ids(scheduler)
    lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 200)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == set()
    assert scheduler.cluster.runner("chief-0").state == "running"


def test_members_are_asked_for_again_whole_or_not_at_all():
    scheduler = started(training(MWMS, ps=0, gang=GANG), room_for_one_each(3))
    lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 90)
    seen = len(scheduler.decisions)
    settle(scheduler, 120)
    actions = [a for d in scheduler.decisions[seen:] for a in d.actions]
    assert not any(isinstance(a, Accept) for a in actions)


def test_room_that_a_larger_machine_brings_is_enough():
    scheduler = started(training(PSS, gang=GANG, min_count=1), room_for_one_each(5))
    lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 90)
    any_agent = next(a for a in scheduler.cluster.agents.values() if a.reachable)
    any_agent.free += Resources(cpus=4, mem=8000)
    settle(scheduler, 200)
    recover(scheduler, 10)
    assert scheduler.state.job.membership.absent == ()


def test_with_all_workers_deciding_those_that_are_done_without_are_not_waited_for():
    spec = training(PSS, gang=GANG, min_count=1, outcome=OutcomePolicy.ALL_WORKERS)
    scheduler = started(spec, room_for_one_each(5))
    lose_agent_of(scheduler, "worker-0")
    settle(scheduler, 90)
    for name in ("chief-0", "worker-1"):
        scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.FINISHED)
    scheduler.run(30)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


def test_a_gang_that_waits_sees_all_offers_again_when_one_more_comes():
    cluster = room_for_one_each(5)
    cluster.lose("S0")
    scheduler = Scheduler(training(PSS), cluster)
    cluster.subscribe()
    while scheduler.state.only_gang.placing.rounds < 5:
        scheduler.run(1)
    # The other four were refused this moment, for much longer than an offer is held.
    cluster.bring_back("S0")
    scheduler.run(scheduler.state.spec.gang.hold_seconds)
    assert len(cluster.launch_history) == 5


def test_who_has_finished_without_peers_is_not_run_again_when_the_others_find_no_place():
    every = {"chief": 0, "ps": 0, "worker": 3, "outcome": OutcomePolicy.ALL_WORKERS}
    scheduler = started(
        training(Strategy.INDEPENDENT, gang=GANG, **every), room_for_one_each(agents=3)
    )
    cluster, (first, _, last) = scheduler.cluster, scheduler.state.tasks.values()
    cluster.report(first.task_id, TaskState.FINISHED)
    scheduler.run(1)
    cluster.lose(first.agent_id)
    fail_process(scheduler, "worker-1")
    cluster.report(last.task_id, TaskState.FAILED, "Command terminated with signal Killed")
    cluster.lose(last.agent_id)
    scheduler.run(GANG.wait_seconds + 30)
    assert "the whole gang waits" in scheduler.whys()
    cluster.bring_back(last.agent_id)
    recover(scheduler, 60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert task_ids(scheduler)["worker-0"] == first.task_id
