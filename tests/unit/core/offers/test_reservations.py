"""Persistent volumes: a task comes back to its own, and nothing of others is ever touched."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept, Release, Teardown
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.operator.requests import refusal
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import Addressing, TaskRole
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from simulated.mesos import Cluster
from simulated.reservations import Held
from simulated.scheduler import (
    Crash,
    Scheduler,
    begun,
    fail,
    lose_agent_of,
    recover,
    room_for_one_each,
    small_job,
    started,
)

VOLUME = VolumeSpec(size=500, path="tf-volume")


def with_volumes(volume=VOLUME, **changes):
    """Return the small job, its workers with volumes."""
    spec = small_job(**changes)
    return replace(
        spec,
        roles=tuple(
            replace(r, volume=volume, resources=Resources(cpus=1, mem=1024))
            if r.role is TaskRole.WORKER
            else r
            for r in spec.roles
        ),
    )


def a_gang(cluster=None, **changes):
    return started(with_volumes(**changes), cluster or room_for_one_each(6))


def reservation(scheduler, name):
    return scheduler.state.reservations[scheduler.state.tasks[name].resource_id]


def held(scheduler):
    """Return everything that is reserved in the cluster."""
    return {
        key: found
        for agent in scheduler.cluster.agents.values()
        for key, found in agent.reservations.held.items()
    }


def volume_of(scheduler, name):
    found = reservation(scheduler, name)
    return held(scheduler)[(found.framework_id, found.resource_id)]


def releases(scheduler):
    return [a for d in scheduler.decisions for a in d.actions if isinstance(a, Release)]


def uninstall(scheduler, seconds=60):
    scheduler.handle(events.UninstallRequested("asked for"))
    scheduler.run(seconds)


# -- launches ------------------------------------------------------------------------------------


def test_only_the_tasks_that_ask_for_a_volume_get_one():
    scheduler = a_gang()
    assert {r.task for r in scheduler.state.reservations.values()} == {"worker-0", "worker-1"}
    assert len(held(scheduler)) == 2


def test_a_volume_needs_its_room_on_the_agents_disk():
    scheduler = begun(
        with_volumes(replace(VOLUME, size=6000)), Cluster(1, Resources(8, 16000, 10000))
    )
    assert "6000 MB disk" in scheduler.state.job.why


def test_a_reservation_is_confirmed_once_its_task_is_known_to_the_agent():
    scheduler = begun(with_volumes(), Cluster())
    assert not reservation(scheduler, "worker-0").confirmed
    scheduler.cluster.run_everything()
    scheduler.run(2)
    assert reservation(scheduler, "worker-0").confirmed


# -- coming back ---------------------------------------------------------------------------------


def test_a_task_that_was_killed_comes_back_to_its_volume_and_its_ports():
    scheduler = a_gang()
    before = scheduler.state.tasks["worker-1"]
    fail(scheduler, "worker-1")
    recover(scheduler)
    after = scheduler.state.tasks["worker-1"]
    assert after.task_id != before.task_id
    assert (after.agent_id, after.ports) == (before.agent_id, before.ports)
    assert volume_of(scheduler, "worker-1").content == [before.task_id, after.task_id]
    assert releases(scheduler) == []


def test_a_task_comes_back_to_an_agent_that_has_nothing_but_its_reservation_left():
    scheduler = a_gang()
    agent = scheduler.cluster.agents[scheduler.state.tasks["worker-0"].agent_id]
    agent.free = Resources()
    agent.ports = PortRanges()
    fail(scheduler, "worker-0")
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["worker-0"].agent_id == agent.agent_id


def test_a_task_waits_for_the_agent_that_has_its_volume_and_says_so():
    scheduler = a_gang()
    agent_id = lose_agent_of(scheduler, "worker-1")
    hostname = scheduler.state.tasks["worker-1"].hostname
    recover(scheduler)
    why = f"worker-1: its volume is on agent {agent_id} ({hostname}), which offers nothing"
    assert why in scheduler.state.job.why
    assert scheduler.state.job.phase is JobPhase.PLACING


def test_a_task_whose_agent_is_back_without_it_goes_on_with_its_volume():
    scheduler = a_gang()
    agent_id = lose_agent_of(scheduler, "worker-1")
    task_id = scheduler.state.tasks["worker-1"].task_id
    scheduler.run(30)
    scheduler.cluster.bring_back(agent_id)
    scheduler.cluster.report(task_id, TaskState.FAILED, "its agent was started anew")
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert volume_of(scheduler, "worker-1").content[0] == task_id
    assert len(held(scheduler)) == 2


def test_offers_that_come_before_the_news_of_a_tasks_end_destroy_nothing():
    scheduler = a_gang()
    scheduler.cluster.disconnect()
    task_id = scheduler.cluster.id_of("worker-0")
    scheduler.cluster.tasks[task_id].state = TaskState.FAILED
    scheduler.cluster._release(scheduler.cluster.tasks[task_id].launch)
    scheduler.restart()
    scheduler.cluster.make_offers()
    # The answers to reconciliation come later.
    for event in scheduler.cluster.outbox[:2]:
        scheduler.handle(event)
    assert scheduler.state.tasks["worker-0"].state is TaskState.RUNNING
    assert releases(scheduler) == []


def test_a_task_with_a_volume_stays_when_its_agents_maintenance_is_near():
    scheduler = a_gang()
    record = scheduler.state.tasks["worker-0"]
    start = scheduler.cluster.now + 60
    offer = events.InverseOffer("I1", record.agent_id, start, 3600.0)
    scheduler.handle(events.InverseOffersReceived((offer,)))
    scheduler.run(5)
    assert scheduler.state.tasks["worker-0"].task_id == record.task_id
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_port_that_another_program_has_taken_is_not_waited_for():
    scheduler = a_gang()
    before = scheduler.state.tasks["worker-0"]
    fail(scheduler, "worker-0", "Command exited with status 75")
    recover(scheduler)
    after = scheduler.state.tasks["worker-0"]
    assert after.agent_id == before.agent_id
    assert not set(after.ports) & set(before.ports)
    assert list(volume_of(scheduler, "worker-0").ports) == sorted(after.ports)


def test_a_service_whose_state_was_lost_takes_its_volumes_up_again():
    before = a_gang()
    volumes = set(held(before))
    for task_id in before.cluster.alive():
        before.cluster.report(task_id, TaskState.KILLED)
    after = Scheduler(with_volumes(), before.cluster)
    after.state = replace(after.state, instance="another", framework_id="framework-1")
    after.cluster.subscribe()
    after.run(3)
    recover(after, 5)
    assert after.state.job.phase is JobPhase.RUNNING
    assert set(held(after)) == volumes
    assert {len(h.content) for h in held(after).values()} == {2}


# -- launches that fail --------------------------------------------------------------------------


def test_a_launch_that_failed_is_tried_again_and_leaves_nothing_behind():
    class Refusing(Scheduler):
        refuse = 2

        def before_action(self, action):
            if isinstance(action, Accept) and self.refuse:
                self.refuse -= 1
                self.cluster.offers.clear()

    scheduler = Refusing(with_volumes(), Cluster())
    scheduler.cluster.subscribe()
    scheduler.run(3)
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    scheduler.run(60)
    assert len(held(scheduler)) == 2
    assert len(scheduler.state.reservations) == 2


def test_a_crash_between_commit_and_accept_leaves_no_second_volume():
    class Crashing(Scheduler):
        crashed = False

        def before_action(self, action):
            if isinstance(action, Accept) and not self.crashed:
                self.crashed = True
                raise Crash

    scheduler = Crashing(with_volumes(), Cluster())
    scheduler.cluster.subscribe()
    with pytest.raises(Crash):
        scheduler.run(2)
    scheduler.restart()
    scheduler.run(10)
    recover(scheduler)
    scheduler.run(60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert len(held(scheduler)) == len(scheduler.state.reservations) == 2


# -- giving up -----------------------------------------------------------------------------------


def replaced(scheduler, name):
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, (name,)))
    recover(scheduler, 60)
    scheduler.run(5)


def test_a_replaced_task_gets_a_new_volume_and_the_old_one_is_destroyed():
    scheduler = a_gang()
    old = reservation(scheduler, "worker-1")
    replaced(scheduler, "worker-1")
    new = reservation(scheduler, "worker-1")
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert new.resource_id != old.resource_id
    assert new.agent_id != old.agent_id
    assert (old.framework_id, old.resource_id) not in held(scheduler)
    assert old.resource_id not in scheduler.state.reservations


def test_a_task_that_waits_for_its_volume_can_be_replaced():
    scheduler = a_gang()
    agent_id = lose_agent_of(scheduler, "worker-1")
    recover(scheduler)
    replaced(scheduler, "worker-1")
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["worker-1"].agent_id != agent_id


def test_a_volume_that_was_given_up_is_destroyed_when_its_agent_is_back():
    scheduler = a_gang()
    agent_id = lose_agent_of(scheduler, "worker-1")
    recover(scheduler)
    replaced(scheduler, "worker-1")
    scheduler.run(2000, tick=10.0)
    assert len(held(scheduler)) == 3
    scheduler.cluster.bring_back(agent_id)
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("worker-0",)))
    scheduler.run(30)
    uninstall(scheduler)
    assert held(scheduler) == {}


def replaced_before_its_agent_was_heard_of():
    """Return a scheduler, and the agent that launches a task which is not waited for any more."""
    scheduler = begun(with_volumes(), room_for_one_each(3))
    agent_id = lose_agent_of(scheduler, "worker-1")
    scheduler.run(2)
    assert not reservation(scheduler, "worker-1").confirmed
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    return scheduler, agent_id


def test_an_unseen_volume_is_not_forgotten_while_its_agent_is_away():
    scheduler, agent_id = replaced_before_its_agent_was_heard_of()
    scheduler.run(300)
    uninstall(scheduler)
    assert not scheduler.cluster.torn_down
    scheduler.cluster.bring_back(agent_id)
    scheduler.run(60)
    assert scheduler.cluster.torn_down
    assert held(scheduler) == {}


def test_a_volume_that_was_never_made_is_forgotten_once_its_agent_says_so():
    scheduler, agent_id = replaced_before_its_agent_was_heard_of()
    (never_made,) = (r for r in scheduler.state.reservations.values() if r.given_up)
    scheduler.cluster.agents[agent_id].reservations.held.clear()
    scheduler.run(300)
    assert never_made.resource_id in scheduler.state.reservations
    gone = events.TaskUpdate(never_made.task_id, TaskState.LOST, agent_id=agent_id)
    scheduler.handle(gone)
    scheduler.run(40)
    assert never_made.resource_id not in scheduler.state.reservations


def test_offers_are_not_asked_for_for_ever_to_give_a_volume_back():
    scheduler = a_gang()
    lose_agent_of(scheduler, "worker-1")
    recover(scheduler)
    replaced(scheduler, "worker-1")
    assert scheduler.state.awaited_back
    scheduler.run(1000, tick=10.0)
    assert not scheduler.state.awaited_back
    assert scheduler.cluster.suppressed


def test_the_volumes_of_an_agent_that_is_gone_for_good_are_not_waited_for():
    scheduler = a_gang()
    agent_id = lose_agent_of(scheduler, "worker-1")
    record = scheduler.state.tasks["worker-1"]
    gone = events.TaskUpdate(
        record.task_id, TaskState.LOST, agent_id, reason="REASON_AGENT_REMOVED_BY_OPERATOR"
    )
    scheduler.handle(gone)
    scheduler.cluster.tasks[record.task_id].state = TaskState.LOST
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["worker-1"].agent_id != agent_id


def test_what_carries_our_labels_without_a_task_is_given_back():
    scheduler = a_gang()
    agent = scheduler.cluster.agents["S5"]
    stray = Held(Resources(cpus=1, mem=64), volume="old", size=100)
    agent.reservations.add(("framework-1", "who-knows"), stray)
    scheduler.cluster.suppressed = False
    agent.filtered_until = 0.0
    scheduler.run(5)
    assert ("framework-1", "who-knows") not in agent.reservations.held


@pytest.mark.parametrize(
    "key", [("another-framework", "r1"), ("", "r1"), ("framework-1", ""), ("", "")]
)
def test_what_does_not_carry_both_of_our_labels_is_never_touched(key):
    cluster = room_for_one_each(6)
    for agent in cluster.agents.values():
        agent.reservations.add(key, Held(Resources(cpus=1, mem=64), volume="v", size=10))
    scheduler = a_gang(cluster)
    uninstall(scheduler)
    assert scheduler.cluster.torn_down
    assert list(held(scheduler)) == [key]
    assert len([a for a in cluster.agents.values() if key in a.reservations.held]) == 6


def test_a_foreign_reservation_with_the_resource_id_of_ours_is_not_taken_for_ours():
    scheduler = a_gang()
    ours = reservation(scheduler, "worker-0")
    key = ("another-framework", ours.resource_id)
    other = scheduler.cluster.agents["S5"]
    other.reservations.add(key, Held(Resources(cpus=1), volume=ours.persistence_id, size=10))
    uninstall(scheduler)
    assert list(held(scheduler)) == [key]


# -- the end -------------------------------------------------------------------------------------


def finished(scheduler):
    for name in ("worker-0", "worker-1"):
        scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.FINISHED)
    scheduler.run(60)
    for task_id in scheduler.cluster.alive():
        scheduler.cluster.report(task_id, TaskState.KILLED)
    scheduler.run(30)


def test_a_job_that_is_done_keeps_its_volumes_and_gives_back_what_others_can_use():
    scheduler = a_gang()
    finished(scheduler)
    assert scheduler.state.job.phase is JobPhase.DONE
    assert [(h.resources, h.size) for h in held(scheduler).values()] == [(Resources(), 500)] * 2
    assert scheduler.cluster.suppressed


def test_an_uninstall_after_the_end_destroys_the_volumes():
    scheduler = a_gang()
    finished(scheduler)
    uninstall(scheduler, 30)
    assert held(scheduler) == {}
    assert scheduler.cluster.torn_down
    assert scheduler.store == {}


def test_an_uninstall_gives_everything_back_before_the_framework_is_removed():
    scheduler = a_gang()
    uninstall(scheduler, 30)
    order = [
        type(a) for d in scheduler.decisions for a in d.actions if isinstance(a, Release | Teardown)
    ]
    assert order.count(Release) == 2
    assert order[-1] is Teardown
    assert held(scheduler) == {}


def test_an_uninstall_gives_up_the_volumes_of_a_dead_agent_and_lists_them():
    scheduler = a_gang(uninstall_give_up_seconds=120.0)
    hostname = scheduler.state.tasks["worker-1"].hostname
    lose_agent_of(scheduler, "worker-1")
    uninstall(scheduler, 100)
    assert not scheduler.cluster.torn_down
    scheduler.run(60)
    assert f"the volume of worker-1 on {hostname}" in scheduler.state.uninstall.given_up
    assert scheduler.cluster.torn_down


def instead_of_the_first_release(scheduler, happen):
    """Let something else happen when a volume is to be given back; return what was not done."""
    perform, undone = scheduler.cluster.perform, []

    def instead(action):
        if isinstance(action, Release) and not undone:
            undone.append(action)
            happen(action)
        elif scheduler.cluster.connected:
            perform(action)

    scheduler.cluster.perform = instead
    return undone


def test_a_call_that_was_to_give_a_volume_back_and_failed_is_repeated():
    scheduler = a_gang()
    given_up = reservation(scheduler, "worker-1")

    def fail_the_call(action):
        offers, resources = action.offer_ids, action.resource_ids
        failed = events.CallFailed("ACCEPT", "no route", False, offers, (), resources)
        scheduler.cluster.outbox.append(failed)
        for offer_id in offers:
            scheduler.cluster.offers.pop(offer_id)

    undone = instead_of_the_first_release(scheduler, fail_the_call)
    uninstall(scheduler)
    assert undone
    assert held(scheduler) == {}
    assert given_up.resource_id not in scheduler.state.reservations


def test_what_a_master_lost_before_it_died_is_given_back_under_the_next_one():
    scheduler = a_gang()

    def die(action):
        scheduler.cluster.disconnect()
        scheduler.cluster.outbox.append(events.Disconnected("the master is gone"))

    undone = instead_of_the_first_release(scheduler, die)
    uninstall(scheduler, 20)
    assert undone
    assert not scheduler.cluster.torn_down
    scheduler.cluster.subscribe()
    scheduler.run(30)
    assert held(scheduler) == {}
    assert scheduler.cluster.torn_down


def test_a_crash_before_a_volume_is_given_back_does_not_leave_it_on_an_agent_that_is_away():
    scheduler = a_gang()
    undone = instead_of_the_first_release(
        scheduler, lambda action: scheduler.cluster.lose(action.agent_id, frozen=True)
    )
    uninstall(scheduler, 0)
    while not undone:
        scheduler.run(1)
    scheduler.restart()
    scheduler.run(60)
    assert not scheduler.cluster.torn_down
    scheduler.cluster.bring_back(undone[0].agent_id)
    scheduler.run(30)
    assert held(scheduler) == {}
    assert scheduler.cluster.torn_down


def test_the_plan_of_an_uninstall_has_a_step_for_each_reservation():
    scheduler = a_gang()
    scheduler.handle(events.UninstallRequested("asked for"))
    plan = plans(scheduler.state.view())["deploy"]
    found = reservation(scheduler, "worker-0")
    steps = {s.name: s.task for p in plan.phases for s in p.steps}
    assert steps[f"unreserve-{found.resource_id}"] == "worker-0"


def test_an_operator_can_leave_a_dead_agents_volume_behind():
    scheduler = a_gang()
    found = reservation(scheduler, "worker-1")
    lose_agent_of(scheduler, "worker-1")
    uninstall(scheduler, 30)
    scheduler.handle(
        events.PlanCommand(
            "deploy",
            events.PlanVerb.FORCE_COMPLETE,
            f"unreserve-resources-{found.hostname}",
            f"unreserve-{found.resource_id}",
        )
    )
    scheduler.run(30)
    assert scheduler.cluster.torn_down


# -- changes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [None, replace(VOLUME, size=501), replace(VOLUME, kind=VolumeType.MOUNT)],
)
def test_a_volume_cannot_be_changed_under_a_running_service(changed):
    scheduler = a_gang()
    why = refusal(scheduler.state, with_volumes(changed))
    assert why.startswith("the volume of worker tasks cannot be changed")


def test_tasks_keep_their_volumes_when_their_options_change():
    scheduler = a_gang()
    volumes = set(held(scheduler))
    spec = scheduler.state.spec
    roles = tuple(replace(r, env={"NEW": "1"}) for r in spec.roles)
    scheduler.handle(events.ConfigurationChanged(replace(spec, roles=roles)))
    recover(scheduler, 60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert set(held(scheduler)) == volumes
    assert {len(h.content) for h in held(scheduler).values()} == {2}


def test_a_task_that_its_peers_name_by_another_port_comes_back_to_its_volume_with_that_one():
    def named(port):
        spec = with_volumes(addressing=Addressing.DNS)
        return replace(spec, roles=tuple(replace(r, port=port) for r in spec.roles))

    scheduler = started(named(31200), room_for_one_each(6))
    volumes = set(held(scheduler))
    scheduler.handle(events.ConfigurationChanged(named(31300)))
    recover(scheduler, 60)
    assert {record.ports[0] for record in scheduler.state.tasks.values()} == {31300}
    assert set(held(scheduler)) == volumes


def test_a_task_that_is_not_wanted_any_more_gives_its_volume_back():
    scheduler = a_gang()
    gone = reservation(scheduler, "worker-1")
    spec = scheduler.state.spec
    roles = tuple(replace(r, count=1) for r in spec.roles)
    scheduler.handle(events.ConfigurationChanged(replace(spec, roles=roles)))
    recover(scheduler, 60)
    scheduler.run(30)
    assert gone.resource_id not in scheduler.state.reservations
    assert len(held(scheduler)) == 1
