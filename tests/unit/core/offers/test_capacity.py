"""What the core does about bought machines: it keeps their ledger, and places nothing on some."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.kept.restore import restore
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import CapacityKept, EraseState
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.offers.waiting import waiting
from dcos_tensorflow.core.operator.requests import refusal
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy, UnitKind, UnitsSpec
from simulated.mesos import Cluster
from simulated.scheduler import (
    Scheduler,
    recover,
    room_for_one_each,
    small_job,
    started,
    training,
)


def note(scheduler: Scheduler, number: int = 1, **changes: CapacityRecord | None):
    return scheduler.handle(events.CapacityNoted(number, changes))


def short_of_room() -> Scheduler:
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = Scheduler(small_job(), cluster)
    cluster.subscribe()
    scheduler.run(3)
    return scheduler


def test_what_is_noted_is_stored_before_its_sender_hears_of_it():
    scheduler = short_of_room()
    decision = note(scheduler, 7, p1=CapacityRecord(2, body={"any": "thing"}))
    assert [write.path for write in decision.writes] == ["Capacity/p1"]
    assert decision.actions == (CapacityKept(7),)


def test_what_is_kept_survives_the_scheduler():
    scheduler = short_of_room()
    kept = CapacityRecord(2, ("host-1",), ("host-1",), {"any": [1, {"thing": None}]})
    note(scheduler, p1=kept, p2=CapacityRecord())
    note(scheduler, p2=None)
    restored = restore(scheduler.store, scheduler.state.settings, scheduler.cluster.now)
    assert restored is not None
    assert restored.capacity == {"p1": kept}


def test_nothing_is_placed_on_a_machine_that_is_to_be_emptied():
    scheduler = started(training(Strategy.PARAMETER_SERVER), room_for_one_each(8))
    taken = {record.hostname for record in scheduler.state.live_tasks}
    others = {f"host-{agent_id}" for agent_id in scheduler.cluster.agents} - taken
    note(scheduler, p1=CapacityRecord(len(others), tuple(others)))
    worker = scheduler.state.tasks["worker-1"]
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    scheduler.run(20)
    recover(scheduler, 5)
    assert {record.hostname for record in scheduler.state.live_tasks} <= taken
    assert scheduler.state.tasks["worker-1"].task_id != worker.task_id


def test_an_uninstall_waits_for_the_last_machine_and_says_so():
    spec = training(Strategy.PARAMETER_SERVER, uninstall_give_up_seconds=60.0)
    scheduler = started(spec, room_for_one_each(8))
    note(scheduler, p1=CapacityRecord(2))
    scheduler.handle(events.UninstallRequested("asked for"))
    scheduler.run(120)
    assert "2 bought machines" in scheduler.state.job.why
    steps = [s for p in plans(scheduler.state.view())["deploy"].phases for s in p.steps]
    assert "2 bought machines" in steps[-1].message
    note(scheduler, p1=CapacityRecord(0))
    scheduler.run(5)
    assert any(isinstance(a, EraseState) for d in scheduler.decisions for a in d.actions)


def test_a_waiting_gang_is_told_with_what_it_waits_for():
    scheduler = short_of_room()
    (found,) = waiting(scheduler.state, scheduler.cluster.now, 10)
    assert found.name == "main"
    assert {request.name for request in found.requests} == scheduler.state.spec.wanted_names


def test_asking_who_waits_changes_nothing():
    scheduler = short_of_room()
    before = scheduler.state
    waiting(before, scheduler.cluster.now + 10_000.0, 10)
    assert scheduler.state is before
    scheduler.run(3)
    assert waiting(scheduler.state, scheduler.cluster.now, 10)


def test_no_gang_waits_where_all_have_a_place():
    scheduler = started(training(Strategy.PARAMETER_SERVER), room_for_one_each(8))
    assert waiting(scheduler.state, scheduler.cluster.now, 10) == ()


def test_the_provider_stays_while_there_are_machines_of_it():
    scheduler = short_of_room()
    spec = replace(scheduler.state.spec, capacity=CapacitySpec(CommandSpec(("rack",))))
    state = replace(scheduler.state, spec=spec)
    other = replace(spec, capacity=CapacitySpec(CommandSpec(("other",))))
    assert refusal(state, other) == ""
    bought = replace(state, capacity={"p1": CapacityRecord(1)})
    assert "the provider of machines" in refusal(bought, other)
    assert "the provider of machines" in refusal(bought, replace(spec, capacity=None))


def test_a_task_on_a_machine_that_is_taken_back_waits_for_another():
    scheduler = started(training(Strategy.PARAMETER_SERVER), room_for_one_each(5))
    at = scheduler.cluster.now + 120
    notice = {"kind": contract.NOTICE_INTERRUPTION, "at": at}
    scheduler.cluster.runner("worker-1").notice = notice
    scheduler.run(10)
    (found,) = waiting(scheduler.state, scheduler.cluster.now, 10)
    assert [request.name for request in found.requests] == ["worker-1"]
    assert scheduler.state.job.phase is JobPhase.RUNNING


@pytest.mark.parametrize(("leaving", "zone"), [(1, "1a"), (2, "")])
def test_a_gang_is_held_in_a_zone_by_those_who_stay_alone(leaving: int, zone: str):
    cluster = room_for_one_each(3)
    cluster.zone = "1a"
    spec = training(Strategy.MULTI_WORKER, chief=0, ps=0)
    scheduler = started(spec, cluster)
    at = scheduler.cluster.now + 120.0
    for name in ("worker-0", "worker-1")[:leaving]:
        notice = {"kind": contract.NOTICE_INTERRUPTION, "at": at}
        scheduler.cluster.runner(name).notice = notice
    scheduler.run(6)
    (found,) = waiting(scheduler.state, scheduler.cluster.now, 10)
    assert (len(found.requests), found.zone) == (leaving, zone)


def test_from_a_machine_that_has_to_be_left_tasks_move_as_from_one_that_is_taken_back():
    scheduler = started(training(Strategy.PARAMETER_SERVER), room_for_one_each(5))
    host = scheduler.state.tasks["worker-1"].hostname
    note(scheduler, p1=CapacityRecord(1, (host,), (host,)))
    scheduler.run(5)
    (found,) = waiting(scheduler.state, scheduler.cluster.now, 10)
    assert [request.name for request in found.requests] == ["worker-1"]
    scheduler.cluster.add_agent()
    scheduler.run(30)
    recover(scheduler, 10)
    assert scheduler.state.tasks["worker-1"].hostname != host
    assert scheduler.state.job.incidents == ()


def test_slots_that_units_wait_for_are_demand():
    cluster = Cluster(agents=1, resources=Resources(cpus=0.1, mem=64, disk=100))
    sweep = UnitsSpec(UnitKind.TRIAL, parallelism=3)
    cluster.producer = lambda _: None
    scheduler = Scheduler(small_job(units=sweep), cluster)
    cluster.subscribe()
    scheduler.run(2)
    scheduler.handle(events.UnitsGiven(0, ({}, {}, {}, {}, {})))
    scheduler.run(2)
    found = waiting(scheduler.state, scheduler.cluster.now, 10)
    assert sorted(each.name for each in found) == ["slot-0", "slot-1", "slot-2"]
    assert len(waiting(scheduler.state, scheduler.cluster.now, 1)) == 2
