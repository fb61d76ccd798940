"""A TensorBoard that is kept when the job has ended, until an operator stops it."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.restarts.sidecars import staying
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RetrySpec, RoleSpec, ServiceSpec, TaskRole
from simulated.mesos import Cluster
from simulated.scheduler import (
    Scheduler,
    fail_process,
    lose_agent_of,
    small_job,
    started,
    starts,
    task_ids,
)

BOARD = "tensorboard-0"


def a_job(outlives_job: bool = True, **changes: object) -> ServiceSpec:
    board = RoleSpec(
        TaskRole.TENSORBOARD, 1, Resources(cpus=1, mem=64, disk=1), outlives_job=outlives_job
    )
    spec = small_job(**changes)
    return replace(spec, roles=(*spec.roles, board))


def ended(outlives_job: bool = True, code: int = 0, **changes: object) -> Scheduler:
    """Return a scheduler whose job has ended by itself, beside its TensorBoard."""
    scheduler = started(a_job(outlives_job, **changes), Cluster(4))
    cluster = scheduler.cluster
    state = TaskState.FINISHED if code == 0 else TaskState.FAILED
    cluster.report(cluster.id_of("worker-0"), state, f"Command exited with status {code}")
    scheduler.run(60)
    assert scheduler.state.job.phase is JobPhase.DONE
    return scheduler


def runs(scheduler: Scheduler) -> list[str]:
    return sorted(record.name for record in scheduler.state.live_tasks)


def test_without_the_option_it_ends_with_the_job():
    scheduler = ended(outlives_job=False)
    assert runs(scheduler) == []
    assert staying(scheduler.state.view()) == ()


@pytest.mark.parametrize("code", [0, 1])
def test_it_runs_on_when_the_job_has_ended(code):
    scheduler = ended(code=code, retry=RetrySpec(limit=0))
    assert runs(scheduler) == [BOARD]
    assert [record.name for record in staying(scheduler.state.view())] == [BOARD]
    scheduler.run(3600, tick=10.0)
    assert runs(scheduler) == [BOARD]


def test_nothing_stays_while_the_job_runs():
    assert staying(started(a_job(), Cluster(4)).state) == ()


def test_a_job_that_is_stopped_takes_it_along():
    scheduler = started(a_job(), Cluster(4))
    scheduler.handle(events.StopRequested("enough"))
    scheduler.run(60)
    assert scheduler.state.job.phase is JobPhase.DONE
    assert runs(scheduler) == []


def test_a_stop_after_the_end_ends_it_for_good_and_changes_no_verdict():
    scheduler = ended()
    scheduler.handle(events.StopRequested("enough"))
    scheduler.run(60)
    assert runs(scheduler) == []
    assert staying(scheduler.state.view()) == ()
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    seen = len(scheduler.cluster.launch_history)
    scheduler.run(600, tick=10.0)
    assert len(scheduler.cluster.launch_history) == seen


def test_an_uninstall_takes_it_along():
    scheduler = ended()
    scheduler.handle(events.UninstallRequested("no more"))
    scheduler.run(60)
    assert runs(scheduler) == []


def test_after_the_end_it_is_started_again_in_its_container():
    scheduler = ended()
    before = task_ids(scheduler)
    fail_process(scheduler, BOARD)
    scheduler.run(10)
    assert task_ids(scheduler) == before
    assert starts(scheduler) == {BOARD: 2}


def test_after_the_end_it_is_placed_again_when_its_machine_is_lost():
    scheduler = ended()
    before = task_ids(scheduler)[BOARD]
    lose_agent_of(scheduler, BOARD)
    scheduler.run(300)
    assert task_ids(scheduler)[BOARD] != before
    assert runs(scheduler) == [BOARD]
    assert scheduler.state.job.phase is JobPhase.DONE


def test_a_scheduler_that_is_killed_finds_it_running():
    scheduler = ended()
    before = task_ids(scheduler)[BOARD]
    scheduler.restart()
    scheduler.run(60)
    assert runs(scheduler) == [BOARD]
    assert task_ids(scheduler)[BOARD] == before


def test_nothing_restarts_when_the_option_changes():
    board = TaskRole.TENSORBOARD
    assert a_job(True).fingerprints[board] == a_job(False).fingerprints[board]
