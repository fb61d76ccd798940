"""A gang is a value: a service of two steps each of them without touching the other.

The state is built by hand, to have gangs that differ: the workers are one, the GPU workers the
other, each with a roster, a job and an epoch of its own.
"""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.gang import MAIN, Gang
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    GangSpec,
    OutcomePolicy,
    RoleSpec,
    Strategy,
    TaskRole,
)
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, fail_process, recover, room_for_one_each, small_job

OTHER = "slot-0"
MEMBERS = {MAIN: ("worker-0", "worker-1"), OTHER: ("slot-0-gpu-worker-0", "slot-0-gpu-worker-1")}


def two_gangs(cluster: Cluster, **changes: object) -> Scheduler:
    """Return a scheduler of two gangs that each restart as a whole."""
    small = Resources(cpus=1, mem=1024, disk=100)
    roles = (
        RoleSpec(TaskRole.WORKER, 2, small, min_count=1),
        RoleSpec(TaskRole.GPU_WORKER, 2, small, min_count=1),
    )
    spec = small_job(**{"roles": roles, "strategy": Strategy.MULTI_WORKER, **changes})
    scheduler = Scheduler(spec, cluster)
    rosters = {g: Roster(names, names, frozenset(names), names[0]) for g, names in MEMBERS.items()}
    gangs = {name: Gang(name, TaskTable(roster)) for name, roster in rosters.items()}
    scheduler.state = replace(scheduler.state, gangs=gangs)
    scheduler.cluster.subscribe()
    scheduler.run(2)
    return scheduler


def running(**changes: object) -> Scheduler:
    """Return a scheduler of two gangs that both run."""
    scheduler = two_gangs(Cluster(), **changes)
    recover(scheduler, seconds=10)
    assert phases(scheduler) == {MAIN: JobPhase.RUNNING, OTHER: JobPhase.RUNNING}
    return scheduler


def phases(scheduler: Scheduler) -> dict[str, JobPhase]:
    return {name: gang.job.phase for name, gang in scheduler.state.gangs.items()}


def record_of(scheduler: Scheduler, task: str) -> TaskRecord:
    gang = scheduler.state.gang_with(task)
    assert gang is not None
    return gang.tasks[task]


def starts(scheduler: Scheduler, gang: str) -> list[int]:
    return [record_of(scheduler, name).start for name in MEMBERS[gang]]


def test_both_are_placed_each_with_a_cluster_of_its_own():
    gangs = running().state.gangs
    assert {name: tuple(sorted(gang.tasks)) for name, gang in gangs.items()} == {
        name: tuple(sorted(members)) for name, members in MEMBERS.items()
    }
    assert {name: gang.epoch.names for name, gang in gangs.items() if gang.epoch} == {
        name: frozenset(members) for name, members in MEMBERS.items()
    }


def test_one_waits_for_places_while_the_other_runs():
    scheduler = two_gangs(room_for_one_each(agents=3))
    recover(scheduler, seconds=10)
    assert phases(scheduler) == {MAIN: JobPhase.RUNNING, OTHER: JobPhase.PLACING}
    assert not scheduler.state.gangs[OTHER].tasks
    assert "gpu-worker-" in scheduler.state.gangs[OTHER].why


def test_an_update_of_a_task_changes_its_gang_alone():
    scheduler = two_gangs(Cluster())
    before = scheduler.state.gangs
    record = record_of(scheduler, "slot-0-gpu-worker-1")
    update = events.TaskUpdate(record.task_id, TaskState.RUNNING, agent_id=record.agent_id)
    decision = scheduler.handle(update)
    assert record_of(scheduler, "slot-0-gpu-worker-1").state is TaskState.RUNNING
    assert scheduler.state.gangs[MAIN] is before[MAIN]
    assert {write.path for write in decision.writes} == {"Tasks/slot-0-gpu-worker-1/TaskStatus"}


