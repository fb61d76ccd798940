"""What has come in together is one step: its effects are those of each, its commit is one."""

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Acknowledge
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.step import step
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, begun, small_job, started


def launched() -> Scheduler:
    """Return a scheduler that has just launched its gang."""
    return begun(small_job(), Cluster())


def running(scheduler: Scheduler) -> list[events.TaskUpdate]:
    """Return updates by which every task runs."""
    return [
        events.TaskUpdate(r.task_id, TaskState.RUNNING, r.agent_id, uuid=f"u-{r.name}")
        for r in scheduler.state.tasks.values()
    ]


def test_a_gang_whose_updates_come_together_runs_after_one_step():
    scheduler = launched()
    decision = scheduler.handle(*running(scheduler))
    assert decision.state.job.phase is JobPhase.RUNNING


def test_every_update_is_acknowledged_after_everything_else():
    scheduler = launched()
    updates = running(scheduler)
    decision = step(scheduler.state, updates, scheduler.cluster.now)
    last = decision.actions[-len(updates) :]
    assert [a.uuid for a in last if isinstance(a, Acknowledge)] == [u.uuid for u in updates]


def test_the_state_that_a_step_was_given_is_as_it_was():
    scheduler = launched()
    before, tasks = scheduler.state, dict(scheduler.state.tasks)
    step(before, running(scheduler), scheduler.cluster.now)
    assert dict(before.tasks) == tasks
    assert before.told.reports == {}


def test_two_updates_of_one_task_are_taken_in_their_order():
    scheduler = launched()
    record = scheduler.state.tasks["worker-1"]
    decision = scheduler.handle(
        events.TaskUpdate(record.task_id, TaskState.RUNNING, record.agent_id),
        events.TaskUpdate(record.task_id, TaskState.FAILED, record.agent_id, message="no"),
    )
    assert decision.state.tasks["worker-1"].state is TaskState.FAILED


def test_what_is_doubted_after_it_was_spoken_of_is_asked_about():
    scheduler = started()
    record = scheduler.state.tasks["worker-1"]
    decision = scheduler.handle(
        events.TaskUpdate(record.task_id, TaskState.RUNNING, record.agent_id),
        events.AgentFailed(record.agent_id),
    )
    assert record.task_id in decision.state.reconciliation.waiting


def test_no_events_are_a_look_at_the_clock():
    scheduler = started()
    decision = step(scheduler.state, (), scheduler.cluster.now + 1)
    assert decision.writes == ()
    assert decision.state.subscription.stepped_at == scheduler.cluster.now + 1