@pytest.mark.parametrize(("task", "hit", "spared"), [
    ("worker-1", MAIN, OTHER),
    ("slot-0-gpu-worker-1", OTHER, MAIN),
])  # fmt: skip
def test_a_failure_restarts_its_gang_alone(task: str, hit: str, spared: str):
    scheduler = running()
    before = scheduler.state.gangs[spared]
    were = starts(scheduler, hit)
    fail_process(scheduler, task)
    recover(scheduler, seconds=60)
    assert starts(scheduler, hit) == [start + 1 for start in were]
    assert phases(scheduler)[hit] is JobPhase.RUNNING
    after = scheduler.state.gangs[spared]
    assert dict(after.tasks) == dict(before.tasks)
    assert (after.job, after.epoch) == (before.job, before.epoch)


def test_a_member_that_is_done_without_is_missing_in_its_gang_alone():
    scheduler = two_gangs(room_for_one_each(agents=3), gang=GangSpec(wait_seconds=20.0))
    recover(scheduler, seconds=60)
    recover(scheduler, seconds=10)
    assert phases(scheduler) == {MAIN: JobPhase.RUNNING, OTHER: JobPhase.RUNNING}
    names = {name: gang.tasks.roster.names for name, gang in scheduler.state.gangs.items()}
    assert names == {MAIN: MEMBERS[MAIN], OTHER: ("slot-0-gpu-worker-0",)}


@pytest.mark.parametrize("policy", OutcomePolicy)
def test_each_succeeds_by_its_own_members(policy: OutcomePolicy):
    scheduler = running(outcome=policy)
    for name in MEMBERS[OTHER]:
        scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.FINISHED)
    scheduler.run(40)
    verdict = scheduler.state.gangs[OTHER].job.verdict
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCEEDED
    assert "slot-0-gpu-worker-0" in verdict.summary
    assert phases(scheduler) == {MAIN: JobPhase.RUNNING, OTHER: JobPhase.DONE}


@pytest.mark.parametrize("wish", [
    events.StopRequested("asked to"),
    events.UninstallRequested("asked to"),
])  # fmt: skip
def test_a_stop_or_an_uninstall_ends_both(wish: events.Event):
    scheduler = running()
    scheduler.handle(wish)
    scheduler.run(90)
    assert phases(scheduler) == {MAIN: JobPhase.DONE, OTHER: JobPhase.DONE}
    assert scheduler.state.live_tasks == ()


def lose_container(scheduler: Scheduler, name: str) -> None:
    """Let a container end by no fault of the job."""
    task_id = record_of(scheduler, name).task_id
    scheduler.cluster.report(task_id, TaskState.FAILED, "", "REASON_CONTAINER_PREEMPTED")


def with_one_that_waits(**changes: object) -> Scheduler:
    """Return a scheduler of two gangs on four machines; two of these are gone, with one gang."""
    scheduler = two_gangs(room_for_one_each(agents=4), **changes)
    recover(scheduler, seconds=10)
    for name in MEMBERS[OTHER]:
        scheduler.cluster.lose(record_of(scheduler, name).agent_id)
    scheduler.run(60)
    assert phases(scheduler) == {MAIN: JobPhase.RUNNING, OTHER: JobPhase.PLACING}
    return scheduler


WHOLE = {"gang": GangSpec(wait_seconds=20.0), "roles": tuple(
    RoleSpec(role, 2, Resources(cpus=1, mem=1024, disk=100))
    for role in (TaskRole.WORKER, TaskRole.GPU_WORKER)
)}  # fmt: skip


def test_a_gang_that_has_waited_for_long_is_alone_with_the_offers_for_a_while():
    scheduler = with_one_that_waits(**WHOLE)
    away = [a for a in scheduler.cluster.agents.values() if not a.reachable]
    lose_container(scheduler, "worker-0")
    scheduler.run(6)
    assert phases(scheduler)[MAIN] is JobPhase.PLACING, "the place is held for the one that is late"
    scheduler.cluster.bring_back(away[0].agent_id)
    recover(scheduler, seconds=30)
    assert phases(scheduler) == {MAIN: JobPhase.PLACING, OTHER: JobPhase.RUNNING}


def test_a_gang_that_cannot_be_placed_does_not_keep_others_from_it_for_ever():
    scheduler = with_one_that_waits(**WHOLE)
    lose_container(scheduler, "worker-0")
    recover(scheduler, seconds=60)
    assert phases(scheduler) == {MAIN: JobPhase.RUNNING, OTHER: JobPhase.PLACING}
